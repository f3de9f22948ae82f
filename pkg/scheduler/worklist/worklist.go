// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package worklist hands out jobs in the order in which actions serve them: the best queue
// first, and of it the best job.
package worklist

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// List holds the jobs that are still to be scheduled. List compares the queues again after each change of the model,
// because each placement changes shares. The order of jobs within a queue only changes for the
// current job, which is outside of the list then.
type List struct {
	ssn    *framework.Session
	queues map[*api.QueueInfo]*queue
	order  []*queue // the same, in the order of their first part

	// leading are the queues that plugins order first, none of them before another, at a generation of the model. Answers
	// about queues depend on the model, so they stand still while jobs are only taken out.
	leading []*queue
	model   uint64
	last    *Part // of the current job; nil if it was returned before
	skipped func([]*api.JobInfo)
	inOrder bool // skips jobs only when they would be next
}

// Part has jobs of one queue in job order.
type Part struct {
	Jobs []*api.JobInfo // at least one
	// Equal is whether the other jobs cannot be placed once one of them could not be.
	Equal bool
	// Refused is whether none of the jobs can be placed. List skips them, which costs next to nothing.
	Refused bool
}

// Sorted divides jobs, all of which have a queue, into one part for each queue.
func Sorted(ssn *framework.Session, jobs []*api.JobInfo) []*Part {
	byQueue := map[*api.QueueInfo]*Part{}
	var parts []*Part
	for _, j := range jobs {
		p := byQueue[j.Queue]
		if p == nil {
			p = &Part{}
			byQueue[j.Queue] = p
			parts = append(parts, p)
		}
		p.Jobs = append(p.Jobs, j)
	}
	for _, p := range parts {
		slices.SortFunc(p.Jobs, ssn.CompareJobs)
	}
	return parts
}

// Pending returns the jobs that are pending in the session: those of each job class in a part of their own, which costs
// next to nothing, and the others.
func Pending(ssn *framework.Session) []*Part {
	b := ssn.Backlog()
	parts := Sorted(ssn, slices.Concat(b.Unclassified(), b.Declassified()))
	b.EachRun(func(jobs []*api.JobInfo) { parts = append(parts, &Part{Jobs: jobs, Equal: true}) })
	return parts
}

// First returns the first jobs of each queue that some parts have, at most n, in job order. It changes the parts.
func First(ssn *framework.Session, parts []*Part, n int) map[*api.QueueInfo][]*api.JobInfo {
	first := map[*api.QueueInfo][]*api.JobInfo{}
	for _, q := range Of(ssn, parts).order {
		first[q.info] = q.takeFirst(n)
	}
	return first
}

// New returns a list of the given jobs, all of which have a queue.
func New(ssn *framework.Session, jobs []*api.JobInfo) *List { return Of(ssn, Sorted(ssn, jobs)) }

// Of returns a list of the jobs of some parts. It changes the parts.
func Of(ssn *framework.Session, parts []*Part) *List {
	l := &List{ssn: ssn, queues: map[*api.QueueInfo]*queue{}, skipped: func([]*api.JobInfo) {}}
	for _, p := range parts {
		info := p.Jobs[0].Queue
		q := l.queues[info]
		if q == nil {
			q = newQueue(info, ssn.CompareJobs)
			l.queues[info] = q
			l.order = append(l.order, q)
		}
		q.add(p)
	}
	return l
}

// Next takes out the best job of the best queue; nil when the list is empty. Before the caller places tasks of
// the job, it activates the job's reservations.
func (l *List) Next() *api.JobInfo {
	if now := l.ssn.Cluster().Generations().Model; now != l.model {
		l.model, l.leading = now, l.leading[:0]
	}
	for {
		best, second := l.first()
		if best == nil {
			l.lead()
			if best, second = l.first(); best == nil {
				return nil
			}
		}
		switch {
		case second == nil && best.empty():
			best.skipAll(nil, l.skipped)
		case second == nil:
			best.skipAll(best.best(), l.skipped)
		}
		for best.refusedFirst() && l.compare(best, second) < 0 {
			best.skipOlder(second.head().Created, l.skipped)
		}
		if !best.empty() && !best.refusedFirst() && (second == nil || l.compare(best, second) < 0) {
			var job *api.JobInfo
			job, l.last = best.take()
			return job
		}
	}
}

// lead finds the leading queues.
func (l *List) lead() {
	l.leading = l.leading[:0]
	for _, q := range l.order {
		if q.empty() && !l.inOrder {
			q.skipAll(nil, l.skipped)
		}
		if q.done() {
			continue
		}
		n := -1
		if len(l.leading) > 0 {
			n = l.ssn.CompareQueues(q.info, l.leading[0].info)
		}
		if n < 0 {
			l.leading = l.leading[:0]
		}
		if n <= 0 {
			l.leading = append(l.leading, q)
		}
	}
}

// first returns the first and the second of the leading queues that have jobs, or nil: the one whose best job has waited
// longest, then the older queue, then by name.
func (l *List) first() (first, second *queue) {
	for _, q := range l.leading {
		switch {
		case q.done() || q.empty() && !l.inOrder:
		case first == nil || l.compare(q, first) < 0:
			first, second = q, first
		case second == nil || l.compare(q, second) < 0:
			second = q
		}
	}
	return first, second
}

// Return puts a job back that may have another claim.
func (l *List) Return(j *api.JobInfo) {
	l.queues[j.Queue].returned.Push(j)
}

// Refuse tells that the current job cannot be placed. If the jobs of its part are equal, the others are skipped.
func (l *List) Refuse() {
	if l.last != nil && l.last.Equal {
		l.last.Refused = true
	}
}

// Drop takes out all jobs of a queue.
func (l *List) Drop(q *api.QueueInfo) { l.queues[q].clear() }

// SkipInOrder makes the list skip jobs only when they would have been next, so that Revive finds the others.
func (l *List) SkipInOrder() { l.inOrder = true }

// Revive lets all jobs that are left be placed again: more resources may be available than when they were refused.
func (l *List) Revive() {
	for _, q := range l.order {
		q.revive()
	}
}

// OnSkip sets a function that is called with jobs of one part that are skipped, when they would have been next.
func (l *List) OnSkip(skipped func([]*api.JobInfo)) { l.skipped = skipped }

// compare orders queues that plugins do not order: the queue whose best job has waited longest, then the older queue,
// then by name. Jobs of refused parts count like others, so that it makes no difference whether it is known that they
// cannot be placed.
func (l *List) compare(a, b *queue) int {
	if n := api.CompareAge(a.head().Created, b.head().Created, "", ""); n != 0 {
		return n
	}
	return api.CompareAge(a.info.Created, b.info.Created, string(a.info.ID), string(b.info.ID))
}
