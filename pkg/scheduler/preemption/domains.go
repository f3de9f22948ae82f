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

// domainPlans is the search for a plan for a claim whose tasks must be in one domain of a level.
type domainPlans struct {
	planner *Planner
	level   *api.TopologyLevel
	claim   *api.Claim
	rules   Rules
}

// search makes a plan for each of the domains with the lowest bounds, and repeats the cheapest one.
//
// For example, a gang of 4 needs one rack. Rack a has 4 pods of priority 5, rack b has 4 of priority 10, and rack c has 3
// nodes: c is out by its bound, and of the plans for a and b, that for a is cheaper.
func (d *domainPlans) search(stmt *framework.Statement, c *planCache) noPlan {
	var best *place.Domain
	var least cost
	attemptIn := func(domain *place.Domain) *attempt {
		return &attempt{Planner: d.planner, stmt: stmt, claim: d.claim, rules: d.rules, cache: c, domain: domain}
	}
	domains := d.domains()
	for _, domain := range domains {
		a := attemptIn(domain)
		switch a.plan() {
		case notNeeded:
			return notNeededForFit
		case found:
			if len(domains) == 1 {
				return ""
			}
			if now := costOf(d.claim, a.evicted); best == nil || now.compare(least) < 0 {
				best, least = domain, now
			}
			stmt.Discard()
		}
	}
	if best == nil || attemptIn(best).plan() != found {
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
func (d *domainPlans) domains() []*place.Domain {
	list := place.Domains(d.planner.ssn, d.claim, d.level)
	return cheapestDomains(d.planner, slices.DeleteFunc(list, func(domain *place.Domain) bool { return !domain.MayHoldAll }), d.claim.Tasks, d.rules)
}

// cheapestDomains returns those of the domains with the lowest bounds for a plan that places tasks in one of them.
func cheapestDomains(p *Planner, list []*place.Domain, tasks []*api.TaskInfo, rules Rules) []*place.Domain {
	bounds := map[*place.Domain]bound{}
	victimQueues := rules.VictimQueues()
	isCandidate := func(v *api.TaskInfo) bool {
		return slices.Contains(victimQueues, v.Job.Queue) && isVictimJob(v.Job) && rules.IsCandidate(v.Job)
	}
	list = slices.DeleteFunc(list, func(domain *place.Domain) bool {
		b, ok := boundOf(p, domain, tasks, isCandidate)
		bounds[domain] = b
		return !ok
	})
	slices.SortFunc(list, func(a, b *place.Domain) int {
		return cmp.Or(
			cmp.Compare(bounds[a].priority, bounds[b].priority), cmp.Compare(bounds[a].pods, bounds[b].pods), cmp.Compare(a.Path, b.Path))
	})
	return list[:min(len(list), maxDomainPlans)]
}

// gain is that some more tasks of the claim fit on a node after pods are evicted.
type gain struct {
	bound
	tasks int64
}

// boundOf returns the bound of a domain for those of the tasks that are like the first one. It reports false if they do not
// fit.
func boundOf(p *Planner, domain *place.Domain, tasks []*api.TaskInfo, isCandidate func(*api.TaskInfo) bool) (b bound, ok bool) {
	first, missing := tasks[0], int64(0)
	for _, t := range tasks {
		if t.Signature == first.Signature {
			missing++
		}
	}
	ssn := p.ssn
	nodes, feasible := ssn.Cluster().Nodes(), ssn.Nodes().Feasible(first.Signature)
	var gains []gain
	domain.Nodes().Each(func(i int) {
		if feasible.Has(i) {
			fit, more := gainsOn(p, nodes[i], first, isCandidate)
			missing -= fit
			gains = append(gains, more...)
		}
	})
	slices.SortStableFunc(gains, func(x, y gain) int {
		return cmp.Or(cmp.Compare(x.priority, y.priority), cmp.Compare(x.pods, y.pods))
	})
	for i := 0; missing > 0 && i < len(gains); i++ {
		missing -= gains[i].tasks
		b.pods += gains[i].pods
		b.priority = gains[i].priority
	}
	return b, missing <= 0
}

// gainsOn returns how many tasks like t fit on a node without evictions, and what evictions add.
func gainsOn(p *Planner, n *api.NodeInfo, t *api.TaskInfo, isCandidate func(*api.TaskInfo) bool) (fit int64, gains []gain) {
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
			gains = append(gains, gain{bound{v.Job.Priority, pods}, now - before})
			before, pods = now, 0
		}
	}
	return fit, gains
}
