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

// Certainty says what the end of a task depends on. Flags can be combined.
type Certainty uint8

const (
	// Moving: the end depends on the current time, so that it is another one in the next session.
	Moving Certainty = 1 << iota
	// Estimated: the task may end earlier.
	Estimated
	// Unlimited: the end is an estimate, and nothing limits it.
	Unlimited
)

// Readings are what plans have read of nodes. They stay valid from one session to the next while a node does not change: most
// do not. If the end of a task changes, and its node does not, Invalidate has to be called.
type Readings struct {
	byNode []reading
	// feasible are the nodes of kinds of tasks in the last plan, and in the one before.
	feasible, before map[Kind][]int
	// grown is set when at some time more is free than before, until starts have been improved.
	grown   bool
	profile profile // for comparisons
}

// open begins a plan with so many nodes. Plans before it must not be used any more.
func (r *Readings) open(nodes int) {
	if missing := nodes - len(r.byNode); missing > 0 {
		r.byNode = append(r.byNode, make([]reading, missing)...)
	}
	r.before, r.feasible = r.feasible, map[Kind][]int{}
}

// setFeasible sets the nodes of a kind of tasks in this plan.
func (r *Readings) setFeasible(k Kind, nodes []int) {
	before, known := r.before[k]
	r.grown = r.grown || known && !slices.Equal(nodes, before)
	r.feasible[k] = nodes
}

// Invalidate makes the next plan read a node again. A node that pods name and that does not exist has a negative index.
func (r *Readings) Invalidate(index int) {
	if index >= 0 && index < len(r.byNode) {
		r.byNode[index].stale = true
	}
}

// read reads a node, and compares it with what was read before.
func (r *Readings) read(index int, n *api.NodeInfo, now int64, ends func(*api.TaskInfo) (int64, Certainty)) {
	one := &r.byNode[index]
	first, same := one.node == nil, one.node == n && one.from == n.UnavailableFrom
	r.profile.copy(&one.profile)
	one.read(n, now, ends)
	r.grown = r.grown || !first && (!same || one.exceeds(&r.profile, now))
}

// reading is what becomes free on a node as time passes.
type reading struct {
	node       *api.NodeInfo
	stale      bool         // see Readings.Invalidate
	from       int64        // NodeInfo.UnavailableFrom when it was read
	generation uint64       // NodeInfo.OwnGeneration when it was read
	reserved   api.Resource // likewise
	now        int64        // when it was read
	certainty  Certainty
	profile
	next int64 // the time of the first release; NoEnd if there is none

	// fits are since when one, two and more tasks of a signature fit, at most so many.
	signature *api.Signature
	most      int
	fits      []int64
}

// profile is what is free on a node as time passes.
type profile struct {
	free     api.Resource // when it was read; may be negative
	releases []release    // in the order of time, all of them later
}

// copy makes p equal to another profile.
func (p *profile) copy(other *profile) {
	p.free = append(p.free[:0], other.free...)
	p.releases = append(p.releases[:0], other.releases...)
}

// exceeds reports whether at some time, now or later, more is free than in a profile that was read before.
func (p *profile) exceeds(before *profile, now int64) bool {
	dims := max(len(p.free), len(before.free))
	for _, r := range p.releases {
		dims = max(dims, len(r.amount))
	}
	for d := range dims {
		if p.exceedsIn(d, before, now) {
			return true
		}
	}
	return false
}

func (p *profile) exceedsIn(d int, before *profile, now int64) bool {
	more, was := p.free.At(d)-before.free.At(d), before.releases
	for i, time := 0, now; ; i++ {
		for len(was) > 0 && was[0].at <= time {
			more -= was[0].amount.At(d)
			was = was[1:]
		}
		last := i == len(p.releases)
		if more > 0 && (last || p.releases[i].at > time) {
			return true
		}
		if last {
			return false
		}
		time = p.releases[i].at
		more += p.releases[i].amount.At(d)
	}
}

// release is what becomes free at a time.
type release struct {
	at     int64
	amount api.Resource
	begun  bool // the task is being deleted
}

// holds reports whether the reading is that of the node as it is now.
func (r *reading) holds(n *api.NodeInfo, now int64) bool {
	if r.node != n || r.stale || r.generation != n.OwnGeneration || !r.reserved.Equal(n.Reserved) {
		return false
	}
	return now == r.now || r.certainty&Moving == 0 && now < r.next
}

// read reads a node. Resources that are nominated for pods of other schedulers, or reserved, do not become free.
func (r *reading) read(n *api.NodeInfo, now int64, ends func(*api.TaskInfo) (int64, Certainty)) {
	r.node, r.stale, r.generation, r.now, r.certainty, r.signature = n, false, n.OwnGeneration, now, 0, nil
	r.from, r.reserved = n.UnavailableFrom, append(r.reserved[:0], n.Reserved...)
	r.free = n.Available(math.MinInt32, api.Future)
	r.releases = r.releases[:0]
	if n.Ready() {
		r.free.Sub(n.Releasing)
	}
	for _, t := range n.Tasks {
		if !t.Status.Holding() && t.Status != api.Pipelined && t.Status != api.Releasing {
			continue
		}
		at, certainty := ends(t)
		r.certainty |= certainty
		if at < NoEnd {
			r.releases = append(r.releases, release{max(at, now+1), t.Request, t.Status == api.Releasing})
		}
	}
	slices.SortFunc(r.releases, func(a, b release) int { return cmp.Compare(a.at, b.at) })
	if r.next = NoEnd; len(r.releases) > 0 {
		r.next = r.releases[0].at
	}
}

// fitTimes returns since when one, two and more tasks like this one fit if nothing else starts, at most so many. What fits now
// does since when the node was read, or before. The slice belongs to the reading.
func (r *reading) fitTimes(t *api.TaskInfo, most int) []int64 {
	if r.signature != t.Signature || r.most < most {
		r.signature, r.most, r.fits = t.Signature, most, r.fits[:0]
		r.addFits(t.Request)
	}
	return r.fits[:min(len(r.fits), most)]
}

func (r *reading) addFits(request api.Resource) {
	sum, next := r.free, request // next is what one more task needs besides those that fit
	owned := false
	full := func(at int64) bool {
		for next.Fits(sum) {
			if r.fits = append(r.fits, at); len(r.fits) == r.most {
				return true
			}
			if !owned {
				next, owned = next.Clone(), true
			}
			next.Add(request)
		}
		return false
	}
	if full(r.now) || len(r.releases) == 0 {
		return
	}
	sum = sum.Clone()
	for _, release := range r.releases {
		sum.Add(release.amount)
		if full(release.at) {
			return
		}
	}
}
