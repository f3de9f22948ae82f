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
	queues map[*api.QueueInfo]*jobs
	order  []*jobs // the same, in the order of their first job

	// leading are the queues that plugins order first, none of them before another, at a generation of the model. Answers
	// about queues depend on the model, so they stand still while jobs are only taken out.
	leading []*jobs
	model   uint64
}

// jobs are those of one queue.
type jobs struct {
	queue    *api.QueueInfo
	list     []*api.JobInfo // the best last, where it is cheap to take
	returned heap           // those that were the current job before
}

func (q *jobs) empty() bool { return len(q.list) == 0 && len(q.returned.jobs) == 0 }

// best returns the best job, and whether it was the current job before.
func (l *List) best(q *jobs) (job *api.JobInfo, returned bool) {
	if len(q.list) == 0 {
		return q.returned.jobs[0], true
	}
	job = q.list[len(q.list)-1]
	if len(q.returned.jobs) > 0 && l.ssn.CompareJobs(q.returned.jobs[0], job) < 0 {
		return q.returned.jobs[0], true
	}
	return job, false
}

// New returns a list of the given jobs, all of which have a queue.
func New(ssn *framework.Session, all []*api.JobInfo) *List {
	l := &List{ssn: ssn, queues: map[*api.QueueInfo]*jobs{}}
	for _, j := range all {
		q := l.queues[j.Queue]
		if q == nil {
			q = &jobs{queue: j.Queue, returned: heap{compare: ssn.CompareJobs}}
			l.queues[j.Queue] = q
			l.order = append(l.order, q)
		}
		q.list = append(q.list, j)
	}
	for _, q := range l.order {
		slices.SortFunc(q.list, l.worstFirst)
	}
	return l
}

func (l *List) worstFirst(a, b *api.JobInfo) int { return l.ssn.CompareJobs(b, a) }

// Next takes out the best job of the best queue; nil when the list is empty. Before the caller places tasks of
// the job, it activates the job's reservations.
func (l *List) Next() *api.JobInfo {
	if now := l.ssn.Cluster().Generations().Model; now != l.model {
		l.model, l.leading = now, l.leading[:0]
	}
	best := l.first()
	if best == nil {
		l.lead()
		if best = l.first(); best == nil {
			return nil
		}
	}
	job, returned := l.best(best)
	if returned {
		best.returned.pop()
	} else {
		best.list = best.list[:len(best.list)-1]
	}
	return job
}

// lead finds the leading queues.
func (l *List) lead() {
	l.leading = l.leading[:0]
	for _, q := range l.order {
		if q.empty() {
			continue
		}
		n := -1
		if len(l.leading) > 0 {
			n = l.ssn.CompareQueues(q.queue, l.leading[0].queue)
		}
		if n < 0 {
			l.leading = l.leading[:0]
		}
		if n <= 0 {
			l.leading = append(l.leading, q)
		}
	}
}

// first returns the first of the leading queues that have jobs, or nil: the one whose best job has waited longest, then
// the older queue, then by name.
func (l *List) first() (first *jobs) {
	for _, q := range l.leading {
		if !q.empty() && (first == nil || l.compare(q, first) < 0) {
			first = q
		}
	}
	return first
}

// Return puts a job back that may have another claim.
func (l *List) Return(j *api.JobInfo) {
	l.queues[j.Queue].returned.push(j)
}

// compare orders queues that plugins do not order: the queue whose best job has waited longest, then the older queue,
// then by name.
func (l *List) compare(a, b *jobs) int {
	first, _ := l.best(a)
	second, _ := l.best(b)
	if n := api.CompareAge(first.Created, second.Created, "", ""); n != 0 {
		return n
	}
	return api.CompareAge(a.queue.Created, b.queue.Created, string(a.queue.ID), string(b.queue.ID))
}
