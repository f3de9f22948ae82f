//go:build modules

// Package hack keeps modules in go.mod that no package of ours imports, or that only
// commands run with "go run" need. Without it "go mod tidy" drops them, and then
// "go list -m all" fails, because k8s.io/kubernetes names its staging modules as v0.0.0.
package hack

import (
	_ "github.com/fsnotify/fsnotify"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/uuid"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/spf13/cobra"
	_ "go.etcd.io/etcd/server/v3/embed"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	_ "k8s.io/apiserver/pkg/authorization/authorizerfactory"
	_ "k8s.io/cli-runtime/pkg/printers"
	_ "k8s.io/client-go/tools/leaderelection"
	_ "k8s.io/code-generator/pkg/namer"
	_ "k8s.io/component-base/cli/flag"
	_ "k8s.io/component-base/config/options"
	_ "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	_ "k8s.io/cri-streaming/pkg/streaming"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	_ "k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "k8s.io/kubernetes/pkg/kubelet/lifecycle"
	_ "k8s.io/sample-apiserver/pkg/apis/wardle"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/kustomize/api/krusty"
	_ "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	_ "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	_ "sigs.k8s.io/kwok/pkg/kwok/controllers"
	_ "sigs.k8s.io/structured-merge-diff/v6/typed"
	_ "sigs.k8s.io/yaml"
)
