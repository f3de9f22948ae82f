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
// change with each eviction. For the same reason the pending pods of a gang count whose other members are being deleted.
func sumRequests(ssn *framework.Session) map[*api.QueueInfo]api.Resource {
	requests := map[*api.QueueInfo]api.Resource{}
	for _, q := range ssn.Cluster().Queues() {
		requests[q] = q.Allocated.Plus(q.Releasing)
	}
	for _, jc := range ssn.Backlog().JobClasses() {
		addJobClass(ssn, jc, requests)
	}
	add := func(j *api.JobInfo) {
		if waiting := possible(ssn, j); waiting != nil {
			sum := requests[j.Queue]
			sum.Add(waiting)
			requests[j.Queue] = sum
		}
	}
	for _, j := range ssn.Backlog().Unclassified() {
		add(j)
	}
	for j := range reduced(ssn) {
		add(j)
	}
	return requests
}

// reduced returns the jobs that lack members only until those that are being deleted are created again, so that they are
// not in the session.
func reduced(ssn *framework.Session) map[*api.JobInfo]bool {
	jobs := map[*api.JobInfo]bool{}
	ssn.Cluster().EachReleasing(func(t *api.TaskInfo) {
		if j := t.Job; j != nil && !jobs[j] && j.Waiting() > 0 && !j.Valid() && !ssn.Backlog().IsOpen(j) && ssn.Cluster().Admissible(j) == nil {
			jobs[j] = true
		}
	})
	return jobs
}

// addJobClass adds what possible returns for all jobs of a job class: all tasks wait, and have one signature.
func addJobClass(ssn *framework.Session, jc *framework.JobClass, requests map[*api.QueueInfo]api.Resource) {
	j := jc.Job()
	if j.TopologyLevel != nil {
		if waiting := possible(ssn, j); waiting != nil {
			sum := requests[j.Queue]
			sum.AddTimes(waiting, int64(jc.Count()))
			requests[j.Queue] = sum
		}
		return
	}
	signature := j.Tasks[0].Signature
	tasks := min(int64(len(j.Tasks)), ssn.Nodes().CapacityCount(signature))
	if tasks < int64(j.MinMember) {
		return
	}
	if never, _ := j.Queue.NeverAllows(j); never >= 0 {
		return
	}
	sum := requests[j.Queue]
	sum.AddTimes(signature.ShareRequest, tasks*int64(jc.Count()))
	requests[j.Queue] = sum
}

// possible returns what the waiting tasks of a job may request, nil if its gang could not even
// start on nodes that are empty of members of queues, or not within its queue's capability; see
// nodeindex.Index.CouldFit and api.QueueInfo.NeverAllows.
func possible(ssn *framework.Session, j *api.JobInfo) api.Resource {
	tasks, enough := ssn.Nodes().CouldFit(j)
	if !enough {
		return nil
	}
	if never, _ := j.Queue.NeverAllows(j); never >= 0 {
		return nil
	}
	var sum api.Resource
	for signature, n := range tasks {
		sum.Add(signature.ShareRequest.Times(n))
	}
	return sum
}
