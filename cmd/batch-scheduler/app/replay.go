// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

const longReplay = `

With --trace, simulate runs the scheduler over a log of jobs instead, on a virtual clock that
jumps from event to event: a month takes seconds. Jobs arrive, wait, run for the time that
the log states, and end; evicted pods start from the beginning. The nodes are those of
--nodes, --objects or --from-cluster, and of the other objects only Queues and
PriorityClasses count. What "kubectl batch record" writes has its own nodes and queues.
simulate prints a summary, and writes jobs.csv, summary.json and summary.txt into the
directory of --output. Equal input gives equal files.`

const exampleReplay = `
  batch-scheduler simulate --trace jobs.swf --nodes 256 -o results
  batch-scheduler simulate --trace jobs.jsonl --nodes count=552,cpu=64,memory=512Gi,nvidia.com/gpu=8
  batch-scheduler simulate --trace jobs.jsonl --from-cluster --config policy.yaml --arrivals 1.2
  batch-scheduler simulate --trace recorded.jsonl --config policy.yaml`

// replaying holds the flags of simulate --trace.
type replaying struct {
	trace, format  string
	nodes          []string
	until          time.Duration
	arrivals       float64
	evictionGrace  time.Duration
	stepsPerSecond float64
}

func newReplaying() replaying {
	return replaying{arrivals: 1, evictionGrace: 30 * time.Second, stepsPerSecond: 10}
}

// only are the flags that need --trace.
func (r *replaying) only() []string {
	return []string{"format", "nodes", "until", "arrivals", "eviction-grace", "steps-per-second"}
}

func (r *replaying) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&r.trace, "trace", r.trace, "Path of a log of jobs to run the scheduler over.")
	fs.StringVar(&r.format, "format", r.format, "Format of the trace: "+strings.Join(trace.Formats(), ", ")+". If empty, the file name decides.")
	fs.StringArrayVar(&r.nodes, "nodes", r.nodes,
		"Nodes of the trace: a number of nodes of one CPU; amounts, as in count=4,cpu=64,memory=512Gi,nvidia.com/gpu=8; or the nodes file of openb. Can be repeated.")
	fs.DurationVar(&r.until, "until", r.until, "End at this time of the trace, such as 720h. If 0, at the end of a record, or when nothing is left to happen.")
	fs.Float64Var(&r.arrivals, "arrivals", r.arrivals, "Multiply the rate of the arrivals in the trace.")
	fs.DurationVar(&r.evictionGrace, "eviction-grace", r.evictionGrace, "How long an evicted pod of the trace holds its resources.")
	fs.Float64Var(&r.stepsPerSecond, "steps-per-second", r.stepsPerSecond, "Speed of the jobs in a trace of gavel, which states steps instead of times.")
}

// noNodes is the error of a trace that has no nodes itself.
const noNodes = "the trace needs nodes: set --nodes, --objects or --from-cluster"

func (r *replaying) validate(s *simulation, fs *pflag.FlagSet, errs *flagErrors) {
	if r.trace == "" {
		for _, name := range r.only() {
			if fs.Changed(name) {
				errs.add(name, "needs --trace")
			}
		}
		return
	}
	if r.format == "" {
		r.format = trace.FormatOf(r.trace)
	}
	if r.format == "" {
		errs.add("format", "the name of %s does not imply it; known formats: %s", r.trace, strings.Join(trace.Formats(), ", "))
	} else if err := trace.CheckFormat(r.format); err != nil {
		errs.add("format", "%v", err)
	}
	for _, name := range []string{"compare", "cycles", "scheduler-name"} {
		if fs.Changed(name) {
			errs.add(name, "has no meaning with --trace")
		}
	}
	if r.format != "jsonl" && len(r.nodes) == 0 && !s.fromCluster && s.objects == "" {
		errs.add("nodes", noNodes)
	}
	if fs.Changed("output") && slices.Contains([]string{"", "text", "json", "html"}, s.output) {
		errs.add("output", "is a directory with --trace; for one of this name, write %q", "./"+s.output)
	}
	if r.until < 0 {
		errs.add("until", "must not be negative, but is %v", r.until)
	}
	if r.evictionGrace < 0 {
		errs.add("eviction-grace", "must not be negative, but is %v", r.evictionGrace)
	}
	if !(r.arrivals >= 0.001 && r.arrivals <= 1000) {
		errs.add("arrivals", "must be from 0.001 to 1000, not %v", r.arrivals)
	}
	if !(r.stepsPerSecond > 0) {
		errs.add("steps-per-second", "must be positive, not %v", r.stepsPerSecond)
	}
}

// replay reads the input, replays the trace, and writes the results. If ctx ends, the results are those until then.
func (s *simulation) replay(ctx context.Context, p *program, stdout io.Writer, printf progressPrinter) error {
	in, err := s.replayInput(ctx, p, printf)
	if err != nil {
		return err
	}
	if s.until == 0 {
		s.until = in.Trace.Record.End
	}
	result, err := replay.Run(ctx, in, replay.Options{
		DefaultQueue: s.scheduler.DefaultQueue, GangGrace: s.scheduler.GangGrace, EvictionGrace: s.evictionGrace, Until: s.until,
		Progress: remaining(p.clock, printf),
	})
	if result == nil {
		return err
	}
	if err != nil {
		err = fmt.Errorf("interrupted at %v of the trace: the results are those until then", time.Duration(result.Summary.Until*float64(time.Second)).Round(time.Second))
	}
	if s.writesFiles {
		if failed := result.WriteFiles(s.output); failed != nil {
			return failed
		}
	}
	return errors.Join(result.Summary.WriteText(stdout), err)
}

func (s *simulation) replayInput(ctx context.Context, p *program, printf progressPrinter) (replay.Input, error) {
	policy, err := s.policy(p, s.config)
	if err != nil {
		return replay.Input{}, err
	}
	in := replay.Input{Config: policy.Configuration, Registry: policy.Registry}
	file, err := os.Open(s.trace)
	if err != nil {
		return in, fmt.Errorf("--trace: %w", err)
	}
	defer file.Close()
	if in.Trace, err = trace.Read(s.format, s.trace, file, trace.Options{StepsPerSecond: s.stepsPerSecond}); err != nil {
		return in, fmt.Errorf("--trace: %w", err)
	}
	in.Trace.Scale(s.arrivals)
	for _, warning := range policy.Warnings {
		in.Trace.Notes = append(in.Trace.Notes, warning.String())
	}
	for _, spec := range s.nodes {
		nodes, err := readNodes(spec)
		if err != nil {
			return in, fmt.Errorf("--nodes: %w", err)
		}
		in.Nodes = append(in.Nodes, nodes...)
	}
	if s.fromCluster || s.objects != "" {
		if err := s.addObjects(ctx, &in, printf); err != nil {
			return in, err
		}
	}
	if len(in.Nodes) == 0 && !slices.ContainsFunc(in.Trace.Nodes, func(e trace.NodeEvent) bool { return e.Defines() }) {
		return in, errors.New("--nodes: " + noNodes)
	}
	return in, uniqueNames(in.Nodes)
}

// readNodes returns the nodes of a file of openb, or of a specification.
func readNodes(spec string) ([]*v1.Node, error) {
	if filepath.Ext(spec) != ".csv" {
		return trace.Nodes(spec)
	}
	file, err := os.Open(spec)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return trace.ReadOpenbNodes(spec, file)
}

// addObjects adds the nodes, queues and priority classes of the cluster or of files.
func (s *simulation) addObjects(ctx context.Context, in *replay.Input, printf progressPrinter) error {
	objects, err := s.read(ctx, nil, printf)
	if err != nil {
		return err
	}
	in.Nodes = append(in.Nodes, simulate.ObjectsOf[*v1.Node](objects)...)
	in.Queues = simulate.ObjectsOf[*v1alpha1.Queue](objects)
	in.PriorityClasses = simulate.ObjectsOf[*schedulingv1.PriorityClass](objects)
	if len(in.Nodes) == 0 && len(in.Trace.Nodes) == 0 {
		return errors.New("there are no nodes among the objects; --nodes describes some")
	}
	return nil
}

func uniqueNames(nodes []*v1.Node) error {
	seen := map[string]bool{}
	for _, n := range nodes {
		if seen[n.Name] {
			return fmt.Errorf("there are two nodes %s; name=NAME in --nodes sets the beginning of their names", n.Name)
		}
		seen[n.Name] = true
	}
	return nil
}

// remaining returns a function that prints how far a replay is, and how long it will take.
func remaining(c clock.PassiveClock, printf progressPrinter) func(replay.Progress) {
	began := c.Now()
	return func(p replay.Progress) {
		left := "unknown"
		if p.Done > 0 {
			left = time.Duration(float64(c.Since(began)) / float64(p.Done) * float64(p.Jobs-p.Done)).Round(time.Second).String()
		}
		printf("%d of %d jobs ended, at %v of the trace; remaining time %s", p.Done, p.Jobs, p.At.Round(time.Second), left)
	}
}
