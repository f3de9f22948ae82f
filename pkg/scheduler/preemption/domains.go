// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// maxDomainPlans is how many topology domains a plan is made for.
const maxDomainPlans = 8

// planIn searches for a plan for a claim whose tasks must be in one domain of a level. It makes a plan for each of the
// domains with the lowest bounds, and repeats the cheapest one.
//
// For example, a gang of 4 needs one rack. Rack a has 4 pods of priority 5, rack b has 4 of priority 10, and rack c has 3
// nodes: c is out by its bound, and of the plans for a and b, that for a is cheaper.
func (p *Planner) planIn(level *api.TopologyLevel, stmt *framework.Statement, claim *api.Claim, rules Rules, c *planCache) noPlan {
	var best *place.Domain
	var least cost
	domains := p.domains(level, claim, rules)
	for _, domain := range domains {
		a := &attempt{Planner: p, stmt: stmt, claim: claim, rules: rules, cache: c, domain: domain}
		switch a.plan() {
		case notNeeded:
			return notNeededForFit
		case found:
			if len(domains) == 1 {
				return ""
			}
			if now := costOf(claim, a.evicted); best == nil || now.compare(least) < 0 {
				best, least = domain, now
			}
			stmt.Discard()
		}
	}
	if best == nil {
		return notFound
	}
	again := &attempt{Planner: p, stmt: stmt, claim: claim, rules: rules, cache: c, domain: best}
	if again.plan() != found {
		return notFound
	}
	return ""
}

// bound estimates the cost of a plan for a domain: the cheapest victims node by node, without what gangs and plugins
// require. The fields are compared in their order.
type bound struct {
	priority int32 // the highest victim priority
	pods     int   // evicted
}

// domains returns the domains that plans are made for. A domain that could not hold the claim if all candidates there were
// evicted has no plan.
func (p *Planner) domains(level *api.TopologyLevel, claim *api.Claim, rules Rules) []*place.Domain {
	list := slices.DeleteFunc(place.Domains(p.ssn, claim, level), func(d *place.Domain) bool { return !d.MayHoldAll })
	bounds := map[*place.Domain]bound{}
	victimQueues := rules.VictimQueues()
	isCandidate := func(v *api.TaskInfo) bool {
		return slices.Contains(victimQueues, v.Job.Queue) && isVictimJob(v.Job) && rules.IsCandidate(v.Job)
	}
	for _, d := range list {
		if b, ok := p.boundOf(d, claim, isCandidate); ok {
			bounds[d] = b
		}
	}
	list = slices.DeleteFunc(list, func(d *place.Domain) bool {
		_, ok := bounds[d]
		return !ok
	})
	slices.SortFunc(list, func(a, b *place.Domain) int {
		return cmp.Or(
			cmp.Compare(bounds[a].priority, bounds[b].priority), cmp.Compare(bounds[a].pods, bounds[b].pods), cmp.Compare(a.Path, b.Path))
	})
	return list[:min(len(list), maxDomainPlans)]
}

// offer is that some more tasks of the claim fit on a node after pods are evicted.
type offer struct {
	bound
	tasks int64
}

// boundOf returns the bound of a domain for those tasks of a claim that are like the first one. It reports false if they
// do not fit.
func (p *Planner) boundOf(d *place.Domain, claim *api.Claim, isCandidate func(*api.TaskInfo) bool) (b bound, ok bool) {
	first, missing := claim.Tasks[0], int64(0)
	for _, t := range claim.Tasks {
		if t.Signature == first.Signature {
			missing++
		}
	}
	nodes, feasible := p.ssn.Cluster().Nodes(), p.ssn.Nodes().Feasible(first.Signature)
	var offers []offer
	d.Nodes().Each(func(i int) {
		if feasible.Has(i) {
			fit, more := p.offersOf(nodes[i], first, isCandidate)
			missing -= fit
			offers = append(offers, more...)
		}
	})
	slices.SortStableFunc(offers, func(x, y offer) int {
		return cmp.Or(cmp.Compare(x.priority, y.priority), cmp.Compare(x.pods, y.pods))
	})
	for i := 0; missing > 0 && i < len(offers); i++ {
		missing -= offers[i].tasks
		b.pods += offers[i].pods
		b.priority = offers[i].priority
	}
	return b, missing <= 0
}

// offersOf returns how many tasks like t fit on a node without evictions, and what evictions add.
func (p *Planner) offersOf(n *api.NodeInfo, t *api.TaskInfo, isCandidate func(*api.TaskInfo) bool) (fit int64, offers []offer) {
	free := n.Available(t.Priority, api.Future)
	fit = t.Request.TimesIn(free)
	if !n.Ready() {
		return fit, nil // its pods could be terminating without end
	}
	before, pods := fit, 0
	for _, v := range p.evictable.onNode(n) {
		if !isCandidate(v) {
			continue
		}
		free.Add(v.Request)
		pods++
		if now := t.Request.TimesIn(free); now > before {
			offers = append(offers, offer{bound{v.Job.Priority, pods}, now - before})
			before, pods = now, 0
		}
	}
	return fit, offers
}
