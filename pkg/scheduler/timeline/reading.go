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
type Readings struct{ byNode []*reading }

// of returns the reading of a node.
func (r *Readings) of(index int) *reading {
	if index >= len(r.byNode) {
		r.byNode = slices.Grow(r.byNode, index+1-len(r.byNode))[:index+1]
	}
	if r.byNode[index] == nil {
		r.byNode[index] = &reading{}
	}
	return r.byNode[index]
}

// Invalidate makes the next plan read a node again. A node that pods name and that does not exist has a negative index.
func (r *Readings) Invalidate(index int) {
	if index >= 0 && index < len(r.byNode) && r.byNode[index] != nil {
		r.byNode[index].node = nil
	}
}

// reading is what becomes free on a node as time passes.
type reading struct {
	node       *api.NodeInfo
	generation uint64       // NodeInfo.OwnGeneration when it was read
	reserved   api.Resource // likewise
	now        int64        // when it was read
	certainty  Certainty
	free       api.Resource // now; may be negative
	releases   []release    // in the order of time, all of them later than now

	// fits are since when one, two and more tasks of a signature fit, at most so many.
	signature *api.Signature
	most      int
	fits      []int64
}

// release is what becomes free at a time.
type release struct {
	at     int64
	amount api.Resource
	begun  bool // the task is being deleted
}

// holds reports whether the reading is that of the node as it is now.
func (r *reading) holds(n *api.NodeInfo, now int64) bool {
	if r.node != n || r.generation != n.OwnGeneration || !r.reserved.Equal(n.Reserved) {
		return false
	}
	return now == r.now || r.certainty&Moving == 0 && (len(r.releases) == 0 || now < r.releases[0].at)
}

// read reads a node. Resources that are nominated for pods of other schedulers, or reserved, do not become free.
func (r *reading) read(n *api.NodeInfo, now int64, ends func(*api.TaskInfo) (int64, Certainty)) {
	r.node, r.generation, r.now, r.certainty, r.signature = n, n.OwnGeneration, now, 0, nil
	r.reserved = append(r.reserved[:0], n.Reserved...)
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
