// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Drain measures how fast the scheduler binds a backlog of gangs on a real API server, and how fast that API server
// can bind pods at all.
//
//	go run ./test/perf/drain -nodes 500 -gangs 100 -size 50
//
// It starts a local cluster, installs config/, creates the gangs, and then starts the scheduler as a separate process
// under its own service account. It watches until every pod has a node, then checks for partial gangs and
// overcommitted nodes. For the ceiling it creates the same pods on another cluster and lets 64 plain clients bind
// them one after the other, each with its own connection and with the credentials of the scheduler, while one
// informer watches, as a scheduler must. In both cases another informer measures: both rates are from the first bind
// that it receives to the last.
//
// API server, scheduler and watch share the machine, possibly with other programs. A single rate therefore has little
// meaning; the result is the ratio to the ceiling measured next to it, as the median of several such pairs.
//
// The result is written to standard output, progress to standard error. The exit code is 1 if not everything is bound
// in time, if something is bound incorrectly, or with -at-least if the ratio is lower. With -json the figures are
// added to those in a file, and the table of all of them is printed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

// options are the flags.
type options struct {
	nodes, gangs, size int
	nodeSpec           string
	kubelets           bool
	kubeletParallelism int
	unthrottled        bool
	repeat             int
	atLeast            float64
	timeout            time.Duration
	json               string
	profiles           string
}

func (o options) pods() int { return o.gangs * o.size }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	say := func(format string, args ...any) { fmt.Fprintf(stderr, "drain: "+format+"\n", args...) }
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		say("%v", err)
		return 1
	}
	result, err := measure(ctx, o, say)
	if err == nil {
		err = result.print(stdout, o)
	}
	if err != nil {
		say("%v", err)
		return 1
	}
	if problem := result.problem(o.atLeast); problem != "" {
		say("failed: %s", problem)
		return 1
	}
	return 0
}

func parse(args []string, output io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("drain", flag.ContinueOnError)
	fs.SetOutput(output)
	fs.IntVar(&o.nodes, "nodes", 500, "number of nodes")
	fs.IntVar(&o.gangs, "gangs", 100, "number of gangs")
	fs.IntVar(&o.size, "size", 50, "number of 1-cpu pods in each gang, all of which start together")
	fs.StringVar(&o.nodeSpec, "node", "cpu=32,memory=256Gi,pods=110", "what a node has, as localcluster --node takes it")
	fs.BoolVar(&o.kubelets, "kubelets", false, "run simulated kubelets, which take a share of the machine")
	fs.IntVar(&o.kubeletParallelism, "kubelet-parallelism", 1, "how many pods the simulated kubelets start at the same time")
	fs.BoolVar(&o.unthrottled, "unthrottled", false, "switch the flow control of the API server off")
	fs.IntVar(&o.repeat, "repeat", 1, "how often to measure ceiling and scheduler; the median of the ratios counts")
	fs.Float64Var(&o.atLeast, "at-least", 0, "fail if the ratio to the ceiling is less")
	fs.DurationVar(&o.timeout, "timeout", 10*time.Minute, "time to have everything bound")
	fs.StringVar(&o.json, "json", "", "add the figures to the JSON array in this file, and print all of them")
	fs.StringVar(&o.profiles, "profiles", "", "write profiles of the scheduler and of the cluster to this directory")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.nodes < 1 || o.gangs < 1 || o.size < 1 || o.repeat < 1:
		return o, fmt.Errorf("-nodes, -gangs, -size and -repeat must be at least 1")
	case !(o.atLeast >= 0):
		return o, fmt.Errorf("-at-least must not be negative")
	case o.kubeletParallelism < 1:
		return o, fmt.Errorf("-kubelet-parallelism must be at least 1")
	}
	return o, nil
}

func (r *result) print(w io.Writer, o options) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil || o.json == "" {
		return err
	}
	all, err := figures.Add(o.json, r.figures(o.atLeast))
	if err != nil {
		return err
	}
	return figures.Table(w, all)
}
