// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/batch-scheduler/batch-scheduler/internal/version"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/report"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/results"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// mostReplays is how many replays run at the same time. Each needs memory for all objects of the trace.
const mostReplays = 2

// experiment is one trace under one or more policies.
type experiment struct {
	*simulation
	in       replay.Input
	policies []variant
	manifest results.Manifest

	runs      []*results.Run      // of the trace itself; by policy
	summaries [][]*replay.Summary // by policy, then by replica
	complete  bool                // whether no replay was interrupted
}

// variant is one of the policies.
type variant struct {
	name string // for people and directories; unique
	text []byte // of the policy
}

func (s *simulation) newExperiment(ctx context.Context, p *program, t *trace.Trace, printf progressPrinter) (*experiment, error) {
	e := &experiment{simulation: s}
	var err error
	if e.policies, err = s.policyTexts(); err != nil {
		return nil, err
	}
	for _, policy := range e.policies { // all of them are checked before the first replay
		if _, _, err = e.parse(p, policy); err != nil {
			return nil, err
		}
	}
	if e.in, err = s.replayInput(ctx, t, printf); err != nil {
		return nil, err
	}
	if err = e.setManifest(); err != nil {
		return nil, err
	}
	t.Scale(s.arrivals)
	e.runs = make([]*results.Run, len(e.policies))
	e.summaries = make([][]*replay.Summary, len(e.policies))
	for i := range e.summaries {
		e.summaries[i] = make([]*replay.Summary, s.replicas)
	}
	return e, nil
}

// policyTexts returns the policies of --config and --compare, or those of --sweep.
func (s *simulation) policyTexts() ([]variant, error) {
	var list []variant
	for _, path := range append([]string{s.config}, s.compare...) {
		text := []byte(conf.DefaultYAML())
		if path != "" {
			var err error
			if text, err = conf.Read(path); err != nil {
				return nil, err
			}
		}
		name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		if path == "" {
			name = "built-in"
		}
		list = append(list, variant{name, text})
	}
	if len(s.sweep.values) > 0 {
		return s.sweep.policies(list[0])
	}
	seen := map[string]int{}
	for i, policy := range list {
		if seen[policy.name]++; seen[policy.name] > 1 {
			list[i].name = fmt.Sprintf("%s-%d", policy.name, seen[policy.name])
		}
	}
	return list, nil
}

// parse returns the configuration of a policy and its warnings, with a registry of its own.
func (e *experiment) parse(p *program, policy variant) (in replay.Input, warnings []conf.Warning, err error) {
	in = e.in
	if in.Registry, err = p.registry(); err != nil {
		return in, nil, err
	}
	in.Config, warnings, err = conf.Parse(policy.name, policy.text, in.Registry.Catalog())
	return in, warnings, err
}

func (e *experiment) setManifest() error {
	m := results.Manifest{
		Version: version.Version(), Workload: e.workload(), Jobs: len(e.in.Trace.Jobs), Nodes: e.nodeCount(),
		Options: results.OptionsManifest{
			DefaultQueue: e.scheduler.DefaultQueue, GangGrace: e.scheduler.GangGrace.String(), EvictionGrace: e.evictionGrace.String(),
			StartDelay: e.startDelay.String(), Restart: e.restart.String(), Until: e.until.String(), Arrivals: e.arrivals, Replicas: e.replicas, Seed: e.seed,
		},
	}
	var err, failed error
	m.Trace, err = results.HashTrace(e.in.Trace)
	m.Cluster, failed = results.HashCluster(&e.in)
	for _, policy := range e.policies {
		m.Policies = append(m.Policies, results.PolicyManifest{Name: policy.name, Hash: results.HashText(policy.text)})
	}
	e.manifest = m
	return cmp.Or(err, failed)
}

// nodeCount returns how many nodes the input and the trace have, whether or not they are there at the same time.
func (e *experiment) nodeCount() int {
	names := map[string]bool{}
	for _, n := range e.in.Nodes {
		names[n.Name] = true
	}
	for i := range e.in.Trace.Nodes {
		if change := &e.in.Trace.Nodes[i]; change.Defines() {
			names[change.Node] = true
		}
	}
	return len(names)
}

// workload returns the name of the trace, which does not depend on its format.
func (s *simulation) workload() string {
	base := filepath.Base(s.trace)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// run replays the trace and its replicas with each policy. If ctx ends, interrupted says when.
func (e *experiment) run(ctx context.Context, p *program, printf progressPrinter) (interrupted, err error) {
	traces := []*trace.Trace{e.in.Trace}
	for replica := 1; replica < e.replicas; replica++ {
		traces = append(traces, e.in.Trace.Resample(e.seed+uint64(replica)))
	}
	replays := len(e.policies) * len(traces)
	ended, errs := make([]bool, replays), make([]error, replays)
	var printing sync.Mutex
	workqueue.ParallelizeUntil(context.Background(), mostReplays, replays, func(n int) { // the replays watch ctx
		i, replica := n%len(e.policies), n/len(e.policies)
		policy := e.policies[i]
		show := func(format string, args ...any) {
			printing.Lock()
			defer printing.Unlock()
			if len(e.policies) > 1 {
				format = strings.ReplaceAll(policy.name, "%", "%%") + ": " + format
			}
			printf(format, args...)
		}
		var result *replay.Result
		if result, ended[n], errs[n] = e.replayOne(ctx, p, policy, traces[replica], replica == 0, remaining(p.clock, show)); result == nil {
			return
		}
		if e.summaries[i][replica] = &result.Summary; replica == 0 {
			e.runs[i] = &results.Run{Name: policy.name, Workload: e.workload(), Result: result}
		}
	})
	if err = errors.Join(errs...); err != nil {
		return nil, err
	}
	if e.complete = !slices.Contains(ended, false); !e.complete {
		reached := e.runs[0].Summary.Until
		for _, run := range e.runs {
			reached = min(reached, run.Summary.Until)
		}
		interrupted = fmt.Errorf("interrupted at %v of the trace: the results are those until then", time.Duration(reached*float64(time.Second)).Round(time.Second))
	}
	return interrupted, nil
}

// replayOne replays one trace with one policy, and reports whether it did so until its end.
func (e *experiment) replayOne(ctx context.Context, p *program, policy variant, t *trace.Trace, first bool, progress func(replay.Progress)) (*replay.Result, bool, error) {
	in, warnings, err := e.parse(p, policy)
	if err != nil {
		return nil, false, err
	}
	noted := *t
	for _, warning := range warnings {
		noted.Notes = append(noted.Notes[:len(noted.Notes):len(noted.Notes)], warning.String())
	}
	in.Trace = &noted
	result, err := replay.Run(ctx, in, replay.Options{
		DefaultQueue: e.scheduler.DefaultQueue, GangGrace: e.scheduler.GangGrace, EvictionGrace: e.evictionGrace, Until: cmp.Or(e.until, t.Record.End),
		StartDelay: e.startDelay, Checkpoint: e.restart.checkpoint, Record: first && (e.writesFiles || len(e.compare) > 0), Progress: progress,
	})
	if err != nil && result != nil && ctx.Err() != nil {
		return result, false, nil
	}
	return result, true, err
}

// comparisons compares each policy with the first one.
func (e *experiment) comparisons() (list []*results.Comparison) {
	if len(e.compare) == 0 {
		return nil
	}
	for _, run := range e.runs[1:] {
		list = append(list, results.Compare(e.runs[0], run, e.seed))
	}
	return list
}

// sweepResult returns the results of --sweep; nil without it.
func (e *experiment) sweepResult() *results.Sweep {
	if len(e.sweep.values) == 0 {
		return nil
	}
	return results.NewSweep(e.sweep.key, e.sweep.values, e.runs)
}

// replicaResults returns the results of --replicas; nil without it.
func (e *experiment) replicaResults() (list []*results.Replicas) {
	if e.replicas == 1 || !e.complete {
		return nil
	}
	for i, policy := range e.policies {
		list = append(list, &results.Replicas{Policy: policy.name, Summaries: e.summaries[i]})
	}
	return list
}

// writeText writes what the terminal shows.
func (e *experiment) writeText(w io.Writer) error {
	var errs []error
	switch sweep := e.sweepResult(); {
	case sweep != nil:
		errs = append(errs, sweep.WriteText(w))
	case len(e.runs) > 1:
		errs = append(errs, results.WriteMeasures(w, e.runs))
	default:
		errs = append(errs, results.WriteSummary(w, &e.runs[0].Summary))
	}
	for _, c := range e.comparisons() {
		errs = append(errs, c.WriteText(w, e.runs[0].Summary.SizeUnit))
	}
	if replicas := e.replicaResults(); replicas != nil {
		errs = append(errs, results.WriteReplicas(w, replicas))
	}
	return errors.Join(errs...)
}

// writeFiles writes the result files: those of the only policy into the directory, those of several into directories of their
// names below it.
func (e *experiment) writeFiles(dir string) error {
	var files []results.File
	if len(e.runs) == 1 {
		files = e.runs[0].Files()
	} else {
		files = append(files, results.File{Name: "summary.txt", Write: e.writeText})
		for _, run := range e.runs {
			if err := results.Write(filepath.Join(dir, run.Name), run.Files()); err != nil {
				return err
			}
		}
	}
	page := report.Page{
		Workload: e.workload(), Nodes: e.nodeCount(), Runs: e.runs,
		Comparisons: e.comparisons(), Sweep: e.sweepResult(), Replicas: e.replicaResults(),
	}
	if v := version.Version(); v != version.Unknown {
		page.Version = v
	}
	add := func(name string, value any) {
		files = append(files, results.File{Name: name, Write: func(w io.Writer) error { return results.WriteJSON(w, value) }})
	}
	if page.Comparisons != nil {
		add("comparisons.json", page.Comparisons)
	}
	if page.Sweep != nil {
		add("sweep.json", page.Sweep)
	}
	add("manifest.json", &e.manifest)
	return results.Write(dir, append(files, results.File{Name: "report.html", Write: page.Write}))
}
