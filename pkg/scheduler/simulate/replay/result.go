// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// State is what became of a job.
type State string

// The states of jobs. A job that was not submitted before the replay ended has none of them.
const (
	Pending   State = "PENDING" // it waits for its first run, or for another one after an eviction
	Running   State = "RUNNING"
	Completed State = "COMPLETED"
	Cancelled State = "CANCELLED"
)

// Ended reports whether the job will not run again.
func (s State) Ended() bool { return s == Completed || s == Cancelled }

// leastRun is the bound of the bounded slowdown: shorter jobs count as if they ran as long.
const leastRun = 10 * time.Second

// Result is what a replay found out.
type Result struct {
	Summary Summary
	// Jobs are those that were submitted, in the order of submission.
	Jobs []Job
}

// Job is the result for a job. Times are of the trace.
type Job struct {
	ID, Queue string
	State     State
	Size      int // pods
	Submit    time.Duration
	Start     time.Duration // when the first run began; if Runs > 0
	End       time.Duration // if State.Ended
	Run       time.Duration
	Runs      int // begun
	Evictions int // of pods
	Lost      time.Duration
}

// Wait returns the time from submission to the first run.
func (j *Job) Wait() time.Duration { return j.Start - j.Submit }

// Slowdown returns the bounded slowdown: the time from submission to the end, relative to the run time, which counts as 10
// seconds if it is shorter; at least 1.
func (j *Job) Slowdown() float64 {
	return max(1, (j.End-j.Submit).Seconds()/max(j.Run, leastRun).Seconds())
}

// Summary are the measures of a replay. Its JSON is summary.json. Times are in seconds.
type Summary struct {
	Jobs      int `json:"jobs"` // submitted
	Completed int `json:"completed"`
	Cancelled int `json:"cancelled"`
	// Running and Pending are numbers of jobs at the end.
	Running int `json:"running"`
	Pending int `json:"pending"`
	// Until is the time of the trace at which the replay ended.
	Until float64 `json:"untilSeconds"`
	// Makespan is the time from the first submission until the last end.
	Makespan float64 `json:"makespanSeconds"`
	// Wait is about the jobs that have started.
	Wait Wait `json:"waitSeconds"`
	// MeanBoundedSlowdown is about the jobs that have completed.
	MeanBoundedSlowdown float64 `json:"meanBoundedSlowdown"`
	// LargeJobs are those with at least LargeJobPods pods, which is half the number of nodes.
	LargeJobs        int           `json:"largeJobs"`
	LargeJobPods     int           `json:"largeJobPods"`
	LongestLargeWait float64       `json:"longestWaitOfLargeJobsSeconds"`
	Utilisation      []Utilisation `json:"utilisation"` // from the first submission until the last end
	// Evictions are evicted pods, and LostPodSeconds the work of runs that did not complete.
	Evictions      int     `json:"evictions"`
	LostPodSeconds float64 `json:"lostPodSeconds"`
	Sessions       int     `json:"sessions"`
	// Notes state what was left out of the trace.
	Notes []string `json:"notes"`
}

// Wait is a distribution of times in seconds.
type Wait struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Utilisation is the part of a resource that pods held, from 0 to 1.
type Utilisation struct {
	Resource v1.ResourceName `json:"resource"`
	Part     float64         `json:"part"`
}

// result returns the state of the replay.
func (r *replay) result() *Result {
	result := &Result{Jobs: []Job{}}
	for _, j := range r.jobs {
		if j.state == "" {
			continue
		}
		queue := j.Queue
		if queue == "" {
			queue = r.DefaultQueue
		}
		result.Jobs = append(result.Jobs, Job{
			ID: j.ID, Queue: queue, State: j.state, Size: j.Replicas, Submit: j.Submit, Start: j.first, End: j.ended, Run: j.Run,
			Runs: j.runs, Evictions: j.evictions, Lost: j.lost,
		})
	}
	s := &result.Summary
	s.measure(result.Jobs, (len(r.Nodes)+1)/2)
	s.Until, s.Sessions, s.Evictions = r.clock.at.Seconds(), r.sessionCount, r.evicted
	s.Utilisation, s.Notes = r.utilisation, append([]string{}, r.Trace.Notes...)
	if r.done < len(result.Jobs) {
		s.Utilisation = r.usage.utilisation()
	}
	return result
}

// measure sets what follows from the jobs.
func (s *Summary) measure(jobs []Job, large int) {
	s.Jobs, s.LargeJobPods = len(jobs), large
	var waits []float64
	var wait, slowdown float64
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
		s.LostPodSeconds += j.Lost.Seconds() * float64(j.Size)
		if j.Size >= large {
			s.LargeJobs++
		}
		if j.Runs == 0 {
			continue
		}
		waits = append(waits, j.Wait().Seconds())
		wait += j.Wait().Seconds()
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
	if len(waits) > 0 {
		slices.Sort(waits)
		at := func(part float64) float64 { return waits[int(math.Ceil(part*float64(len(waits))))-1] }
		s.Wait = Wait{Mean: round(wait / float64(len(waits))), P50: at(.5), P95: at(.95), P99: at(.99), Max: at(1)}
	}
}

// round rounds to six decimals, for output.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }
