// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"math"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// RunTime is what a job declares about how long it runs, from its start. A duration of zero is not declared.
type RunTime struct {
	// Maximum is the limit: the job is over by then, or OnOverrun says what happens.
	Maximum time.Duration
	// Expected is an estimate for planning, at most Maximum if both are declared.
	Expected  time.Duration
	OnOverrun OverrunPolicy
}

// OverrunPolicy is what happens to a job that runs for longer than its maximum.
type OverrunPolicy int8

const (
	OverrunYield  OverrunPolicy = iota // it may be evicted for a job whose start depends on its end
	OverrunEvict                       // it is evicted
	OverrunIgnore                      // nothing, so its maximum is no limit
)

// NoEnd is the end of a task that may run without limit.
const NoEnd = math.MaxInt64

// Limit returns the time from the start by which a job is over or may be taken back; zero if there is none.
func (r RunTime) Limit() time.Duration {
	if r.OnOverrun == OverrunIgnore {
		return 0
	}
	return r.Maximum
}

// Estimate returns how long the job is expected to run; zero if it declares nothing.
func (r RunTime) Estimate() time.Duration {
	if r.Expected > 0 {
		return r.Expected
	}
	return r.Maximum
}

// FormatRun words a run time, to the second: 1h30m, 2h, 45s.
func FormatRun(d time.Duration) string {
	text := d.Round(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Started returns when the run time of the task began, in nanoseconds since 1970; zero if it has not, or that is unknown. The
// members of a gang and of a PodGroup have the start of their job. Other pods start one by one, and each has its own.
func (t *TaskInfo) Started() int64 {
	if t.Job == nil || t.Job.Shadow() && t.Job.MinMember <= 1 {
		return t.Tracking.Started
	}
	return t.Job.Started
}

// Limit returns for how long a task may run that starts now: by the limit of its job, or its activeDeadlineSeconds if that is
// shorter. It is zero if there is neither. A member that joins a running gang has less.
func (t *TaskInfo) Limit() time.Duration {
	limit := time.Duration(0)
	if t.Job != nil {
		limit = t.Job.RunTime.Limit()
	}
	if of := t.Pod.Spec.ActiveDeadlineSeconds; of != nil && (limit == 0 || seconds(*of) < limit) {
		limit = seconds(*of)
	}
	return limit
}

// EndsBy returns the latest end of a running task by limits alone, in nanoseconds since 1970: that of its job, or its
// deadline if that is earlier. It is NoEnd if there is neither, or the task has not started, and in the past for a job that
// exceeds its limit. What is being deleted ends within its grace period instead.
func (t *TaskInfo) EndsBy() int64 {
	end := int64(NoEnd)
	if t.Deadline > 0 {
		end = t.Deadline
	}
	if started := t.Started(); started > 0 && t.Job != nil && t.Job.RunTime.Limit() > 0 {
		end = min(end, started+int64(t.Job.RunTime.Limit()))
	}
	return end
}

// corrections are by how much an estimate that has proved too short is extended, one after the other: Tsafrir, Etsion,
// Feitelson, "Backfilling using system-generated predictions rather than user runtime estimates", TPDS 2007.
func corrections() [11]time.Duration {
	const minute, hour = time.Minute, time.Hour
	return [...]time.Duration{
		minute, 5 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 5 * hour, 10 * hour, 20 * hour, 50 * hour, 100 * hour,
	}
}

// ExpectedEnd returns when a running task is expected to end, in nanoseconds since 1970: after now, or NoEnd if nothing is
// declared or the task has not started. It is the estimate of its job, or its limit if that is earlier. What has passed is
// extended step by step.
//
// For example, a job with an expected run time of 10 minutes and a maximum of 60 is expected to end after 10, 11, 15, 25, 40,
// 60, 61, 65 minutes and so on, each time until then.
func (t *TaskInfo) ExpectedEnd(now int64) int64 {
	end := correctedEnd(t.EndsBy(), now)
	started := t.Started()
	if started == 0 || t.Job == nil || t.Job.RunTime.Estimate() == 0 {
		return end
	}
	run := t.Job.RunTime
	if run.OnOverrun == OverrunIgnore && run.Maximum > 0 && started+int64(run.Maximum) <= now {
		return end
	}
	return min(end, correctedEnd(started+int64(run.Estimate()), now))
}

// PlannedEnd returns by when others can rely on the end of a running task, in nanoseconds since 1970: after now, or NoEnd if
// nothing is declared or the task has not started. It is the limit, extended step by step once it has passed. Without a limit
// it is the expected end.
func (t *TaskInfo) PlannedEnd(now int64) int64 {
	if end := t.EndsBy(); end < NoEnd {
		return correctedEnd(end, now)
	}
	return t.ExpectedEnd(now)
}

// correctedEnd returns the first correction of an end that is after now.
func correctedEnd(end, now int64) int64 {
	if end > now { // also NoEnd
		return end
	}
	var last int64
	for _, step := range corrections() {
		if last = int64(step); end+last > now {
			return end + last
		}
	}
	return end + last*((now-end)/last+1)
}

// StartOf returns when a pod got its node as the API server shows it, in nanoseconds since 1970: when its condition PodScheduled
// became true, else status.startTime. It is zero if the pod has no node, or neither.
func StartOf(pod *v1.Pod) int64 {
	if pod.Spec.NodeName == "" {
		return 0
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.UnixNano()
		}
	}
	if pod.Status.StartTime == nil {
		return 0
	}
	return pod.Status.StartTime.UnixNano()
}

// DeadlineOf returns when the kubelet ends a pod, in nanoseconds since 1970: spec.activeDeadlineSeconds after
// status.startTime. It is zero if the pod has no deadline or no kubelet has seen it.
func DeadlineOf(pod *v1.Pod) int64 {
	if pod.Spec.ActiveDeadlineSeconds == nil || pod.Status.StartTime == nil {
		return 0
	}
	return pod.Status.StartTime.UnixNano() + int64(seconds(*pod.Spec.ActiveDeadlineSeconds))
}

// maxSeconds is the longest run time that can be declared, 68 years, so that no end overflows.
const maxSeconds = math.MaxInt32

func seconds(n int64) time.Duration { return time.Duration(min(n, maxSeconds)) * time.Second }
