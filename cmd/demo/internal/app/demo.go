// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/snapshot"
	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/verify"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// What the shipped configuration calls the scheduler.
const (
	schedulerPackage   = "github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler"
	schedulerName      = "batch-scheduler"
	schedulerNamespace = "batch-scheduler-system"
	schedulerAccount   = "batch-scheduler"
	defaultQueue       = "default"
)

// schedulerStopTimeout is how long the scheduler may take to send what it has decided when it is
// asked to stop.
const schedulerStopTimeout = 15 * time.Second

// demo is one run.
type demo struct {
	options options
	out     output
	root    string // of the source tree
	logs    string // directory
	dir     string // temporary
	stopped bool   // the user has ended it, as invited to
}

func newDemo(o options, out *os.File) *demo {
	return &demo{options: o, out: newOutput(out)}
}

// run goes through the steps. What it has started it stops, in the reverse order.
func (d *demo) run(ctx context.Context) (err error) {
	defer func() {
		if err = explainEnd(ctx, err); err == nil && d.stopped {
			d.out.step("Stopped")
		}
	}()

	// 1. Find the source tree, and make places for files.
	if err = d.prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()

	// 2. Build.
	scheduler, err := d.build(ctx)
	if err != nil {
		return err
	}

	// 3. Start a cluster, and install the configuration but for the Deployment: there is no
	// container image here, and the scheduler runs beside the cluster.
	c, err := d.startCluster(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	d.out.step("Installing config/default, all but its Deployment")
	if err = c.Apply(ctx, filepath.Join(d.root, "config", "crd")); err != nil {
		return err
	}
	if err = c.Apply(ctx, filepath.Join(d.root, "config", "default"), "Deployment"); err != nil {
		return err
	}

	// 4. Run the scheduler as the service account that the configuration has made.
	process, err := d.startScheduler(ctx, c, scheduler)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.Stop(schedulerStopTimeout)) }()

	// 5. Submit the samples and show what becomes of them.
	return d.show(ctx, c, process)
}

// show submits the samples, follows them to their end, sums up, and stays if it should.
func (d *demo) show(ctx context.Context, c *cluster.Cluster, scheduler *cluster.Process) error {
	watching, stopWatching := context.WithCancel(ctx)
	watcher, err := snapshot.Watch(watching, rest.CopyConfig(c.RESTConfig()), schedulerName, defaultQueue)
	defer stopWatching()
	if err != nil {
		return err
	}
	defer func() { stopWatching(); watcher.Close() }()

	d.out.step("Submitting config/samples")
	if err = c.Apply(ctx, filepath.Join(d.root, "config", "samples")); err != nil {
		return err
	}
	d.out.blank()
	f := newFollower(d.out, watcher, []ending{
		{"the scheduler", scheduler.Done(), scheduler.Wait},
		{"the local cluster", c.Done(), nil},
	})
	verdict, err := f.untilComplete(ctx, d.options.timeout)
	if err != nil {
		return err
	}
	d.out.summary(verdict, f.elapsed())
	if d.options.exit {
		return wrong(verdict)
	}
	d.out.invite(c.Kubeconfig, filepath.Join(d.logs, schedulerLog))
	if err := f.untilCancelled(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	d.stopped = true
	return wrong(verdict)
}

// wrong makes an error of a verdict that is not right.
func wrong(v verify.Verdict) error {
	if v.Right() {
		return nil
	}
	return errors.New("the outcome is not right; see WRONG and MISSING above")
}

// explainEnd returns why a run has ended if that is not err itself: a signal or the end of its caller, in whatever step
// it was.
func explainEnd(ctx context.Context, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGINT {
			return ErrInterrupted // Ctrl-C has ended the go command too
		}
	}
	cause := context.Cause(ctx)
	if err == nil || cause == nil || (errors.Is(cause, ErrInterrupted) && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrInterrupted)) {
		return err
	}
	return cause
}

// prepare finds the source tree and makes the temporary directory.
func (d *demo) prepare() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	d.root = root
	if d.dir, err = os.MkdirTemp("", "batch-scheduler-demo-"); err != nil {
		return fmt.Errorf("creating a directory for temporary files: %w", err)
	}
	d.logs = d.dir
	if d.options.logDir != "" {
		if d.logs, err = filepath.Abs(d.options.logDir); err != nil {
			return fmt.Errorf("--log-dir: %w", err)
		}
		if err := os.MkdirAll(d.logs, 0o755); err != nil {
			return fmt.Errorf("--log-dir: %w", err)
		}
	}
	return nil
}

// moduleRoot returns the directory of go.mod, at or above the working directory.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the source tree: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "config", "samples", "kustomization.yaml")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in the source tree of batch-scheduler: run the demo from there", start)
		}
	}
}
