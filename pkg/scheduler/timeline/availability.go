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
	taken []taking // by starts, in their order
}

// taking is what a start takes of a node.
type taking struct {
	start  *Start
	amount api.Resource
}

// at returns what is free at a time, given what starts have taken, as a new vector.
func (c *availability) at(time int64) api.Resource {
	sum := c.free.Clone()
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
// the latest comes first. Values are times of changes, or not after now.
func (c *availability) fitsSince(t *api.TaskInfo, time int64, most int, now int64, since []int64) []int64 {
	if len(c.taken) == 0 { // what is free only grows
		fits := c.fitTimes(t, most)
		for i := len(fits) - 1; i >= 0; i-- {
			if fits[i] <= time {
				since = append(since, max(fits[i], now))
			}
		}
		return since
	}
	count := min(int64(most), t.Request.TimesIn(c.at(time)))
	for at := time; count > 0; {
		change := c.changeBefore(at, now)
		left := int64(0)
		if change <= now {
			change = now
		} else {
			left = min(count, max(t.Request.TimesIn(c.at(change-1)), 0))
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
func (c *availability) held() (first *Start, most api.Resource) {
	for _, at := range c.taken {
		if at.start.Open {
			continue
		}
		if first == nil {
			first = at.start
		}
		var need api.Resource
		for _, t := range c.taken {
			if !t.start.Open && t.start.At <= at.start.At && at.start.At < t.start.end() {
				need.Add(t.amount)
			}
		}
		for _, r := range c.releases {
			if r.at > at.start.At {
				break
			}
			if !r.begun {
				need.Sub(r.amount)
			}
		}
		most = most.Max(need.NotNegative())
	}
	return first, most
}
