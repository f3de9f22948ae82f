// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Ledger applies what the scheduler decides to a Cluster: the trials of a session, what it commits, and the
// results that the API server reports for that.
type Ledger struct{ c *Cluster }

// Place sets status and node of t within a session. The previous Task.Status and Task.Node as arguments undo it.
func (l Ledger) Place(t *api.TaskInfo, status api.TaskStatus, node *api.NodeInfo) {
	l.c.detach(t)
	t.Status, t.Node = status, node
	l.c.attach(t)
}

// Commit records the binds and evictions of a statement as in flight, as AssumePod and MarkEvicting do. The record is complete
// before any sum changes: if a sum panics, the model that replaces this one has all operations. The tasks start now, until the
// API server shows when they did.
func (l Ledger) Commit(decisions []api.Decision, now time.Time) {
	at := now.UnixNano()
	for _, d := range decisions {
		switch d.Kind {
		case api.Allocate:
			recordBind(d.Task, at)
		case api.Evict:
			d.Task.Tracking.Evicting = true
		}
	}
	for _, d := range decisions {
		switch d.Kind {
		case api.Allocate:
			l.countBind(d.Task)
		case api.Evict:
			l.Place(d.Task, api.Releasing, d.Task.Node)
		}
	}
}

// AssumePod records that the bind of t to its node is in flight. From now on the decision
// overrides what the watch shows, until BindFailed or the watch shows a node.
func (l Ledger) AssumePod(t *api.TaskInfo, now time.Time) {
	recordBind(t, now.UnixNano())
	l.countBind(t)
}

func recordBind(t *api.TaskInfo, at int64) {
	t.Tracking.Bind = currentCommitment(t.Job)
	t.Tracking.BoundAt, t.Tracking.Started = at, at
}

// countBind counts t, whose bind is recorded, as binding.
func (l Ledger) countBind(t *api.TaskInfo) {
	c := l.c
	if t.Status != api.Allocated {
		l.Place(t, api.Binding, t.Node)
		return
	}
	c.generations.Model++
	c.generations.Placement++
	accountJob(t.Job, t, -1) // no sum of the node changes
	t.Status = api.Binding
	accountJob(t.Job, t, +1)
	t.Job.Generation = c.generations.Model
	c.jobs.markChanged(t.Job)
}

// BindFailed ends a bind in flight that has certainly not taken effect, for the reason given. The model need not
// have the pod: the record can survive a rebuild that the pod does not.
func (l Ledger) BindFailed(id api.TaskID, why string) {
	c := l.c
	t := c.tasks[id]
	if t == nil || !t.InFlight() {
		delete(c.inFlight.binds, id) // a rebuilt model may lack the pod, and get it later
		return
	}
	c.detach(t)
	before := t.Node
	c.inFlight.endBind(t)
	t.Tracking.LastBindError = why
	t.Status, t.Node = api.StatusOf(t.Pod), c.nodes.of(t.Pod)
	observeStart(t)
	c.jobs.join(t) // the commitment has ended: the pod's labels count again
	c.attach(t)
	c.nodes.release(before)
}

// MarkEvicting records that the eviction of t is in flight. From now on t is Releasing, until EvictionFailed or
// the watch shows the deletion.
func (l Ledger) MarkEvicting(t *api.TaskInfo) {
	t.Tracking.Evicting = true
	l.Place(t, api.Releasing, t.Node)
}

// EvictionFailed ends an eviction that has certainly not taken effect. As in BindFailed, the model need not have the pod.
func (l Ledger) EvictionFailed(id api.TaskID) {
	t := l.c.tasks[id]
	if t == nil || !t.Evicting() {
		delete(l.c.inFlight.evictions, id) // a rebuilt model may lack the pod, and get it later
		return
	}
	l.c.inFlight.endEviction(t)
	l.Place(t, observedStatus(t), t.Node)
}

// SetEvictionBlocked sets whether t must not be evicted. When a budget of its changes, it may be evicted again.
func (l Ledger) SetEvictionBlocked(id api.TaskID, blocked bool) {
	t := l.c.tasks[id]
	if t == nil || t.Tracking.EvictionBlocked == blocked {
		return
	}
	l.c.evictions.setBlocked(t, blocked)
	l.c.Events().changed()
}

// SetOverdue sets whether a session does not count on the end of t, which is being deleted: what an overdue
// pod holds is not available in the Future.
func (l Ledger) SetOverdue(t *api.TaskInfo, overdue bool) {
	l.c.detach(t)
	t.Tracking.Overdue = overdue
	l.c.attach(t)
}

// SetBackoff sets why the job must not be tried for the time being; empty requeues it, even if the model does not
// have it.
func (l Ledger) SetBackoff(id api.JobID, why string) {
	j := l.c.jobs.byID[id]
	if j == nil {
		if why == "" {
			delete(l.c.inFlight.backoffs, id) // a rebuilt model may lack the job, and get it later
		}
		return
	}
	if j.Tracking.Backoff == why {
		return
	}
	l.c.inFlight.setBackoff(j, why)
	l.c.Events().changed()
	l.c.jobs.markChanged(j)
}

// Reserve reserves for the tasks of one job what they request on their nodes, as far as it is available or being
// released; and of the capability of their queue what it still allows. Unreserve undoes it.
func (l Ledger) Reserve(queue *api.QueueInfo, placements []api.Decision) *api.Reservation {
	r := &api.Reservation{Queue: queue}
	var request api.Resource
	for _, p := range placements {
		r.Job = p.Task.Job
		l.reservePart(r, p.Node, p.Task.Request, p.Task.Priority)
		request.Add(p.Task.Request)
	}
	l.reserveCap(r, request)
	return r
}

// ReserveParts reserves for a job amounts of nodes that are for none of its tasks, otherwise as Reserve does.
func (l Ledger) ReserveParts(j *api.JobInfo, parts []api.ReservedPart) *api.Reservation {
	r := &api.Reservation{Queue: j.Queue, Job: j}
	var request api.Resource
	for _, p := range parts {
		l.reservePart(r, p.Node, p.Amount, j.Priority)
		request.Add(p.Amount)
	}
	l.reserveCap(r, request)
	return r
}

func (l Ledger) reservePart(r *api.Reservation, n *api.NodeInfo, request api.Resource, priority int32) {
	amount := request.Clone()
	for d := range amount {
		amount[d] = min(amount[d], max(n.AvailableIn(d, priority, api.Future), 0))
	}
	r.Parts = append(r.Parts, api.ReservedPart{Node: n, Amount: amount})
	n.Reserved.Add(amount)
	if !amount.IsZero() {
		n.ReservedFor.Add(r.Job)
	}
	l.touchReserved(n)
}

// reserveCap reserves of the capability of the queue what it still allows of the request.
func (l Ledger) reserveCap(r *api.Reservation, request api.Resource) {
	queue := r.Queue
	left := queue.Capability.Minus(queue.Allocated).Minus(queue.Reserved)
	r.Cap = atMost(request, left[:len(queue.Capability)])
	queue.Reserved.Add(r.Cap)
	if !r.Cap.IsZero() {
		queue.ReservedFor.Add(r.Job)
	}
}

// Unreserve releases a reservation.
func (l Ledger) Unreserve(r *api.Reservation) {
	for _, part := range r.Parts {
		part.Node.Reserved.Sub(part.Amount)
		if !part.Amount.IsZero() {
			part.Node.ReservedFor.Remove(r.Job)
		}
		l.touchReserved(part.Node)
	}
	r.Queue.Reserved.Sub(r.Cap)
	if !r.Cap.IsZero() {
		r.Queue.ReservedFor.Remove(r.Job)
	}
}

func (l Ledger) touchReserved(n *api.NodeInfo) {
	l.c.Events().changed()
	l.c.nodes.touchReserved(n)
}

// atMost returns the smaller of request and available in each dimension, at least zero.
func atMost(request, available api.Resource) api.Resource {
	part := request.Clone()
	for d := range part {
		part[d] = min(part[d], max(available.At(d), 0))
	}
	return part
}
