// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// enqueue lets the job count in the queue that it names, else in the default queue.
func (jt *jobTable) enqueue(j *api.JobInfo) {
	q := jt.queues[j.QueueName]
	if q == nil {
		q = jt.queues[jt.groups.defaultQueue]
	}
	if q == j.Queue {
		return
	}
	if old := j.Queue; old != nil {
		old.Allocated.Sub(j.Allocated)
		old.Releasing.Sub(j.Releasing)
		old.Requested.Sub(j.Requested)
		countGroup(old, j.Tracking.CountedPhase, -1)
		delete(old.Jobs, j.ID)
	}
	j.Tracking.Commitment = nil
	if j.Queue = q; q != nil {
		q.Allocated.Add(j.Allocated)
		q.Releasing.Add(j.Releasing)
		q.Requested.Add(j.Requested)
		countGroup(q, j.Tracking.CountedPhase, +1)
		q.Jobs[j.ID] = j
	}
	jt.markChanged(j)
}

// enqueueAll enqueues every job again, after a queue was added or deleted.
func (jt *jobTable) enqueueAll() {
	jt.similar = nil
	for _, j := range jt.sorted() {
		jt.enqueue(j)
	}
}

// maxSimilar is how many names of missing queues are remembered: users choose them.
const maxSimilar = 1000

// similarQueue returns a hint at the queue whose name is close to that of a missing one; empty if there is none. Each name
// is compared once until a queue is added or deleted.
func (jt *jobTable) similarQueue(missing api.QueueID) string {
	hint, known := jt.similar[missing]
	if known {
		return hint
	}
	names := make([]string, 0, len(jt.queues))
	for id := range jt.queues {
		names = append(names, string(id)) // Closest sorts
	}
	if name, ok := api.Closest(string(missing), names); ok {
		hint = fmt.Sprintf("did you mean %q?", name)
	}
	if jt.similar == nil || len(jt.similar) == maxSimilar {
		jt.similar = map[api.QueueID]string{}
	}
	jt.similar[missing] = hint
	return hint
}

func (jt *jobTable) sortedQueues() []*api.QueueInfo {
	queues := make([]*api.QueueInfo, 0, len(jt.queues))
	for _, q := range jt.queues {
		queues = append(queues, q)
	}
	slices.SortFunc(queues, func(a, b *api.QueueInfo) int {
		return api.CompareAge(a.Created, b.Created, string(a.ID), string(b.ID))
	})
	return queues
}

func readQueue(q *api.QueueInfo, dims *api.Dimensions, queue *v1alpha1.Queue) {
	q.Queue = queue
	q.Weight = int64(max(queue.Spec.Weight, 1))
	q.Capability = dims.Limits(queue.Spec.Capability)
	q.Guarantee = dims.Vector(queue.Spec.Guarantee)
	q.Reclaimable = queue.Spec.Reclaimable == nil || *queue.Spec.Reclaimable
	q.Created = queue.CreationTimestamp.UnixNano()
	q.DefaultRun, q.MaximumRun = api.ExecutionTimes(&queue.Spec)
}

// countPhase lets the queue of j count its group in its present phase.
func countPhase(j *api.JobInfo) {
	var phase v1alpha1.PodGroupPhase
	if j.Group != nil {
		phase = j.Phase()
	}
	if phase == j.Tracking.CountedPhase {
		return
	}
	if j.Queue != nil {
		countGroup(j.Queue, j.Tracking.CountedPhase, -1)
		countGroup(j.Queue, phase, +1)
	}
	j.Tracking.CountedPhase = phase
}

// countGroup adds (sign +1) or subtracts (sign −1) a group in a phase.
func countGroup(q *api.QueueInfo, phase v1alpha1.PodGroupPhase, sign int32) {
	switch phase {
	case v1alpha1.PodGroupPending:
		q.Groups.Pending += sign
	case v1alpha1.PodGroupRunning:
		q.Groups.Running += sign
	case v1alpha1.PodGroupUnknown:
		q.Groups.Unknown += sign
	case v1alpha1.PodGroupFinished:
		q.Groups.Finished += sign
	case v1alpha1.PodGroupFailed:
		q.Groups.Failed += sign
	}
}
