// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// queueOrder is the order of the pending jobs of one queue: their number, and the first of them.
type queueOrder struct {
	length int32
	first  []*api.JobInfo
}

// orders are those of all queues.
type orders map[*api.QueueInfo]*queueOrder

// observeOrders returns the first jobs of each queue in the order in which the session, which has just been opened, tries
// them. Of jobs that have started, only pods above minMember are pending: these are left out.
func observeOrders(ssn *framework.Session) orders {
	parts := worklist.Pending(ssn)
	for _, p := range parts {
		if !p.Equal { // those of a job class have not started
			p.Jobs = slices.DeleteFunc(p.Jobs, (*api.JobInfo).Ready)
		}
	}
	parts = slices.DeleteFunc(parts, func(p *worklist.Part) bool { return len(p.Jobs) == 0 })
	all := orders{}
	for q, jobs := range worklist.First(ssn, parts, v1alpha1.MaxQueuedJobs) {
		all[q] = &queueOrder{first: jobs}
	}
	return all
}

// dropStarted leaves the jobs that have not started in the session, and counts them.
func (all orders) dropStarted(ssn *framework.Session) {
	b := ssn.Backlog()
	for _, jc := range b.JobClasses() {
		if o := all[jc.Queue()]; o != nil {
			o.length += int32(jc.Count())
		}
	}
	for _, j := range b.Unclassified() {
		if o := all[j.Queue]; o != nil && !j.Ready() {
			o.length++
		}
	}
	for _, j := range b.Decided() {
		if o := all[j.Queue]; o != nil && j.Ready() && b.HadJobClass(j) {
			o.length--
		}
	}
	for q, o := range all {
		o.first = slices.DeleteFunc(o.first, (*api.JobInfo).Ready)
		if o.length == 0 {
			delete(all, q)
		}
	}
}

// published is an order as the status of a queue shows it.
type published struct {
	length int32
	first  []api.JobID
}

// shows reports whether the status shows the order.
func (p published) shows(o *queueOrder) bool {
	if o == nil {
		return p.length == 0
	}
	return p.length == o.length && slices.EqualFunc(p.first, o.first, func(id api.JobID, j *api.JobInfo) bool { return id == j.ID })
}

// publish returns the order as the status of a queue shows it, and what remembers that; nil if no job is pending.
func (o *queueOrder) publish() (*v1alpha1.QueueOrder, published) {
	if o == nil {
		return nil, published{}
	}
	shown, ids := &v1alpha1.QueueOrder{Length: o.length}, published{length: o.length}
	for _, j := range o.first {
		shown.First = append(shown.First, v1alpha1.QueuedJob{Namespace: j.GetNamespace(), Name: j.GetName(), WithoutPodGroup: j.Shadow()})
		ids.first = append(ids.first, j.ID)
	}
	return shown, ids
}
