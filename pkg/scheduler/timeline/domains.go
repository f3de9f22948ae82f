// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/heap"
)

// NodeSet is a set of nodes, by their indices.
type NodeSet interface {
	Has(index int) bool
	// Each visits them in ascending order.
	Each(visit func(index int))
}

// Domain is a part of the nodes.
type Domain struct {
	Path  string
	Nodes NodeSet
	// Lost is how many nodes would not be in a whole domain any more if a gang started in this one: the fewer, the better.
	Lost int
}

// Kind is what makes tasks equal in where they could run if the nodes were empty. Tasks of a gang that must be in one domain
// are distinguished from those of others: where members run, the others must be too.
type Kind struct {
	signature *api.Signature
	job       *api.JobInfo
	part      *api.SubGroup
}

// KindOf returns the kind of a task.
func KindOf(t *api.TaskInfo) Kind {
	k := Kind{signature: t.Signature}
	switch {
	case t.Job == nil:
	case t.Job.SubGroups.HasConstraint():
		k.job, k.part = t.Job, ofPart(t)
	case t.Job.TopologyLevel != nil:
		k.job = t.Job
	}
	return k
}

// Pinned returns the gang of a start, which may be only in the domain where it is now.
func (s *Start) Pinned() Gang {
	g := s.Gang
	if s.Domain != nil {
		g.Domains = []*Domain{s.Domain}
	}
	return g
}

// inDomains is a plan, for starts that must be in one domain.
type inDomains struct{ *Plan }

// candidate is a domain with a time; before that time, a gang does not fit there.
type candidate struct {
	domain *Domain
	at     int64
}

// addWithin is addBefore for a gang that must be in one domain. It tries the domain where the bound is earliest, until the gang
// fits: no other domain holds it before. Of several domains at one time, the first in the order of inOrder is taken.
func (p inDomains) addWithin(s *Start, limit int64) bool {
	next := heap.New(func(a, b candidate) int { return cmp.Compare(a.at, b.at) })
	push := func(d *Domain, at int64) {
		if at < limit {
			next.Push(candidate{d, at})
		}
	}
	for _, d := range s.Domains {
		push(d, bounds(p).earliest(s.Gang, d))
	}
	var equal []*Domain
	for next.Len() > 0 {
		at := next.First().at
		for equal = equal[:0]; next.Len() > 0 && next.First().at == at; next.Pop() {
			equal = append(equal, next.First().domain)
		}
		for _, d := range p.inOrder(s.Gang, equal, at) {
			s.Domain = d
			missing, ok := p.tryAt(s, at)
			if ok {
				return true
			}
			push(d, bounds(p).later(s, at, missing))
		}
	}
	return false
}

// tryWithin adds a start at a time, in the first domain where it fits and delays nothing.
func (p inDomains) tryWithin(s *Start, at int64) bool {
	var possible []*Domain
	for _, d := range s.Domains {
		if bounds(p).earliest(s.Gang, d) <= at {
			possible = append(possible, d)
		}
	}
	return slices.ContainsFunc(p.inOrder(s.Gang, possible, at), func(d *Domain) bool {
		s.Domain = d
		_, ok := p.tryAt(s, at)
		return ok
	})
}

// inOrder sorts domains in the order of compareOptions.
func (p inDomains) inOrder(g Gang, domains []*Domain, at int64) []*Domain {
	if len(domains) < 2 {
		return domains
	}
	options := make([]option, len(domains))
	for i, d := range domains {
		options[i] = option{domain: d, free: p.freeIn(g.Tasks[0], d, at)}
	}
	slices.SortFunc(options, compareOptions)
	for i, o := range options {
		domains[i] = o.domain
	}
	return domains
}

// chooseAnywhere chooses the nodes of a start for its time, in its domain if it fits there, else in another one.
func (p inDomains) chooseAnywhere(s *Start) bool {
	if _, ok := p.choose(s); ok || s.Domain == nil {
		return ok
	}
	return slices.ContainsFunc(s.Domains, func(d *Domain) bool {
		s.Domain = d
		_, ok := p.choose(s)
		return ok
	})
}

// chooseAround chooses the nodes of a start again, so that those that come later keep their nodes. It is tried only if some of
// these must be in one domain: else the later ones fit on some nodes if they fit on any. If it fails, nothing is taken.
func (p inDomains) chooseAround(s *Start, later []*Start) bool {
	if !slices.ContainsFunc(later, func(other *Start) bool { return !other.anywhere() }) {
		return false
	}
	p.release(s)
	p.around = true
	defer func() { p.around = false }()
	_, ok := p.choose(s)
	return ok
}

// keptFree returns how many tasks like this one, at most so many, fit on a node at a time and later, while others start there.
func (p inDomains) keptFree(c *availability, t *api.TaskInfo, s *Start, most int) int {
	for _, other := range c.taken {
		if at := other.start.At; at > s.At && at < s.end() {
			p.sum = c.at(at, p.sum)
			most = min(most, int(t.Request.TimesIn(p.sum)))
		}
	}
	return most
}

// findDomain sets the domain that has all placements of a start. It reports false if there is none, and one is needed, or if
// there is none for one of its parts.
func (s *Start) findDomain() bool {
	if s.Domains == nil {
		return areKept(s.Parts, s.Placements, nil)
	}
	i := slices.IndexFunc(s.Domains, func(d *Domain) bool { return d.hasAll(s.Placements) && areKept(s.Parts, s.Placements, d) })
	if i < 0 {
		return false
	}
	s.Domain = s.Domains[i]
	return true
}

// nodesIn returns the nodes of a domain where tasks like this one could run if they were empty; nil stands for all nodes. The
// slice is valid until the next call.
func (p inDomains) nodesIn(t *api.TaskInfo, d *Domain) []int {
	all := p.nodesFor(t)
	if d == nil {
		return all
	}
	p.inDomain = p.inDomain[:0]
	d.Nodes.Each(func(i int) {
		if _, suits := slices.BinarySearch(all, i); suits {
			p.inDomain = append(p.inDomain, i)
		}
	})
	return p.inDomain
}
