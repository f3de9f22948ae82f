// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"math"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// NoEnd is when a task ends whose end is not known: later than all times. Times are in nanoseconds since 1970.
const NoEnd = api.NoEnd

// availability is what is free on a node as time passes.
type availability struct {
	generation uint64       // of the node, when it was read
	free       api.Resource // now; may be negative
	releases   []release    // in the order of time, all of them later than now
	taken      []taking     // by starts, in their order
}

// release is what becomes free at a time.
type release struct {
	at     int64
	amount api.Resource
	begun  bool // the task is being deleted
}

// taking is what a start takes of a node.
type taking struct {
	start  *Start
	amount api.Resource
}

// read reads a node. Resources that are nominated for pods of other schedulers, or reserved, do not become free.
func (c *availability) read(n *api.NodeInfo, now int64, ends func(*api.TaskInfo) int64) {
	c.generation = n.Generation
	c.free = n.Available(math.MinInt32, api.Future)
	c.releases = c.releases[:0]
	if n.Ready() {
		c.free.Sub(n.Releasing)
	}
	for _, t := range n.Tasks {
		if at := ends(t); at < NoEnd && (t.Status.Holding() || t.Status == api.Pipelined || t.Status == api.Releasing) {
			c.releases = append(c.releases, release{max(at, now+1), t.Request, t.Status == api.Releasing})
		}
	}
	slices.SortFunc(c.releases, func(a, b release) int { return cmp.Compare(a.at, b.at) })
}

// eachFit calls visit for each task with the request that fits as time passes if nothing else starts, with the time
// from which on it does; for at most so many tasks.
func (c *availability) eachFit(request api.Resource, most int, visit func(at int64), now int64) {
	sum, next := c.free, request // next is what one more task needs besides those that fit
	owned := false
	grow := func(at int64) bool {
		for next.Fits(sum) {
			visit(at)
			if most--; most == 0 {
				return false
			}
			if !owned {
				next, owned = next.Clone(), true
			}
			next.Add(request)
		}
		return true
	}
	if !grow(now) || len(c.releases) == 0 {
		return
	}
	sum = sum.Clone()
	for _, r := range c.releases {
		sum.Add(r.amount)
		if !grow(r.at) {
			return
		}
	}
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

// fitsSince returns for each task with the request that fits at a time, at most so many, since when it does without
// interruption; the latest comes first. Values are times of changes, or now.
func (c *availability) fitsSince(request api.Resource, time int64, most int, now int64, since []int64) []int64 {
	count := min(int64(most), request.TimesIn(c.at(time)))
	for at := time; count > 0; {
		change := c.changeBefore(at, now)
		left := int64(0)
		if change <= now {
			change = now
		} else {
			left = min(count, max(request.TimesIn(c.at(change-1)), 0))
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
