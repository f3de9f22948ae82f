// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package worklist

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/heap"
)

// queue has the jobs of one queue that are left.
type queue struct {
	info    *api.QueueInfo
	compare func(a, b *api.JobInfo) int

	parts    heap.Heap[*Part]        // that are not refused, by their first job
	refused  heap.Heap[*Part]        // likewise
	returned heap.Heap[*api.JobInfo] // those that were the current job before
}

func newQueue(info *api.QueueInfo, compare func(a, b *api.JobInfo) int) *queue {
	byFirst := func(a, b *Part) int { return compare(a.Jobs[0], b.Jobs[0]) }
	return &queue{info: info, compare: compare, parts: heap.New(byFirst), refused: heap.New(byFirst), returned: heap.New(compare)}
}

func (q *queue) add(p *Part) {
	if p.Refused {
		q.refused.Push(p)
	} else {
		q.parts.Push(p)
	}
}

// moveRefused moves parts that have been refused meanwhile, as far as they come first.
func (q *queue) moveRefused() {
	for q.parts.Len() > 0 && q.parts.First().Refused {
		p := q.parts.First()
		q.parts.Pop()
		q.refused.Push(p)
	}
}

// empty reports whether no job is left that could be placed.
func (q *queue) empty() bool {
	q.moveRefused()
	return q.parts.Len() == 0 && q.returned.Len() == 0
}

// done reports whether no job is left.
func (q *queue) done() bool { return q.empty() && q.refused.Len() == 0 }

// best returns the best job of those that could be placed. The queue must not be empty.
func (q *queue) best() *api.JobInfo {
	switch {
	case q.parts.Len() == 0:
		return q.returned.First()
	case q.returned.Len() > 0 && q.compare(q.returned.First(), q.parts.First().Jobs[0]) < 0:
		return q.returned.First()
	}
	return q.parts.First().Jobs[0]
}

// refusedFirst reports whether a refused job is better than best.
func (q *queue) refusedFirst() bool {
	return q.refused.Len() > 0 && (q.empty() || q.compare(q.refused.First().Jobs[0], q.best()) < 0)
}

// head returns the best of all jobs.
func (q *queue) head() *api.JobInfo {
	if q.refusedFirst() {
		return q.refused.First().Jobs[0]
	}
	return q.best()
}

// take takes out the best job, and returns its part; nil if it was returned before.
func (q *queue) take() (*api.JobInfo, *Part) {
	job := q.best()
	if q.returned.Len() > 0 && q.returned.First() == job {
		q.returned.Pop()
		return job, nil
	}
	p := q.parts.First()
	advance(&q.parts, 1)
	return job, p
}

// takeFirst takes out the best jobs, at most n.
func (q *queue) takeFirst(n int) []*api.JobInfo {
	var jobs []*api.JobInfo
	for len(jobs) < n && !q.empty() {
		job, _ := q.take()
		jobs = append(jobs, job)
	}
	return jobs
}

// skipAll takes out all refused jobs that are better than a job, or all if it is nil.
func (q *queue) skipAll(before *api.JobInfo, skipped func([]*api.JobInfo)) {
	for q.refused.Len() > 0 {
		jobs := q.refused.First().Jobs
		n := len(jobs)
		if before != nil {
			if q.compare(jobs[0], before) > 0 {
				return
			}
			n = len(q.before(jobs, before))
		}
		q.skip(n, skipped)
	}
}

// skipOlder takes out the first refused job, and those of its part that come next and are older than created.
func (q *queue) skipOlder(created int64, skipped func([]*api.JobInfo)) {
	jobs := q.refused.First().Jobs
	if !q.empty() {
		jobs = q.before(jobs, q.best())
	}
	for _, other := range q.refused.Items()[1:min(q.refused.Len(), 3)] { // one of these is the second part
		jobs = q.before(jobs, other.Jobs[0])
	}
	n := 1
	for n < len(jobs) && jobs[n].Created < created {
		n++
	}
	q.skip(n, skipped)
}

// before returns those of the jobs, which are in job order, that come before another one.
func (q *queue) before(jobs []*api.JobInfo, other *api.JobInfo) []*api.JobInfo {
	n := len(jobs)
	if n > 0 && q.compare(jobs[n-1], other) > 0 { // rarely
		n, _ = slices.BinarySearchFunc(jobs, other, q.compare)
	}
	return jobs[:n]
}

// clear takes out all jobs.
func (q *queue) clear() {
	q.parts.Clear()
	q.refused.Clear()
	q.returned.Clear()
}

// revive makes the refused parts such that could be placed.
func (q *queue) revive() {
	for _, p := range q.parts.Items() {
		p.Refused = false
	}
	for _, p := range q.refused.Items() {
		p.Refused = false
		q.parts.Push(p)
	}
	q.refused.Clear()
}

// skip takes out jobs of the first refused part.
func (q *queue) skip(n int, skipped func([]*api.JobInfo)) {
	jobs := q.refused.First().Jobs[:n]
	advance(&q.refused, n)
	skipped(jobs)
}

// advance takes out jobs of the first part of a heap.
func advance(parts *heap.Heap[*Part], n int) {
	p := parts.First()
	if p.Jobs = p.Jobs[n:]; len(p.Jobs) == 0 {
		parts.Pop()
	} else {
		parts.Fix()
	}
}
