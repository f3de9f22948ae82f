// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// gangSize is the size from which on Summary.Gangs counts a job: as many GPUs as most nodes have.
const gangSize = 8

// sizeSteps are the least sizes of the size classes after that of 0 and 1.
var sizeSteps = [...]int64{0, 1, 2, gangSize, 32, 128, 512}

// result returns the state of the replay.
func (r *replay) result() *Result {
	result := &Result{Jobs: []Job{}}
	work := make([]float64, len(r.usage.names)) // that was not lost, in units times seconds
	for _, j := range r.jobs {
		if j.state == "" {
			continue
		}
		kept := j.kept
		if j.atWork {
			kept += r.clock.at - j.began
		}
		for i, name := range r.usage.names {
			work[i] += kept.Seconds() * j.Total(name)
		}
		if j.runs == 0 {
			r.recorder.started(j, r.clock.at)
		}
		reason, part := j.why.longest()
		result.Jobs = append(result.Jobs, Job{
			ID: j.ID, Queue: j.queue, State: j.state, Size: j.Pods(), Gang: j.Gang(), GPUs: j.GPUs(), Request: j.Request, Limit: j.Limit,
			Submit: j.Submit, Start: j.first, End: j.ended, Run: j.Run, Runs: j.runs, Evictions: j.evictions, Lost: j.lost, Kept: kept,
			Nodes: j.nodes, Domains: j.domains, Reason: reason, ReasonPart: part,
		})
	}
	s := &result.Summary
	s.measure(result.Jobs, (len(r.Nodes)+1)/2, r.clock.at)
	s.Until, s.Sessions, s.Evictions = r.clock.at.Seconds(), r.sessionCount, r.evicted
	used := r.usedUntilEnd
	if r.done < len(result.Jobs) || used.total == nil {
		used = r.usage.snapshot()
		r.domains.mark()
	}
	s.Utilisation, s.Goodput = used.utilisation(r.usage.names, used.held), used.utilisation(r.usage.names, work)
	s.Levels = r.domains.summaries(result.Jobs)
	s.Notes = append([]string{}, r.Trace.Notes...)
	if r.recorder != nil {
		result.Record = &r.recorder.Record
		s.measureRecord(result.Jobs, r.recorder, r.clock.at)
	}
	return result
}

// measure sets what follows from the jobs.
func (s *Summary) measure(jobs []Job, large int, now time.Duration) {
	s.Jobs, s.LargeJobPods = len(jobs), large
	var waits []float64
	var slowdown float64
	var end time.Duration
	for i := range jobs {
		j := &jobs[i]
		switch j.State {
		case Completed:
			s.Completed++
			slowdown += j.Slowdown()
		case Cancelled:
			s.Cancelled++
		case Running:
			s.Running++
		case Pending:
			s.Pending++
		}
		end = max(end, j.End)
		s.LostPodSeconds += j.Lost.Seconds() * float64(j.Gang)
		if j.Size >= large {
			s.LargeJobs++
		}
		if j.Runs == 0 {
			continue
		}
		waits = append(waits, j.Wait().Seconds())
		if j.Size >= large {
			s.LongestLargeWait = max(s.LongestLargeWait, j.Wait().Seconds())
		}
	}
	if len(jobs) > 0 {
		s.Makespan = max(0, (end - jobs[0].Submit).Seconds())
	}
	if s.Completed > 0 {
		s.MeanBoundedSlowdown = round(slowdown / float64(s.Completed))
	}
	s.Wait = waitOf(waits)
	s.measureSizes(jobs, now)
}

// measureSizes sets the waits by size. A policy under which large jobs never start must not look as if they did not wait, so
// these count with their wait until now.
func (s *Summary) measureSizes(jobs []Job, now time.Duration) {
	s.SizeUnit, s.GangSize, s.Sizes = "pods", gangSize, []SizeClass{}
	if slices.ContainsFunc(jobs, func(j Job) bool { return j.GPUs > 0 }) {
		s.SizeUnit = "GPUs"
	}
	var started [len(sizeSteps)]int
	var waits [len(sizeSteps)][]float64
	var gangs []float64
	for i := range jobs {
		j, size := &jobs[i], s.SizeOf(&jobs[i])
		class := len(sizeSteps) - 1
		for sizeSteps[class] > size {
			class--
		}
		if j.Runs > 0 {
			started[class]++
		}
		wait := j.WaitUntil(now).Seconds()
		if waits[class] = append(waits[class], wait); size >= gangSize {
			gangs = append(gangs, wait)
		}
	}
	s.Gangs = waitOf(gangs)
	for i := range waits {
		if len(waits[i]) == 0 {
			continue
		}
		class := SizeClass{Least: sizeSteps[i], Jobs: len(waits[i]), Started: started[i], Wait: waitOf(waits[i])}
		if i+1 < len(sizeSteps) {
			class.Most = sizeSteps[i+1] - 1
		}
		s.Sizes = append(s.Sizes, class)
	}
}

// SizeOf returns the size of a job in the unit of the size classes.
func (s *Summary) SizeOf(j *Job) int64 {
	if s.SizeUnit == "GPUs" {
		return j.GPUs
	}
	return int64(j.Gang)
}

// measureRecord sets what follows from what was recorded.
func (s *Summary) measureRecord(jobs []Job, c *recorder, now time.Duration) {
	s.Queues = c.shares.summaries(now)
	s.Jain = jain(s.Queues)
	counts, waits := map[string]int{}, map[string][]float64{}
	for i := range jobs {
		j := &jobs[i]
		counts[j.Queue]++
		if j.Runs > 0 {
			waits[j.Queue] = append(waits[j.Queue], j.Wait().Seconds())
		}
		if wait := j.WaitUntil(now).Seconds(); wait > 0 && (s.Longest == nil || wait > s.Longest.Seconds) {
			s.Longest = &LongestWait{Job: j.ID, Seconds: wait, Reason: j.Reason, Part: j.ReasonPart}
		}
	}
	resource := v1.ResourceName("")
	if c.Main >= 0 {
		resource = c.Resources[c.Main]
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		q.Jobs, q.Wait, q.Resource = counts[q.Name], waitOf(waits[q.Name]), resource
	}
}

// waitOf returns the distribution of some waits, which it sorts. A percentile is the least wait that is not exceeded by this
// part of the jobs.
func waitOf(waits []float64) Wait {
	if len(waits) == 0 {
		return Wait{}
	}
	slices.Sort(waits)
	var sum float64
	for _, w := range waits {
		sum += w
	}
	at := func(part float64) float64 { return waits[int(math.Ceil(part*float64(len(waits))))-1] }
	return Wait{Mean: round(sum / float64(len(waits))), P50: at(.5), P95: at(.95), P99: at(.99), Max: at(1)}
}
