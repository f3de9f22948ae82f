// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// availability is what is free on a node as time passes, given what starts take.
type availability struct {
	*reading
	taken []taking // by starts, in no order
}

// taking is what a start takes of a node.
type taking struct {
	start  *Start
	amount api.Resource
	owned  bool // amount is not the request of a task
}

// add adds the request of one more task.
func (t *taking) add(request api.Resource) {
	if !t.owned {
		t.amount, t.owned = t.amount.Clone(), true
	}
	t.amount.Add(request)
}

// at returns what is free at a time, given what starts have taken, in the memory of sum.
func (c *availability) at(time int64, sum api.Resource) api.Resource {
	sum = append(sum[:0], c.free...)
	for _, r := range c.releases {
		if r.at > time {
			break
		}
		sum.Add(r.amount)
	}
	for _, t := range c.taken {
		if t.start.At <= time && time < t.start.end() {
			sum.Sub(t.amount)
		}
	}
	return sum
}

// fitsSince returns for each task like this one that fits at a time, at most so many, since when it does without interruption;
// the latest comes first. Values are times of changes, or not after now. They are valid until the next call.
func (p *Plan) fitsSince(c *availability, t *api.TaskInfo, time int64, most int) []int64 {
	since, now := p.since[:0], p.Now
	defer func() { p.since = since }()
	if len(c.taken) == 0 { // what is free only grows
		fits := c.fitTimes(t, most)
		for i := len(fits) - 1; i >= 0; i-- {
			if fits[i] <= time {
				since = append(since, max(fits[i], now))
			}
		}
		return since
	}
	p.sum = c.at(time, p.sum)
	count := min(int64(most), t.Request.TimesIn(p.sum))
	for at := time; count > 0; {
		change := c.changeBefore(at, now)
		left := int64(0)
		if change <= now {
			change = now
		} else {
			p.sum = c.at(change-1, p.sum)
			left = min(count, max(t.Request.TimesIn(p.sum), 0))
		}
		for ; count > left; count-- {
			since = append(since, change)
		}
		at = change - 1
	}
	return since
}

// changeBefore returns the last time until a time at which something became free; now if there is none.
func (c *availability) changeBefore(time, now int64) int64 {
	last := now
	i, _ := slices.BinarySearchFunc(c.releases, time+1, func(r release, at int64) int { return cmp.Compare(r.at, at) })
	if i > 0 {
		last = max(last, c.releases[i-1].at)
	}
	for _, t := range c.taken {
		if end := t.start.end(); end <= time {
			last = max(last, end)
		}
	}
	return last
}

// held returns what others must not take from now on that do not end before it is needed, so that those starts can take
// their part that are not open; and the first of these. What is being released counts as not free: a reservation takes that
// first.
func (p *Plan) held(c *availability) (first *Start, most api.Resource) {
	for _, at := range c.taken {
		if at.start.Open {
			continue
		}
		if first == nil || at.start.At < first.At {
			first = at.start
		}
		need := p.neededAt(c, at.start.At)
		if len(most) < len(need) {
			most = append(most, make(api.Resource, len(need)-len(most))...)
		}
		for dim, n := range need {
			most[dim] = max(most[dim], n)
		}
	}
	return first, most
}

// neededAt returns what those starts take at a time that are not open, without what becomes free until then. The vector is valid
// until the next call.
func (p *Plan) neededAt(c *availability, time int64) api.Resource {
	p.sum = append(p.sum[:0], c.free...)
	clear(p.sum)
	for _, t := range c.taken {
		if !t.start.Open && t.start.At <= time && time < t.start.end() {
			p.sum.Add(t.amount)
		}
	}
	for _, r := range c.releases {
		if r.at > time {
			break
		}
		if !r.begun {
			p.sum.Sub(r.amount)
		}
	}
	return p.sum
}
