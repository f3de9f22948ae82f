// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"maps"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// observeStart derives start and deadline of t from its pod, and from its bind while that is in flight.
func observeStart(t *api.TaskInfo) {
	t.Tracking.Started, t.Deadline = api.StartOf(t.Pod), api.DeadlineOf(t.Pod)
	if t.InFlight() {
		t.Tracking.Started = t.Tracking.BoundAt
	}
}

// readStart updates start and deadline of t from a version of its pod that is otherwise equal. A kubelet shows the start of a
// pod before anything else of it changes. Only tasks whose end is limited by it make a session necessary.
func readStart(c *Cluster, t *api.TaskInfo) {
	started, deadline := t.Tracking.Started, t.Deadline
	observeStart(t)
	if t.Tracking.Started == started && t.Deadline == deadline {
		return
	}
	limited := t.Deadline != deadline
	if j := t.Job; j != nil {
		c.jobs.markChanged(j)
		limited = limited || j.RunTime != api.RunTime{}
	} else if limited && t.Node != nil {
		c.nodes.touch(t.Node)
	}
	if limited {
		c.Events().changed()
	}
}

// markAllChanged marks the jobs of a queue.
func markAllChanged(jt *jobTable, q *api.QueueInfo) {
	for _, j := range slices.SortedFunc(maps.Values(q.Jobs), func(a, b *api.JobInfo) int { return cmp.Compare(a.ID, b.ID) }) {
		jt.markChanged(j)
	}
}

// runsTooLong reports whether the limit of a job is above the maximum of its queue. Such a job requests no share.
func runsTooLong(j *api.JobInfo) bool {
	return j.Queue.MaximumRun > 0 && j.RunTime.Maximum > j.Queue.MaximumRun
}

// updateRunTime derives the run time and the start of a job. It returns the buffer for the next call.
func updateRunTime(j *api.JobInfo, buffer []int64) []int64 {
	before := j.RunTime.Limit()
	j.RunTime, j.Tracking.InvalidRunTime = api.DeclaredRunTime(j)
	if j.RunTime.Limit() != before { // it is a part of the equivalence class
		for _, t := range j.Tasks {
			t.Tracking.Class = nil
		}
	}
	j.Started, buffer = startOf(j, buffer)
	return buffer
}

// startOf returns when the MinMember-th of the members that make the gang ready got its node; 0 if the gang is not ready, or
// that is unknown.
func startOf(j *api.JobInfo, starts []int64) (started int64, buffer []int64) {
	starts = starts[:0]
	if !j.Ready() {
		return 0, starts
	}
	for _, t := range j.Tasks {
		if t.Tracking.Started > 0 && (t.Holds() || t.Status == api.Succeeded) {
			starts = append(starts, t.Tracking.Started)
		}
	}
	need := int(max(j.MinMember, 1))
	switch {
	case len(starts) < need:
		return 0, starts
	case need == 1:
		return slices.Min(starts), starts
	case need == len(starts):
		return slices.Max(starts), starts
	}
	slices.Sort(starts)
	return starts[need-1], starts
}
