// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package app is the demo: its command line, and the steps from an empty machine to a summary.
package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// maxNodes bounds --nodes; each takes some memory and the demo needs few.
const maxNodes = 1000

// options are the flags.
type options struct {
	exit          bool
	nodes         int
	schedulerConf string
	timeout       time.Duration
	logDir        string
}

const long = `demo shows batch-scheduler at work on a cluster of its own.

It builds the scheduler and a local control plane (the first time that takes several
minutes, because Kubernetes itself is compiled), starts a real API server with simulated
nodes, installs config/default, runs the scheduler as its own process and service account,
submits config/samples, and shows groups and queues until all has come out. Then it sums
up, and keeps the cluster running until Ctrl-C, for you to try things with kubectl.

It needs Go, and the source tree that it is run in. Nothing listens but on 127.0.0.1, and
nothing is left behind but bin/demo, which make builds, and what Go keeps in its caches.`

// ErrInterrupted is the error of a run that Ctrl-C has ended before its outcome was known.
var ErrInterrupted = errors.New("interrupted")

const example = `  make demo                     # the same as: go run ./cmd/demo
  make demo ARGS=--exit         # end by itself; exit code 0 if the outcome is right
  make demo ARGS="--nodes 8"    # larger cluster: fewer gangs wait`

// NewCommand returns the command. It prints no errors; the caller does.
func NewCommand(out *os.File) *cobra.Command {
	o := options{nodes: 4, timeout: 3 * time.Minute}
	command := &cobra.Command{
		Use:           "demo",
		Short:         "Show batch-scheduler at work on a cluster of its own",
		Long:          long,
		Example:       example,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			ctx, end := context.WithCancelCause(command.Context())
			defer end(nil)
			demo := newDemo(o, out)
			context.AfterFunc(ctx, demo.out.endLine)
			go watchSignals(ctx, end)
			go watchParent(ctx, end)
			return demo.run(ctx)
		},
	}
	command.SetContext(context.Background())
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w (see go run ./cmd/demo --help)", err)
	})
	command.CompletionOptions.DisableDefaultCmd = true
	flags := command.Flags()
	flags.SortFlags = false
	flags.BoolVar(&o.exit, "exit", o.exit, "end after the summary, with exit code 0 if the outcome is right, else 1")
	flags.IntVar(&o.nodes, "nodes", o.nodes, "number of nodes with 8 cpu, beside the two with GPUs")
	flags.StringVar(&o.schedulerConf, "scheduler-conf", o.schedulerConf,
		"policy `file` of the scheduler, followed while it runs (default: config/default/scheduler.yaml)")
	flags.DurationVar(&o.timeout, "timeout", o.timeout, "how long the samples may take to come out right once they are submitted")
	flags.StringVar(&o.logDir, "log-dir", o.logDir,
		"keep the logs of the scheduler and of the control plane in this `directory` (default: one that is removed at the end)")
	return command
}

func (o options) validate() error {
	switch {
	case o.nodes < 1 || o.nodes > maxNodes:
		return fmt.Errorf("--nodes: %d is not in 1 to %d", o.nodes, maxNodes)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout: %s is not more than zero", o.timeout)
	}
	if o.schedulerConf != "" {
		if _, err := os.Stat(o.schedulerConf); err != nil {
			return fmt.Errorf("--scheduler-conf: %w", err)
		}
	}
	return nil
}

// watchSignals ends the demo by the first signal. A second signal ends the process at once.
func watchSignals(ctx context.Context, cancel context.CancelCauseFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	select {
	case <-ctx.Done():
	case s := <-signals:
		if s == os.Interrupt {
			cancel(ErrInterrupted)
			return
		}
		cancel(fmt.Errorf("stopped by the signal %q", s))
	}
}

// watchParent ends the demo when the process that started it is gone: "go run" does not hand
// signals other than SIGINT on, so without this the demo would stay when its caller is ended.
func watchParent(ctx context.Context, cancel context.CancelCauseFunc) {
	parent := os.Getppid()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if os.Getppid() != parent {
				cancel(fmt.Errorf("the process that started the demo is gone"))
				return
			}
		}
	}
}
