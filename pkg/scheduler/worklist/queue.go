// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package worklist

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// queue has the jobs of one queue that are left.
type queue struct {
	info    *api.QueueInfo
	compare func(a, b *api.JobInfo) int

	parts    heap[*Part]        // that are not refused, by their first job
	refused  heap[*Part]        // likewise
	returned heap[*api.JobInfo] // those that were the current job before
}

func newQueue(info *api.QueueInfo, compare func(a, b *api.JobInfo) int) *queue {
	byFirst := func(a, b *Part) int { return compare(a.Jobs[0], b.Jobs[0]) }
	return &queue{
		info: info, compare: compare, parts: heap[*Part]{compare: byFirst}, refused: heap[*Part]{compare: byFirst},
		returned: heap[*api.JobInfo]{compare: compare},
	}
}

func (q *queue) add(p *Part) {
	if p.Refused {
		q.refused.push(p)
	} else {
		q.parts.push(p)
	}
}

// moveRefused moves parts that have been refused meanwhile, as far as they come first.
func (q *queue) moveRefused() {
	for !q.parts.empty() && q.parts.first().Refused {
		p := q.parts.first()
		q.parts.pop()
		q.refused.push(p)
	}
}

// empty reports whether no job is left that could be placed.
func (q *queue) empty() bool {
	q.moveRefused()
	return q.parts.empty() && q.returned.empty()
}

// best returns the best job of those that could be placed. The queue must not be empty.
func (q *queue) best() *api.JobInfo {
	switch {
	case q.parts.empty():
		return q.returned.first()
	case !q.returned.empty() && q.compare(q.returned.first(), q.parts.first().Jobs[0]) < 0:
		return q.returned.first()
	}
	return q.parts.first().Jobs[0]
}

// refusedFirst reports whether a refused job is better than best.
func (q *queue) refusedFirst() bool {
	return !q.refused.empty() && q.compare(q.refused.first().Jobs[0], q.best()) < 0
}

// head returns the best of all jobs.
func (q *queue) head() *api.JobInfo {
	if q.refusedFirst() {
		return q.refused.first().Jobs[0]
	}
	return q.best()
}

// take takes out the best job, and returns its part; nil if it was returned before.
func (q *queue) take() (*api.JobInfo, *Part) {
	job := q.best()
	if !q.returned.empty() && q.returned.first() == job {
		q.returned.pop()
		return job, nil
	}
	p := q.parts.first()
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
	for !q.refused.empty() {
		jobs := q.refused.first().Jobs
		n := len(jobs)
		if before != nil {
			n, _ = slices.BinarySearchFunc(jobs, before, q.compare)
		}
		if n == 0 {
			return
		}
		q.skip(n, skipped)
	}
}

// skip takes out jobs of the first refused part.
func (q *queue) skip(n int, skipped func([]*api.JobInfo)) {
	jobs := q.refused.first().Jobs[:n]
	advance(&q.refused, n)
	skipped(jobs)
}

// advance takes out jobs of the first part of a heap.
func advance(parts *heap[*Part], n int) {
	p := parts.first()
	if p.Jobs = p.Jobs[n:]; len(p.Jobs) == 0 {
		parts.pop()
	} else {
		parts.sink()
	}
}
