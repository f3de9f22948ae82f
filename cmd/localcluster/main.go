// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command localcluster runs a Kubernetes control plane with simulated nodes in one process, for demos, tests and
// benchmarks: etcd, kube-apiserver with RBAC and its own certificates, on request kube-controller-manager and
// kube-scheduler, and for every node a kubelet that admits pods like a real one but runs no containers. See --help.
//
// The API server reports the version of Kubernetes only if it is set at link time:
//
//	LDFLAGS="-X k8s.io/component-base/version.gitVersion=v1.36.3
//	  -X k8s.io/component-base/version.gitMajor=1
//	  -X k8s.io/component-base/version.gitMinor=36" hack/build.sh ./cmd/localcluster
//
// Without these flags everything works, but kubectl version ends with an error.
package main

import (
	"fmt"
	"os"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/app"
)

func main() {
	stderr := app.Stderr()
	command := app.NewCommand(app.Streams{In: os.Stdin, Out: os.Stdout})
	if err := command.Execute(); err != nil {
		fmt.Fprintf(stderr, "localcluster: %v\n", err)
		os.Exit(1)
	}
}
