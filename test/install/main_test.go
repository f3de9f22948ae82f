// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package install_test installs the scheduler as its users do, by kustomize and by Helm, on a real API server with the
// controllers of Kubernetes, and runs the container image as the pods of the Deployment say: with their arguments, their
// environment, their volumes as a kubelet writes them, and the token of their service account.
//
// There is no kubelet that runs containers. What one does is in kubelet_test.go: the files of the image are the
// root directory of a process with the user of the pod. This takes root; others skip the tests. Pods
// have no network of their own, so each listens on a loopback address of its own instead of all
// addresses: the one argument that is added.
package install_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/batch-scheduler/batch-scheduler/internal/image"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

var (
	built v1.ImageIndex // the container image of this machine's architecture
	helm  string        // the program
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := 1
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	os.Exit(code)
}

// prepare builds what the tests share, so that none of them waits for it.
func prepare(ctx context.Context) error {
	if testing.Short() || os.Getuid() != 0 {
		return nil // all tests are skipped
	}
	control, err := cluster.Localcluster(ctx)
	if err != nil {
		return err
	}
	if err = os.Setenv(cluster.BinaryVariable, control); err != nil {
		return err
	}
	if helm, err = cluster.Build(ctx, "helm.sh/helm/v4/cmd/helm", false); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "install-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "batch-scheduler")
	if err = image.Build(ctx, binary, runtime.GOARCH); err != nil {
		return err
	}
	built, err = image.New("", binary)
	return err
}

// needRoot skips a test that runs the image.
func needRoot(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	if os.Getuid() != 0 {
		t.Skip("running a container takes root, for a root directory and a user of its own")
	}
}
