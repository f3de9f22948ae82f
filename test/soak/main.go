// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Soak runs a random scenario against the scheduler and checks that the scheduler keeps its guarantees.
//
//	make soak MINUTES=20
//	go run ./test/soak -minutes 20 -seed 7
//
// It runs a real API server with simulated kubelets, the scheduler as a separate process under its own service
// account with all four actions, and a checker that reads only from watches. The scenario creates, scales and deletes
// jobs, stops and restores nodes, changes queues and priorities, binds pods with another client, and stops and kills
// the scheduler. At the end it restores the cluster, and all pods that fit must run. The exit code is 1 if a
// guarantee was violated.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/checker"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/harness"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/scenario"
)

// reportPeriod is how often progress is reported.
const reportPeriod = 30 * time.Second

const usage = `Soak runs a random scenario against the scheduler on a local cluster, and checks that it keeps its
guarantees. Exit codes: 0 success, 1 a guarantee was violated, 2 the soak itself failed. Ctrl-C ends it with the counts so far.

  -minutes n   length of the scenario; the final checks take 1 to 3 minutes more (default 10)
  -seed n      the seed of the scenario; 0 draws one (default 0)
  -plain       run the scheduler as released, without race detector and audits of its model
  -keep        keep the logs and a journal of all that happened, also on success
  -steps       only print the scenario
`

// options are the flags.
type options struct {
	minutes float64
	seed    uint64
	plain   bool
	steps   bool
	keep    bool
}

func main() {
	klog.SetLogger(logr.Discard()) // clients log requests that are cancelled at the end
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out io.Writer) int {
	o, err := parse(args)
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(out, "soak: %v\n\n", err)
		}
		fmt.Fprint(out, usage)
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	length := time.Duration(o.minutes * float64(time.Minute))
	steps := scenario.Draw(o.seed, length)
	if o.steps {
		for _, s := range steps {
			fmt.Fprintf(out, "%9.3f  %s\n", s.At.Seconds(), s)
		}
		return 0
	}
	began := time.Now()
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%7s  %s\n", time.Since(began).Round(time.Second), fmt.Sprintf(format, args...))
	}
	say("seed %d: %d steps in %s", o.seed, len(steps), length)
	code, err := soak(ctx, o, steps, say)
	switch {
	case err != nil && ctx.Err() != nil:
		say("interrupted")
	case err != nil:
		say("the soak failed: %v", err)
		code = max(code, 2)
	}
	say("seed %d: exit code %d", o.seed, code)
	return code
}

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("soak", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Float64Var(&o.minutes, "minutes", 10, "")
	fs.Uint64Var(&o.seed, "seed", 0, "")
	fs.BoolVar(&o.plain, "plain", false, "")
	fs.BoolVar(&o.keep, "keep", false, "")
	fs.BoolVar(&o.steps, "steps", false, "")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if !(o.minutes > 0 && o.minutes <= 7*24*60) {
		return o, fmt.Errorf("-minutes %v: want more than 0, and a week at most", o.minutes)
	}
	if o.seed == 0 {
		o.seed = 1 + uint64(rand.IntN(1_000_000))
	}
	return o, nil
}

// soak starts the harness, plays the scenario, and reports the result.
func soak(ctx context.Context, o options, steps []scenario.Step, say func(string, ...any)) (code int, err error) {
	dir, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return 2, err
	}
	s, err := harness.NewHarness(ctx, harness.Options{Dir: dir, Race: !o.plain, Say: say})
	if err != nil {
		return 2, err
	}
	r := &reporter{harness: s, say: say}
	err = play(ctx, s, r, steps)
	if ctx.Err() == nil && err == nil {
		s.Close() // a scheduler may have logged errors at its end
	} else {
		defer s.Close()
	}
	code = r.conclude()
	if code == 0 && (err == nil || ctx.Err() != nil) && !o.keep {
		return code, errors.Join(err, os.RemoveAll(dir))
	}
	say("the logs and a journal of all that happened are in %s", dir)
	return code, errors.Join(err, r.write(filepath.Join(dir, "journal.txt")))
}

// play runs the scenario and reports progress meanwhile.
func play(ctx context.Context, s *harness.Harness, r *reporter, steps []scenario.Step) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil)
	before, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	beside.Go(func() { s.Ticks(ctx) })
	beside.Go(func() { r.progress(ctx) })
	beside.Go(func() {
		select {
		case lost := <-s.Lost():
			cancel(lost)
		case <-ctx.Done():
		}
	})
	if err = s.Play(ctx, steps); err != nil {
		return err
	}
	return s.End(ctx, before)
}

// reporter reports progress.
type reporter struct {
	harness  *harness.Harness
	say      func(string, ...any)
	reported int // number of reported violations
}

// progress reports periodically until ctx ends.
func (r *reporter) progress(ctx context.Context) {
	look, report := time.NewTicker(time.Second), time.NewTicker(reportPeriod)
	defer look.Stop()
	defer report.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			r.violations()
		case <-report.C:
			r.report(ctx)
		}
	}
}

func (r *reporter) report(ctx context.Context) {
	vitals := "no scheduler"
	if v, err := r.harness.Vitals(ctx); err == nil {
		vitals = fmt.Sprintf("%.0f goroutines, %.1f MiB", v.Goroutines, v.Heap)
	}
	r.harness.Check(func(c *checker.Checker, _ time.Time) {
		t := c.Summary()
		evictions := 0
		for _, n := range t.Evictions {
			evictions += n
		}
		r.say("%d gangs started, %d pods bound, %d evicted; %d nodes lost, %d restarts; %d jobs pending; %s; %d violations",
			t.Started, t.Bound, evictions, t.NodesLost, t.Restarts, len(c.Waiting()), vitals, len(c.Violations()))
	})
}

// violations reports new violations.
func (r *reporter) violations() {
	var found []checker.Violation
	r.harness.Check(func(c *checker.Checker, _ time.Time) {
		all := c.Violations()
		found = all[min(r.reported, len(all)):] // violations can be retracted
		r.reported = len(all)
	})
	for _, v := range found {
		r.say("VIOLATION of %q at %s: %s\n    %s", v.Check, v.At.UTC().Format("15:04:05.000"), v.Text, strings.Join(v.Transcript, "\n    "))
	}
}

// conclude reports the results and returns the exit code.
func (r *reporter) conclude() int {
	r.violations()
	code := 0
	r.harness.Check(func(c *checker.Checker, _ time.Time) {
		r.say("summary:\n%s", c.Table())
		if len(c.Violations()) > 0 {
			code = 1
		}
	})
	return code
}

// write writes the journal to a file.
func (r *reporter) write(path string) error {
	var text string
	r.harness.Check(func(c *checker.Checker, _ time.Time) { text = c.Journal() })
	return os.WriteFile(path, []byte(text), 0o644)
}
