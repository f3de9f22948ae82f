// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package proportion

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// sumRequests returns what each queue requests: what its tasks hold, and what is pending in jobs that
// could start at all. A gang that never fits must not reduce the shares of others. Tasks that are being
// deleted count until they have ended: controllers replace evicted pods, and what queues deserve must not
// change with each eviction.
func sumRequests(ssn *framework.Session) map[*api.QueueInfo]api.Resource {
	requests := map[*api.QueueInfo]api.Resource{}
	for _, q := range ssn.Cluster().Queues() {
		requests[q] = q.Allocated.Plus(q.Releasing)
	}
	for _, j := range ssn.Jobs() {
		if waiting := possible(ssn, j); waiting != nil {
			sum := requests[j.Queue]
			sum.Add(waiting)
			requests[j.Queue] = sum
		}
	}
	return requests
}

// possible returns what the waiting tasks of a job may request, nil if its gang could not even
// start on nodes that are empty of members of queues, or not within its queue's capability; see
// Session.CouldFit.
func possible(ssn *framework.Session, j *api.JobInfo) api.Resource {
	tasks, enough := ssn.Nodes().CouldFit(j)
	if !enough {
		return nil
	}
	var sum, least api.Resource
	for signature, n := range tasks {
		sum.Add(signature.Request.Times(n))
		if n > 0 {
			least = leastOf(least, signature.Request)
		}
	}
	if need := int64(j.MinMember - j.ReadyCount() - j.Count(api.Releasing)); need > 0 && !withinCap(j, least, need) {
		return nil
	}
	return sum
}

// leastOf returns the lesser amount in each dimension; nil stands for "none yet".
func leastOf(a, b api.Resource) api.Resource {
	if a == nil {
		return b.Clone()
	}
	for d := range a {
		a[d] = min(a[d], b.At(d))
	}
	return a
}

// withinCap reports whether need members of at least the given request stay within the caps when
// the queue holds nothing but this job.
func withinCap(j *api.JobInfo, least api.Resource, need int64) bool {
	for d, limit := range j.Queue.Capability {
		if limit != api.Unlimited && j.Allocated.At(d)+least.At(d)*need > limit {
			return false
		}
	}
	return true
}
