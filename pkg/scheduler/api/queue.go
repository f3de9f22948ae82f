// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
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

	// Allocated sums what the queue's tasks hold, and Pipelined ones.
	Allocated Resource
	// Releasing sums members that are being deleted: the cap still counts them.
	Releasing Resource
	// Requested sums members that are pending and not gated.
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
