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
	// Guarantee is the floor that others can always be made to give back.
	Guarantee   Resource
	Reclaimable bool
	Created     int64 // nanoseconds since 1970

	// Allocated sums what the queue's tasks hold, and Pipelined ones.
	Allocated Resource
	// Releasing sums members that are being deleted: still room that the cap counts.
	Releasing Resource
	// Requested sums members that wait and are not gated.
	Requested Resource
	// Reserved is what a session keeps of the caps for jobs of the queue that go first.
	Reserved Resource
	// Groups counts PodGroups by phase, as of the last Settle.
	Groups v1alpha1.QueueGroups

	Jobs map[JobID]*JobInfo
}

func (q *QueueInfo) read(dims *Dimensions, queue *v1alpha1.Queue) {
	q.Queue = queue
	q.Weight = int64(max(queue.Spec.Weight, 1))
	q.Capability = dims.Limits(queue.Spec.Capability)
	q.Guarantee = dims.Vector(queue.Spec.Guarantee)
	q.Reclaimable = queue.Spec.Reclaimable == nil || *queue.Spec.Reclaimable
	q.Created = queue.CreationTimestamp.UnixNano()
}

// count adds (sign +1) or takes away (sign −1) a group in a phase.
func (q *QueueInfo) count(phase v1alpha1.PodGroupPhase, sign int32) {
	switch phase {
	case v1alpha1.PodGroupPending:
		q.Groups.Pending += sign
	case v1alpha1.PodGroupRunning:
		q.Groups.Running += sign
	case v1alpha1.PodGroupUnknown:
		q.Groups.Unknown += sign
	case v1alpha1.PodGroupFinished:
		q.Groups.Finished += sign
	}
}

// CapAllows returns the first dimension in which the queue's capability stands in the way of one
// more request, or -1. Now what its members that are being deleted hold still counts.
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
