// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Decide measures the speed of scheduling decisions without a cluster.
//
//	go run ./test/perf/decide -run reclaim
//
// It builds models of clusters in memory, opens sessions over them with the built-in plugins, and measures a cycle:
// opening the session, the actions, and closing it. Effects are only recorded. Benchmarks of evictions run all
// actions, the others those of the built-in configuration. Each benchmark is repeated on a new model, and the median
// counts. The decisions are checked too: a wrong outcome is a failure regardless of the time.
//
// A table of figures is written to standard output, progress to standard error. The exit code is 1 if a figure
// exceeds its bound or an outcome is wrong. Bounds apply to an otherwise idle machine with 2 cores.
//
// Samples of a CPU profile are labelled with the name of the benchmark and the step of the cycle, so that the setup
// and the checks of models can be excluded:
//
//	go run ./test/perf/decide -run backlog/balanced -repeat 1 -cpuprofile cpu.out
//	go tool pprof -top -cum -tagfocus backlog/balanced cpu.out
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
	"runtime"
	"runtime/pprof"
	"slices"
	"syscall"

	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

// options are the flags.
type options struct {
	run        *regexp.Regexp
	list       bool
	json       string
	repeat     int
	cpuProfile string
	memProfile string
	trace      string
	svg        string
	writeTrace string
}

// progress reports progress.
type progress func(format string, args ...any)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	say := func(format string, args ...any) { fmt.Fprintf(stderr, "decide: "+format+"\n", args...) }
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		say("%v", err)
		return 1
	}
	if o.writeTrace != "" {
		if err = writeTrace(o.trace, o.writeTrace); err != nil {
			say("%v", err)
			return 1
		}
		return 0
	}
	chosen, err := benchmarks(o.trace)
	if err != nil {
		say("%v", err)
		return 1
	}
	chosen = slices.DeleteFunc(chosen, func(b benchmark) bool { return !o.run.MatchString(b.name) })
	if o.list {
		for _, b := range chosen {
			fmt.Fprintf(stdout, "%-24s %s\n", b.name, b.about)
		}
		return 0
	}
	problems, err := decide(ctx, chosen, o, stdout, say)
	if err != nil {
		say("%v", err)
		return 1
	}
	for _, problem := range problems {
		say("failed: %s", problem)
	}
	return min(len(problems), 1)
}

// benchmarks returns all benchmarks in full size.
func benchmarks(traceDir string) ([]benchmark, error) {
	openb, half, err := traces(traceDir)
	return slices.Concat(
		gangs(5000), converged(10_000, 5000), neighbours(1000), growing(1000, 2000, 4000, 8000, 16_000), []benchmark{openb, half, starting(5000), pending(5000, 10_000)},
		reportedPending(5000, 10_000), []benchmark{simulating(openb)}, claims(5000, 1000), bursts(1000), reclaims(1000), backlogs(500), []benchmark{groupSources(5000, 10_000), independentJobs(1000, 2000)}, subGroups(1000, 100), plannedStarts(5000, 2000), topologies(5000, 512, 2000, 1000, 100),
		replays(552, 26_000, traceDir),
	), err
}

func parse(args []string, output io.Writer) (options, error) {
	var o options
	var pattern string
	fs := flag.NewFlagSet("decide", flag.ContinueOnError)
	fs.SetOutput(output)
	fs.StringVar(&pattern, "run", "", "run only the benchmarks whose names match this regular expression")
	fs.BoolVar(&o.list, "list", false, "list the benchmarks and run none")
	fs.StringVar(&o.json, "json", "", "add the figures to the JSON array in this file")
	fs.IntVar(&o.repeat, "repeat", 5, "how often each benchmark is run; the median counts")
	fs.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile to this file")
	fs.StringVar(&o.memProfile, "memprofile", "", "write a profile of all allocations to this file")
	fs.StringVar(&o.svg, "svg", "", "draw what a pod costs in clusters of growing size (D6) to this file")
	fs.StringVar(&o.trace, "trace", "../shared/data", "where the traces openb and lublin_256 are; without them their benchmarks are left out")
	fs.StringVar(&o.writeTrace, "write-trace", "", "write the openb trace as API objects into this directory, and measure nothing")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.run, err = regexp.Compile(pattern); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.repeat < 1:
		return o, fmt.Errorf("-repeat must be at least 1")
	}
	return o, nil
}

// decide runs the benchmarks and returns their problems.
func decide(ctx context.Context, chosen []benchmark, o options, stdout io.Writer, say progress) (problems []string, err error) {
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no benchmark matches %q; -list lists them", o.run)
	}
	stop, err := startProfile(o.cpuProfile)
	if err != nil {
		return nil, err
	}
	defer stop()
	var all []figures.Figure
	for _, b := range chosen {
		if b.skip != "" {
			say("%s is left out: %s", b.name, b.skip)
			continue
		}
		list, wrong, err := b.measure(ctx, o.repeat, say)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
		for _, w := range wrong {
			problems = append(problems, b.name+": "+w)
		}
		all = append(all, list...)
	}
	all = slices.Concat(all, growth(all), fragmentationCost(all))
	for _, f := range all {
		if f.Bound != nil && f.Value > *f.Bound {
			problems = append(problems, fmt.Sprintf("%s is %.2f %s, more than %g", f.Name, f.Value, f.Unit, *f.Bound))
		}
	}
	if err := writeAllocations(o.memProfile); err != nil {
		return nil, err
	}
	if err := writePlot(o.svg, all); err != nil {
		return nil, err
	}
	if o.json != "" {
		if _, err := figures.Add(o.json, all); err != nil {
			return nil, err
		}
	}
	return problems, figures.Table(stdout, all)
}

func startProfile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close() // already written
	}, nil
}

func writeAllocations(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	runtime.GC() // the profile is as of the last collection
	return pprof.Lookup("allocs").WriteTo(f, 0)
}
