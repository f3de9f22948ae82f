// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// queueOrder is the order of the pending jobs of one queue: their number, and the first of them.
type queueOrder struct {
	length int32
	first  []*api.JobInfo
}

// orders are those of all queues.
type orders map[*api.QueueInfo]*queueOrder

// observeOrders returns the first jobs of each queue in the order in which the session, which has just been opened, tries
// them. Only these are kept in order, so that almost all jobs of a long queue cost one comparison.
func observeOrders(ssn *framework.Session) orders {
	all := orders{}
	for _, j := range ssn.Jobs() {
		if j.Ready() {
			continue // only pods above minMember wait
		}
		if all[j.Queue] == nil {
			all[j.Queue] = &queueOrder{}
		}
		all[j.Queue].add(j, ssn.CompareJobs)
	}
	return all
}

func (o *queueOrder) add(j *api.JobInfo, compare func(a, b *api.JobInfo) int) {
	if last := len(o.first) - 1; last+1 == v1alpha1.MaxQueuedJobs {
		if compare(j, o.first[last]) > 0 {
			return
		}
		o.first = o.first[:last]
	}
	at, _ := slices.BinarySearchFunc(o.first, j, compare)
	o.first = slices.Insert(o.first, at, j)
}

// dropStarted leaves the jobs that have not started in the session.
func (all orders) dropStarted(ssn *framework.Session) {
	for _, j := range ssn.Jobs() {
		if o := all[j.Queue]; o != nil && !j.Ready() {
			o.length++
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
