// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Live measures the running scheduler with a real API server: how soon a gang starts on an idle cluster, how many
// arriving and ending gangs the scheduler sustains, how fast it evicts, and how much memory it uses.
//
//	go run ./test/perf/live -run idle
//
// Each measurement has its own local cluster and the scheduler as a separate process under its own service account.
// Times are those of a client: from the response to the creation of a gang's last pod until a watch shows the last of
// its pods with a node.
//
// A table of figures is written to standard output, progress to standard error. The exit code is 1 if a figure
// exceeds its bound or something is bound incorrectly. Bounds apply to an otherwise idle machine with 2 cores, which
// API server, kubelets, scheduler and this program share.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// options are the flags.
type options struct {
	run      *regexp.Regexp
	list     bool
	short    bool
	churn    time.Duration
	json     string
	profiles string
	audit    string
}

// measurement is a measurement with its name, in full and short form.
type measurement struct {
	name, about string
	run         func(context.Context, bench) ([]figures.Figure, error)
}

// bench is the environment of a measurement.
type bench struct {
	short    bool
	churn    time.Duration
	profiles string
	audit    string // file
	say      testbed.Progress
}

func measurements() []measurement {
	return []measurement{
		{"idle", "100 nodes without anything to do, and now and then a gang of 64", func(ctx context.Context, b bench) ([]figures.Figure, error) {
			return idle{nodes: 100, size: 64, gangs: b.pick(50, 10)}.measure(ctx, b)
		}},
		{"stream", "1,000 nodes, and gangs that come as fast as 0.7 of what plain clients can do", func(ctx context.Context, b bench) ([]figures.Figure, error) {
			return stream{nodes: 1000, lives: b.pick(3000, 600), seconds: b.pick(60, 15), share: 0.7}.measure(ctx, b)
		}},
		{"waiting", "1,000 nodes, and small gangs with and without 10,000 pending ones", func(ctx context.Context, b bench) ([]figures.Figure, error) {
			return waiting{nodes: b.pick(1000, 200), gangs: b.pick(10_000, 1000), seconds: b.pick(40, 15), rate: 150}.measure(ctx, b)
		}},
		{"devices", "1,000 nodes with 8 devices each, gangs of 64 pods with one device each, and then 5,120 such pods", func(ctx context.Context, b bench) ([]figures.Figure, error) {
			return devices{nodes: b.pick(1000, 100), size: 64, gangs: b.pick(20, 2), burst: b.pick(5120, 256)}.measure(ctx, b)
		}},
		{"evict", "100 nodes full of 100 gangs of 32, and a gang of 640 that evicts 20 of them", func(ctx context.Context, b bench) ([]figures.Figure, error) {
			return evictions{nodes: 100, gangs: 100, size: 32, preemptor: 640, rounds: b.pick(3, 1)}.measure(ctx, b)
		}},
		{"evict-budgets", "the same with 20 disruption budgets, which cover every third victim", func(ctx context.Context, b bench) ([]figures.Figure, error) {
			return evictions{nodes: 100, gangs: 100, size: 32, preemptor: 640, budgets: 20, rounds: b.pick(3, 1)}.measure(ctx, b)
		}},
		{"memory", "5,000 nodes and 100,000 pods, of which a part goes and comes", func(ctx context.Context, b bench) ([]figures.Figure, error) {
			return memory{nodes: b.pick(5000, 1000), pods: b.pick(100_000, 20_000), churned: b.pick(5000, 1000), during: b.churn}.measure(ctx, b)
		}},
	}
}

// pick returns the number for the full or the short form.
func (b bench) pick(full, short int) int {
	if b.short {
		return short
	}
	return full
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	say := func(format string, args ...any) { fmt.Fprintf(stderr, "live: "+format+"\n", args...) }
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		say("%v", err)
		return 1
	}
	chosen := slices.DeleteFunc(measurements(), func(m measurement) bool { return !o.run.MatchString(m.name) })
	if o.list {
		for _, m := range chosen {
			fmt.Fprintf(stdout, "%-8s %s\n", m.name, m.about)
		}
		return 0
	}
	list, err := measureAll(ctx, chosen, o, say)
	if err == nil {
		err = publish(stdout, o, list)
	}
	if err != nil {
		say("%v", err)
		return 1
	}
	code := 0
	for _, f := range list {
		if !f.OK {
			say("failed: %s is %.2f %s", f.Name, f.Value, f.Unit)
			code = 1
		}
	}
	return code
}

func parse(args []string, output io.Writer) (options, error) {
	var o options
	var pattern string
	fs := flag.NewFlagSet("live", flag.ContinueOnError)
	fs.SetOutput(output)
	fs.StringVar(&pattern, "run", "", "make only the measurements whose names match this regular expression")
	fs.BoolVar(&o.list, "list", false, "list the measurements and make none")
	fs.BoolVar(&o.short, "short", false, "make them in a shorter form, with bounds to match")
	fs.StringVar(&o.json, "json", "", "add the figures to the JSON array in this file, and print all of them")
	fs.StringVar(&o.profiles, "profiles", "", "write profiles of the scheduler and of the cluster to this directory")
	fs.StringVar(&o.audit, "audit", "", "write the audit log of the API server in idle to this file, and show what the slowest gangs consist of")
	fs.DurationVar(&o.churn, "churn", 0, "for how long pods come and go where memory is measured, but two rounds at least")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	var err error
	if o.run, err = regexp.Compile(pattern); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	return o, nil
}

func measureAll(ctx context.Context, chosen []measurement, o options, say testbed.Progress) ([]figures.Figure, error) {
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no measurement matches %q; -list lists them", o.run)
	}
	if _, err := scheduler.Build(ctx, false); err != nil {
		return nil, err
	}
	var all []figures.Figure
	for _, m := range chosen {
		say("%s: %s", m.name, m.about)
		list, err := m.run(ctx, bench{short: o.short, churn: o.churn, profiles: o.profiles, audit: o.audit, say: say})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		for i := range list {
			list[i].Name = m.name + "/" + list[i].Name
		}
		all = append(all, list...)
	}
	return all, nil
}

func publish(w io.Writer, o options, list []figures.Figure) error {
	if o.json != "" {
		var err error
		if list, err = figures.Add(o.json, list); err != nil {
			return err
		}
	}
	return figures.Table(w, list)
}
