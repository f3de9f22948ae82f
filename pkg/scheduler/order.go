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
	parts  []part
}

// part is a list of jobs, in job order, with the next job to be taken.
type part struct {
	next *api.JobInfo
	rest []*api.JobInfo
	has  func(*api.JobInfo) bool // which of the list count; nil: all
}

// orders are those of all queues.
type orders map[*api.QueueInfo]*queueOrder

// observeOrders returns the first jobs of each queue in the order in which the session, which has just been opened, tries
// them. The jobs of a job class are in this order already, so that most of them cost nothing.
func observeOrders(ssn *framework.Session) orders {
	all, b := orders{}, ssn.Backlog()
	for _, jc := range b.JobClasses() {
		all.of(jc.Queue()).add(part{rest: jc.Jobs(), has: func(j *api.JobInfo) bool { return b.JobClass(j) == jc }})
	}
	others := map[*api.QueueInfo][]*api.JobInfo{}
	for _, j := range b.Unclassified() {
		if !j.Ready() { // else only pods above minMember wait
			others[j.Queue] = append(others[j.Queue], j)
		}
	}
	for q, jobs := range others {
		slices.SortFunc(jobs, ssn.CompareJobs)
		all.of(q).add(part{rest: jobs})
	}
	for _, o := range all {
		o.merge(ssn.CompareJobs)
	}
	return all
}

func (o *queueOrder) add(p part) {
	if p.advance() {
		o.parts = append(o.parts, p)
	}
}

// advance takes the next job; it reports false at the end.
func (p *part) advance() bool {
	for i, j := range p.rest {
		if p.has == nil || p.has(j) {
			p.next, p.rest = j, p.rest[i+1:]
			return true
		}
	}
	return false
}

// merge takes the first jobs of all parts.
func (o *queueOrder) merge(compare func(a, b *api.JobInfo) int) {
	parts := o.parts
	byNext := func(a, b part) int { return compare(a.next, b.next) }
	slices.SortFunc(parts, byNext)
	for len(parts) > 0 && len(o.first) < v1alpha1.MaxQueuedJobs {
		p := parts[0]
		o.first = append(o.first, p.next)
		parts = parts[1:]
		if p.advance() {
			at, _ := slices.BinarySearchFunc(parts, p, byNext)
			parts = slices.Insert(parts, at, p)
		}
	}
	o.parts = nil
}

// of returns the order of a queue, and makes it first if there is none.
func (all orders) of(q *api.QueueInfo) *queueOrder {
	if all[q] == nil {
		all[q] = &queueOrder{}
	}
	return all[q]
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
