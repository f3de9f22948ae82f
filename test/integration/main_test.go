// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package integration tests the scheduler against a real API server: as a process of its own,
// built with the race detector, under its own service account and with the roles that are
// shipped, on a local cluster with simulated kubelets that admit pods as real ones do.
//
// Every case has a cluster for itself, which an earlier case may have used (see clusters). It states the objects before the scheduler starts, the
// stable state that the cluster reaches, and the changes after that. A stable state is described
// with one line for each job, see observer.snapshot. After every step the invariants are
// checked too (see observer.invariants), and at the end the scheduler must stop with code 0 and
// must not have logged a panic, a data race or a missing permission.
package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// beside is how many cases run at the same time: they mostly wait.
const beside = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	if !testing.Short() {
		if err := prepare(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if err := stopClusters(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping a cluster:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// prepare builds what the cases share, so that none of them waits for it.
func prepare(ctx context.Context) error {
	control, err := cluster.Localcluster(ctx)
	if err != nil {
		return err
	}
	binary, err := scheduler.Build(ctx, true)
	if err != nil {
		return err
	}
	return errors.Join(
		os.Setenv(cluster.BinaryVariable, control),
		os.Setenv(scheduler.BinaryVariable, binary),
		flag.Set("test.parallel", beside),
	)
}
