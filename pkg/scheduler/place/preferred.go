// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"math"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// preferred divides the nodes for the tasks of a claim into parts, which are the domains of the level that its job prefers.
//
// The fewest parts are found from counts: of the tasks that request the most, as many fit in a part as fit on its nodes.
// That is exact if all tasks of the claim are alike and only resources matter.
type preferred struct {
	domains *nodeindex.Domains
	count   int64 // of these tasks
	parts   []part

	level  *api.TopologyLevel           // of around
	around map[*nodeindex.Domain][]part // the parts by the domain of a wider level that contains them
}

// part is a domain that tasks can be placed in.
type part struct {
	domain    Domain
	available int64 // tasks that fit there, see Domains.Available
	lost      int   // nodes, see Domains.Lost
	used      bool  // members of the job have nodes there
}

// newPreferred returns the parts for a claim; nil if its job prefers no level.
func newPreferred(ssn *framework.Session, claim *api.Claim) *preferred {
	level := claim.Job.PreferredLevel
	if level == nil {
		return nil
	}
	main := largestKind(ssn, claim.Tasks)
	p := &preferred{domains: ssn.Nodes().Domains(level), count: main.count}
	used, _ := p.domains.Holding(claim.Job)
	fit := p.domains.Available(main.task)
	for _, domain := range p.domains.All() {
		if available := fit.In(domain); available > 0 {
			p.parts = append(p.parts, part{Domain{Domain: domain}, available, p.domains.Lost(domain), slices.Contains(used, domain)})
		}
	}
	slices.SortFunc(p.parts, func(a, b part) int {
		return cmp.Or(trueFirst(a.used, b.used), cmp.Compare(b.available, a.available), tightest(a, b))
	})
	return p
}

// trueFirst orders true before false.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return +1
}

// tightest orders parts that would hold all tasks that are left.
func tightest(a, b part) int {
	return cmp.Or(cmp.Compare(a.available, b.available), cmp.Compare(a.lost, b.lost), cmp.Compare(a.domain.Path, b.domain.Path))
}

// largestKind returns those of the tasks that are alike and together request the most of the cluster.
func largestKind(ssn *framework.Session, tasks []*api.TaskInfo) kindOfTasks {
	kinds := kindsOf(tasks)
	dims, total := ssn.Cluster().Dims(), ssn.Nodes().Total()
	return slices.MaxFunc(kinds, func(a, b kindOfTasks) int {
		return dims.Dominant(a.task.Request.Times(a.count), total).Compare(dims.Dominant(b.task.Request.Times(b.count), total))
	})
}

// within returns the parts inside a domain, in the order in which they are filled, and how many of them the tasks need. A
// nil domain stands for all nodes. Parts that are used come first, then those where the most tasks fit, and in the place of
// the last one that is needed the smallest that holds the rest. The parts behind that one are for tasks that the counts
// overestimate.
//
// For example, 7 tasks and parts for 3, 3, 2 and 1 of them: they need the parts for 3, 3 and 1. If the parts do not
// suffice, because nodes are in no domain of the level, the number is greater than theirs.
func (p *preferred) within(domain *nodeindex.Domain, level *api.TopologyLevel) (parts []part, needed int) {
	parts = p.parts
	if domain != nil {
		p.divide(level)
		parts = p.around[domain]
	}
	parts = slices.Clone(parts)
	left := p.count
	for left > 0 && needed < len(parts) {
		if !parts[needed].used && parts[needed].available >= left {
			moveTightest(parts[needed:], left)
		}
		left -= parts[needed].available
		needed++
	}
	if left > 0 {
		return parts, math.MaxInt
	}
	return parts, needed
}

// divide finds the parts inside each domain of a level.
func (p *preferred) divide(level *api.TopologyLevel) {
	if p.level == level {
		return
	}
	p.level, p.around = level, map[*nodeindex.Domain][]part{}
	for _, one := range p.parts {
		if around := p.domains.Around(one.domain.Domain, level); around != nil {
			p.around[around] = append(p.around[around], one)
		}
	}
}

// moveTightest moves the tightest of the parts that hold a number of tasks to the front.
func moveTightest(parts []part, tasks int64) {
	best := 0
	for i, one := range parts {
		if one.available >= tasks && tightest(one, parts[best]) < 0 {
			best = i
		}
	}
	one := parts[best]
	copy(parts[1:best+1], parts[:best])
	parts[0] = one
}

// lost returns how many nodes are lost in whole domains if the tasks run in these parts.
func (p *preferred) lost(parts []part) int {
	domains := make([]*nodeindex.Domain, len(parts))
	for i := range parts {
		domains[i] = parts[i].domain.Domain
	}
	return p.domains.Lost(domains...)
}

// filling places tasks in the parts of a domain, one part after the other, and then anywhere in the domain.
type filling struct {
	placer *Placer
	o      Options // of the domain
	parts  []part
	full   map[*api.EquivalenceClass]int // how many of the parts had no node for a task of the class
	mark   framework.Mark                // of the statement after the last placement
}

// place places t on the best node of the first part that has one.
func (f *filling) place(stmt *framework.Statement, t *api.TaskInfo) bool {
	if f.full == nil || stmt.Mark() < f.mark { // placements have been undone
		f.full = map[*api.EquivalenceClass]int{}
	}
	class, placed := f.placer.ssn.Cluster().ClassOf(t), false
	for i := f.full[class]; i < len(f.parts) && !placed; i++ {
		within := f.o
		within.Domain = &f.parts[i].domain
		placed = f.placer.Place(stmt, t, within)
		if !placed {
			f.full[class] = i + 1
		}
	}
	placed = placed || f.placer.Place(stmt, t, f.o)
	f.mark = stmt.Mark()
	return placed
}
