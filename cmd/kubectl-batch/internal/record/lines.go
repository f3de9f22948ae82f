// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// Flush writes the jobs that have had no pods for a while.
func (b *Builder) Flush(at time.Duration) {
	for _, key := range slices.Sorted(maps.Keys(b.jobs)) {
		if j := b.jobs[key]; len(j.pods) == 0 && at-j.ended >= Linger {
			b.writeJob(j, at)
		}
	}
}

// writeJob writes a job and forgets it. It has ended, or the record does now.
func (b *Builder) writeJob(j *job, now time.Duration) {
	delete(b.jobs, j.key)
	b.disinherit(j)
	if !j.complete {
		b.lost["jobs left out: too few of their pods existed, or their PodGroup did not"]++
		return
	}
	for _, what := range j.lost {
		b.lost["jobs recorded without their "+what]++
	}
	line, cancelled := b.lineOf(j, now)
	b.write(b.out.Job(&line))
	if cancelled {
		b.write(b.out.Cancel(trace.Cancel{At: j.ended, Job: line.ID}))
	}
	if len(j.pods) == 0 {
		b.counts.Ended++
	}
}

// lineOf returns a job as the trace has it, and whether it was deleted before it ran.
func (b *Builder) lineOf(j *job, now time.Duration) (line trace.Job, cancelled bool) {
	line = trace.Job{
		ID: b.uniqueName(j.name), Queue: b.names.name(cmp.Or(j.queue[:]...)), Priority: j.priority, Submit: j.submit, Limit: j.limit,
		Expected: j.expected,
	}
	if j.declared > 0 && (j.limit == 0 || j.declared < j.limit) {
		line.Limit = j.declared
	}
	if j.ofGroup != nil {
		line.Priority = *j.ofGroup
	}
	if j.submit == 0 && j.created.Before(b.Began) {
		line.Age = b.Began.Sub(j.created).Truncate(time.Second)
	}
	ran := b.ranBefore(j)
	line.Limit, line.Expected = restOf(line.Limit, ran), restOf(line.Expected, ran)
	switch {
	case len(j.pods) == 0 && j.runs > 0:
		last := j.ends[max(0, len(j.ends)-max(j.least, 1)):]
		line.Run = max(0, mean(last)-j.began).Round(time.Microsecond)
	case len(j.pods) == 0:
		line.Unended, cancelled = true, true
	case j.atWork:
		line.Run, line.Unended = now-j.began, true
	default:
		line.Unended = true
	}
	b.addSets(&line, j)
	return line, cancelled
}

// ranBefore returns for how long a gang had run when the record began: since enough of its pods had nodes. 0 if it did not run,
// or no pod shows since when.
func (b *Builder) ranBefore(j *job) time.Duration {
	var starts []int64
	for _, p := range j.before {
		if p.started > 0 {
			starts = append(starts, p.started)
		}
	}
	least := max(j.least, 1)
	if len(starts) < least {
		return 0
	}
	slices.Sort(starts)
	return max(b.Began.Sub(time.Unix(0, starts[least-1])), 0)
}

// restOf returns the rest of a declared run time, at least a second; 0 if none is declared.
func restOf(declared, ran time.Duration) time.Duration {
	if declared == 0 {
		return 0
	}
	return max(declared-ran.Truncate(time.Second), time.Second)
}

// mean returns the mean of times; 0 of none. The pods of a gang are bound, and end, one after the other; in a replay at once. With
// means, they hold their nodes for as long.
func mean(times []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, t := range times {
		sum += t / time.Duration(len(times))
	}
	return sum
}

// addSets adds the pods to a line: first those of the set with most pods, of which some may be surplus.
func (b *Builder) addSets(line *trace.Job, j *job) {
	sets := slices.DeleteFunc(slices.Clone(j.sets), func(s *set) bool { return s.most == 0 })
	slices.SortStableFunc(sets, func(a, b *set) int { return cmp.Compare(b.most, a.most) })
	further := 0
	for i, s := range sets {
		if i == 0 {
			line.Request, line.Replicas = s.Request, s.most
			line.Selector, line.Tolerations = b.names.selector(s.Selector), b.names.tolerations(s.Tolerations)
			continue
		}
		further += s.most
		line.Roles = append(line.Roles, trace.Role{
			Pods: s.most, Request: s.Request, Selector: b.names.selector(s.Selector), Tolerations: b.names.tolerations(s.Tolerations),
		})
	}
	line.Replicas = max(line.Replicas, 1)
	line.Min = min(max(j.least-further, 1), line.Replicas)
	for _, s := range sets {
		line.Nodes = append(line.Nodes, b.nodesOf(j, s)...)
	}
	for len(line.Nodes) > 0 && line.Nodes[len(line.Nodes)-1] == "" {
		line.Nodes = line.Nodes[:len(line.Nodes)-1]
	}
}

// nodesOf returns the nodes of the pods of a set that ran when the record began, by pod; empty for its other pods.
func (b *Builder) nodesOf(j *job, s *set) []string {
	var before []placed
	for _, p := range j.before {
		if p.set == s {
			before = append(before, p)
		}
	}
	slices.SortFunc(before, func(a, b placed) int { return cmp.Compare(a.pod, b.pod) })
	nodes := make([]string, s.most)
	for i := range min(len(before), s.most) {
		nodes[i] = b.names.name(before[i].node)
	}
	return nodes
}

// uniqueName returns the name of a job, with a number if an earlier one has it.
func (b *Builder) uniqueName(name string) string {
	b.used[name]++
	if n := b.used[name]; n > 1 {
		return fmt.Sprintf("%s#%d", b.names.name(name), n)
	}
	return b.names.name(name)
}
