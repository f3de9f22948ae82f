// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// QueueInfo is a Queue with the sums of its jobs.
type QueueInfo struct {
	ID     QueueID
	Queue  *v1alpha1.Queue
	Weight int64
	// Capability is the hard cap; nil or Unlimited dimensions have none.
	Capability Resource
	// Guarantee is the floor that the queue can always reclaim.
	Guarantee   Resource
	Reclaimable bool
	Created     int64 // nanoseconds since 1970
	// DefaultRun is the limit of jobs that declare none, and MaximumRun the longest limit that is admitted; 0: none.
	DefaultRun, MaximumRun time.Duration

	// Allocated sums what the queue's tasks hold, and Pipelined ones.
	Allocated Resource
	// Releasing sums members that are being deleted: the cap still counts them.
	Releasing Resource
	// Requested sums members that are pending and not gated, without those of jobs with an Unsupported group or an unknown owner.
	Requested Resource
	// Reserved is what a session reserves of the caps for single jobs of the queue.
	Reserved Resource
	// ReservedFor are the jobs that Reserved is for.
	ReservedFor Holders
	// Groups counts PodGroups by phase, as of the last Recompute.
	Groups v1alpha1.QueueGroups

	Jobs map[JobID]*JobInfo
}

// CapAllows returns the first dimension in which the queue's capability does not allow one
// more request, or -1. Now also counts members that are being deleted.
func (q *QueueInfo) CapAllows(request Resource, when When) (dimension int) {
	for i, limit := range q.Capability {
		if limit == Unlimited || request.At(i) == 0 {
			continue
		}
		held := saturatingAdd(q.Allocated.At(i)+q.Reserved.At(i), request.At(i))
		if when == Now {
			held = saturatingAdd(held, q.Releasing.At(i))
		}
		if held > limit {
			return i
		}
	}
	return -1
}

// NeverAllows returns the first dimension in which a gang that has not started exceeds the capability even if the queue
// holds nothing else, and how much the gang needs of it, at least; -1 if there is none. If fewer members than all must
// start, each counts with the least that any of them requests.
func (q *QueueInfo) NeverAllows(j *JobInfo) (dimension int, needs int64) {
	need := int64(j.MinMember - j.ReadyCount() - j.Count(Releasing)) // pods that are being deleted may come back
	if need <= 0 || q.Capability == nil {
		return -1, 0
	}
	least := j.leastRequest(need)
	for d, limit := range q.Capability {
		if asked := least.At(d); limit != Unlimited && asked > 0 && saturatingAdd(j.Allocated.At(d), asked) > limit {
			return d, saturatingAdd(j.Allocated.At(d), asked)
		}
	}
	return -1, 0
}

// leastRequest returns what need waiting tasks of the job request, at least.
func (j *JobInfo) leastRequest(need int64) Resource {
	if need >= int64(j.Waiting()) {
		return j.Requested
	}
	var least Resource
	var last *Signature
	for _, t := range j.Tasks {
		switch {
		case !t.Waiting(), t.Signature == last:
			continue
		case last == nil:
			least = t.ShareRequest.Clone()
		}
		last = t.Signature
		for d := range least {
			least[d] = min(least[d], t.ShareRequest.At(d))
		}
	}
	return least.Times(need)
}
