// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// bounds are lower bounds of when gangs could start in a plan: trying to choose nodes for a start takes longer.
type bounds struct{ *Plan }

// earliest returns the earliest time at which each signature of the gang fits in a domain, or with nil anywhere, if there were
// no other starts and no other tasks in it: a lower bound. NoEnd if it never does.
func (p bounds) earliest(g Gang, d *Domain) int64 { return p.earliestOf(g.whole(), d) }

func (p bounds) earliestTogether(tasks []*api.TaskInfo, d *Domain) int64 {
	begin := p.Now
	for _, tasks := range bySignature(tasks) {
		k := newFirst(len(tasks), cmp.Compare[int64])
		for _, i := range inDomains(p).nodesIn(tasks[0], d) {
			for _, at := range p.available(i).fitTimes(tasks[0], len(tasks)) {
				k.add(at)
			}
		}
		at, ok := k.last()
		if !ok {
			return NoEnd
		}
		begin = max(begin, at)
	}
	return begin
}

// later returns a time after at: before it, not enough becomes free for what is missing for tasks of the start.
func (p bounds) later(s *Start, at int64, missing shortage) int64 {
	next := int64(NoEnd)
	for _, one := range missing {
		next = min(next, p.laterWith(s, at, one))
	}
	return next
}

func (p bounds) laterWith(s *Start, at int64, missing lack) int64 {
	k := newFirst(missing.count, cmp.Compare[int64])
	for _, i := range inDomains(p).nodesIn(missing.task, missing.domain) {
		for _, free := range p.available(i).fitTimes(missing.task, len(s.Tasks)+missing.count) {
			if free > at {
				k.add(free)
			}
		}
	}
	for _, other := range p.starts {
		if end := other.end(); end > at && end < NoEnd {
			for range min(len(other.Tasks)*fitsPerTask, missing.count) {
				k.add(end)
			}
		}
	}
	if next, ok := k.last(); ok {
		return next
	}
	return NoEnd
}

// fitsPerTask is how many tasks of another gang are assumed to fit at most where a task of a start ends. It only bounds
// how far later looks ahead: many small tasks can fit where a large one ends.
const fitsPerTask = 1 << 10

// earliestOf is earliest for a part in a domain.
func (p bounds) earliestOf(part *Part, d *Domain) int64 {
	if part.Parts == nil {
		return p.earliestTogether(part.Tasks, d)
	}
	begin := p.Now
	for parts := part.Parts; len(parts) > 0; {
		inner, n := parts[0], 1
		for n < len(parts) && parts[n].alike(inner) {
			n++
		}
		parts = parts[n:]
		switch {
		case inner.Domains == nil:
			begin = max(begin, p.earliestOf(inner, d))
		case inner.alike(inner):
			begin = max(begin, p.earliestAlike(inner, n, d))
		default:
			first := int64(NoEnd)
			for _, option := range inner.Domains {
				if first > begin && option.inside(d) {
					first = min(first, p.earliestOf(inner, option))
				}
			}
			begin = max(begin, first)
		}
	}
	return begin
}

// earliestAlike is earliestOf for so many parts that are alike. A domain holds one more of them whenever as many more tasks fit
// there.
//
// For example, tasks fit in one rack from 1, 2, 5 and 5 on, and in another one from 3 and 4 on. Parts of two tasks fit from 2, 4
// and 5 on, so three of them do from 5 on.
func (p bounds) earliestAlike(part *Part, n int, d *Domain) int64 {
	size, first := len(part.Tasks), newFirst(n, cmp.Compare[int64])
	var times []int64
	for _, option := range part.Domains {
		if !option.inside(d) {
			continue
		}
		times = times[:0]
		for _, i := range inDomains(p).nodesIn(part.Tasks[0], option) {
			times = append(times, p.available(i).fitTimes(part.Tasks[0], size*n)...)
		}
		slices.Sort(times)
		for at := size; at <= min(len(times), size*n); at += size {
			first.add(times[at-1])
		}
	}
	if at, ok := first.last(); ok {
		return max(at, p.Now)
	}
	return NoEnd
}

// couldFitBefore reports whether the earliest time is before a limit, which takes less time than to find it.
func (p bounds) couldFitBefore(g Gang, limit int64) bool {
	switch {
	case g.Domains != nil:
		return slices.ContainsFunc(g.Domains, func(d *Domain) bool { return p.earliest(g, d) < limit })
	case g.Parts != nil:
		return p.earliest(g, nil) < limit
	}
	for _, tasks := range bySignature(g.Tasks) {
		missing := len(tasks)
		for _, i := range p.nodesFor(tasks[0]) {
			for _, at := range p.available(i).fitTimes(tasks[0], len(tasks)) {
				if at >= limit {
					break
				}
				missing--
			}
			if missing <= 0 {
				break
			}
		}
		if missing > 0 {
			return false
		}
	}
	return true
}
