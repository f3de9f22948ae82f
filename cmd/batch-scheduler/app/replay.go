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
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/results"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

const longReplay = `

With --trace, simulate runs the scheduler over a log of jobs instead, on a virtual clock that
jumps from event to event: a month takes seconds. Jobs arrive, wait, run for the time that
the log states, and end; evicted pods start from the beginning, or from a checkpoint. The
nodes are those of --nodes, --objects or --from-cluster, and of the other objects only
Queues, PriorityClasses and Topologies count. What "kubectl batch record" writes has its own
nodes and queues. simulate prints a summary, and writes result files and the page report.html
into the directory of --output. With --compare and --sweep it runs several policies and
compares them job by job. Equal input gives equal files.`

const exampleReplay = `
  batch-scheduler simulate --trace jobs.swf --nodes 256 -o results
  batch-scheduler simulate --trace jobs.jsonl --nodes count=552,cpu=64,memory=512Gi,nvidia.com/gpu=8
  batch-scheduler simulate --trace jobs.jsonl --from-cluster --config policy.yaml --arrivals 1.2
  batch-scheduler simulate --trace recorded.jsonl --config policy.yaml
  batch-scheduler simulate --trace jobs.swf --nodes 256 --compare policy.yaml -o results
  batch-scheduler simulate --trace jobs.swf --nodes 256 --sweep starvationAfter=0,10m,1h -o results
  batch-scheduler simulate --trace jobs.swf --convert jobs.jsonl`

// replaying holds the flags of simulate --trace.
type replaying struct {
	trace, format  string
	nodes          []string
	topology       []string
	rules          []trace.Rule // of topology
	until          time.Duration
	arrivals       float64
	evictionGrace  time.Duration
	stepsPerSecond float64
	startDelay     time.Duration
	restart        restart
	sweep          sweep
	replicas       int
	seed           uint64
	convert        string
}

func newReplaying() replaying {
	return replaying{arrivals: 1, evictionGrace: 30 * time.Second, stepsPerSecond: 10, replicas: 1, seed: 1}
}

// only are the flags that need --trace.
func (r *replaying) only() []string {
	return []string{
		"format", "nodes", "topology", "until", "arrivals", "eviction-grace", "steps-per-second", "start-delay", "restart", "sweep", "replicas", "seed", "convert",
	}
}

func (r *replaying) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&r.trace, "trace", r.trace, "Path of a log of jobs to run the scheduler over.")
	fs.StringVar(&r.format, "format", r.format, "Format of the trace: "+strings.Join(trace.Formats(), ", ")+". If empty, the file name decides.")
	fs.StringArrayVar(&r.nodes, "nodes", r.nodes,
		"Nodes of the trace: a number of nodes of one CPU; amounts, as in count=4,cpu=64,memory=512Gi,nvidia.com/gpu=8, with domain:rack=2 for two nodes per rack; or the nodes file of openb, spot or pai. Can be repeated.")
	fs.StringArrayVar(&r.topology, "topology", r.topology,
		"Topology constraint of jobs without one, as in required=rack,from=8: gangs of 8 pods or more run in one rack. Can be repeated; the rule with the largest from counts.")
	fs.DurationVar(&r.until, "until", r.until, "End at this time of the trace, such as 720h. If 0, at the end of a record, or when nothing is left to happen.")
	fs.Float64Var(&r.arrivals, "arrivals", r.arrivals, "Multiply the rate of the arrivals in the trace.")
	fs.DurationVar(&r.evictionGrace, "eviction-grace", r.evictionGrace, "How long an evicted pod of the trace holds its resources.")
	fs.Var(&r.restart, "restart", "What a run keeps that evictions or failures of nodes end: lost is nothing, and checkpoint=30m is the work until the last multiple of 30 minutes.")
	fs.DurationVar(&r.startDelay, "start-delay", r.startDelay, "How long the containers of a gang start before its run begins.")
	fs.Var(&r.sweep, "sweep", "Values of a key of the policy, such as starvationAfter=1m,5m,30m or nodeorder/mostrequested.weight=0,1; each is simulated.")
	fs.IntVar(&r.replicas, "replicas", r.replicas, "Simulate this many traces: the given one, and others with users drawn at random and another beginning.")
	fs.Uint64Var(&r.seed, "seed", r.seed, "Seed of --replicas, and of the intervals of --compare.")
	fs.StringVar(&r.convert, "convert", r.convert, "Write the trace in the format jsonl to this file, or - for standard output, and do not simulate.")
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
	for _, name := range []string{"cycles", "scheduler-name"} {
		if fs.Changed(name) {
			errs.add(name, "has no meaning with --trace")
		}
	}
	if len(s.compare) > 0 && len(r.sweep.values) > 0 {
		errs.add("sweep", "cannot be combined with --compare")
	}
	if r.convert == "" && r.format != "jsonl" && len(r.nodes) == 0 && !s.fromCluster && s.objects == "" {
		errs.add("nodes", noNodes)
	}
	if fs.Changed("output") && slices.Contains([]string{"", "text", "json", "html"}, s.output) {
		errs.add("output", "is a directory with --trace; for one of this name, write %q", "./"+s.output)
	}
	for _, text := range r.topology {
		rule, err := trace.ParseRule(text)
		if err != nil {
			errs.add("topology", "%v", err)
		}
		r.rules = append(r.rules, rule)
	}
	if r.until < 0 {
		errs.add("until", "must not be negative, but is %v", r.until)
	}
	if r.evictionGrace < 0 {
		errs.add("eviction-grace", "must not be negative, but is %v", r.evictionGrace)
	}
	if r.startDelay < 0 {
		errs.add("start-delay", "must not be negative, but is %v", r.startDelay)
	}
	if r.replicas < 1 {
		errs.add("replicas", "must be at least 1, not %d", r.replicas)
	}
	if !(r.arrivals >= 0.001 && r.arrivals <= 1000) {
		errs.add("arrivals", "must be from 0.001 to 1000, not %v", r.arrivals)
	}
	if !(r.stepsPerSecond > 0) {
		errs.add("steps-per-second", "must be positive, not %v", r.stepsPerSecond)
	}
}

// replay reads the input, replays the trace with each policy, and writes the results. If ctx ends, they are those until then.
func (s *simulation) replay(ctx context.Context, p *program, stdout io.Writer, printf progressPrinter) error {
	t, err := s.readTrace()
	if err != nil {
		return err
	}
	if s.convert != "" {
		return writeTrace(s.convert, t, stdout)
	}
	e, err := s.newExperiment(ctx, p, t, printf)
	if err != nil {
		return err
	}
	interrupted, err := e.run(ctx, p, printf)
	if err != nil {
		return err
	}
	if s.writesFiles {
		if err = e.writeFiles(s.output); err != nil {
			return err
		}
	}
	return errors.Join(e.writeText(stdout), interrupted)
}

// readTrace reads the trace.
func (s *simulation) readTrace() (*trace.Trace, error) {
	file, err := os.Open(s.trace)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	defer file.Close()
	beside := func(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(filepath.Dir(s.trace), name)) }
	t, err := trace.Read(s.format, s.trace, file, trace.Options{StepsPerSecond: s.stepsPerSecond, Open: beside})
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	trace.Constrain(t, s.rules)
	return t, nil
}

// writeTrace writes a trace in the format jsonl.
func writeTrace(path string, t *trace.Trace, stdout io.Writer) error {
	if path == "-" {
		return t.WriteJSONL(stdout)
	}
	if err := results.Write(filepath.Dir(path), []results.File{{Name: filepath.Base(path), Write: t.WriteJSONL}}); err != nil {
		return fmt.Errorf("--convert: %w", err)
	}
	return nil
}

// replayInput returns all that replays have in common.
func (s *simulation) replayInput(ctx context.Context, t *trace.Trace, printf progressPrinter) (replay.Input, error) {
	in := replay.Input{Trace: t}
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
	if err := s.addTopology(&in); err != nil {
		return in, err
	}
	if len(in.Nodes) == 0 && !slices.ContainsFunc(in.Trace.Nodes, func(e trace.NodeEvent) bool { return e.Defines() }) {
		return in, errors.New("--nodes: " + noNodes)
	}
	return in, uniqueNames(in.Nodes)
}

// addTopology adds the Topology that --nodes describe, unless the objects have one.
func (s *simulation) addTopology(in *replay.Input) error {
	if len(in.Topologies) > 0 {
		return nil
	}
	topology, err := trace.Topology(s.nodes)
	if err != nil {
		return fmt.Errorf("--nodes: %w", err)
	}
	if topology != nil {
		in.Topologies = append(in.Topologies, topology)
	}
	return nil
}

// readNodes returns the nodes of a table, or of a specification.
func readNodes(spec string) ([]*v1.Node, error) {
	if filepath.Ext(spec) != ".csv" {
		return trace.Nodes(spec)
	}
	file, err := os.Open(spec)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return trace.ReadNodes(spec, file)
}

// addObjects adds the nodes, queues and priority classes of the cluster or of files.
func (s *simulation) addObjects(ctx context.Context, in *replay.Input, printf progressPrinter) error {
	objects, err := s.read(ctx, nil, printf)
	if err != nil {
		return err
	}
	in.Nodes = append(in.Nodes, simulate.ObjectsOf[*v1.Node](objects)...)
	in.Queues = simulate.ObjectsOf[*v1alpha1.Queue](objects)
	in.Topologies = simulate.ObjectsOf[*v1alpha1.Topology](objects)
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
