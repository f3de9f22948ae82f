// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// Gang completes the gang of a claim in task order. If that fails and the pod signatures differ, it tries again with the
// largest tasks first. A gang that must be in one domain is tried domain by domain. The tasks are those of the
// claim, followed by their substitutes. If the gang cannot be completed, Gang leaves the statement unchanged
// and returns the failure of the first attempt.
func (p *Placer) Gang(stmt *framework.Statement, claim *api.Claim, tasks []*api.TaskInfo, o Options) *Failure {
	inTaskOrder := func(tasks []*api.TaskInfo) *Failure {
		return p.tryDomains(claim, tasks, o, func(s search) *Failure { return try(p.ssn, stmt, claim.Job, tasks, s) })
	}
	failure := inTaskOrder(tasks)
	if failure != nil && claim.Job.SubGroups == nil && signaturesDiffer(claim.Tasks) && inTaskOrder(largestFirst(p.ssn, claim, tasks)) == nil {
		return nil
	}
	return failure
}

// Surplus places all tasks of a claim whose gang has what it needs. If that fails, it leaves the statement unchanged.
func (p *Placer) Surplus(stmt *framework.Statement, claim *api.Claim, o Options) *Failure {
	inOrder := func(s search) *Failure { return placeAll(p.ssn, stmt, claim, s) }
	if claim.Job.PreferredLevel == nil {
		return inOrder(p.placeWith(o))
	}
	return p.tryDomains(claim, claim.Tasks, o, inOrder)
}

// attempt places the tasks of a claim with a search, or changes nothing and returns the failure.
type attempt func(search) *Failure

// tryDomains makes the attempt for a claim: domain by domain in the order of toTry if all tasks must be in one domain, and if
// its job prefers a level, from the narrowest domains to all nodes. The tasks are those of the claim, followed by their
// substitutes.
func (p *Placer) tryDomains(claim *api.Claim, tasks []*api.TaskInfo, o Options, try attempt) *Failure {
	level := RequiredLevel(p.ssn, claim)
	switch {
	case o.Nodes != nil || level == nil && claim.Job.PreferredLevel == nil:
		return try(p.placeWith(o))
	case level == nil:
		return p.tryPreferred(claim, tasks, o, try)
	}
	var best *Failure
	for _, d := range toTry(p.ssn, claim, level, tasks) {
		if best != nil && !d.HoldsAll && !signaturesDiffer(claim.Tasks) {
			break // smaller domains cannot hold it either
		}
		failure := try(p.placeIn(d, d.parts, o))
		if failure == nil {
			return nil
		}
		if best == nil || len(failure.Placed) > len(best.Placed) {
			failure.Domain = d
			best = failure
		}
	}
	if best != nil && level.Topology != "" {
		return best
	}
	// Members may differ in labels, so that the affinity does not select all of them: try all nodes, where the
	// predicates decide. They refuse all nodes if the level of a topology has no domain.
	if last := try(p.placeWith(o)); last == nil || best == nil {
		return last
	}
	return best
}

// tryPreferred makes the attempt for a claim whose job prefers a level and requires none: in one domain of the level, then in
// one of the next wider level, and so on, and at last anywhere. If members of the job have nodes, these are domains that
// contain all of them.
func (p *Placer) tryPreferred(claim *api.Claim, tasks []*api.TaskInfo, o Options, try attempt) *Failure {
	preferred, tries := newPreferred(p.ssn, claim), 0
	for domains := preferred.domains; domains != nil; domains = domains.Wider() {
		if holding, all := domains.Holding(claim.Job); !all || len(holding) > 1 {
			continue
		}
		for _, d := range inOrder(p.ssn, Domains(p.ssn, claim, domains.Level()), preferred, tasks) {
			if tries++; tries > maxDomainTries {
				break
			}
			if try(p.placeIn(d, d.parts, o)) == nil {
				return nil
			}
		}
	}
	parts, _ := preferred.within(nil, nil)
	return try(p.placeIn(nil, parts, o))
}

// placeWith returns a search among the nodes that the options allow.
func (p *Placer) placeWith(o Options) search {
	return search{domain: o.Domain, fit: (*nodeindex.Domains).Available, place: func(stmt *framework.Statement, t *api.TaskInfo, in *Domain) bool {
		o.Domain = in
		return p.Place(stmt, t, o)
	}}
}

// placeIn returns a search in a domain, where it fills one part after the other.
func (p *Placer) placeIn(d *Domain, parts []part, o Options) search {
	o.Domain = d
	s := p.placeWith(o)
	if len(parts) == 0 || len(parts) == 1 && d != nil && parts[0].domain.Domain == d.Domain {
		return s
	}
	f, anywhere := &filling{placer: p, o: o, parts: parts}, s.place
	s.place = func(stmt *framework.Statement, t *api.TaskInfo, in *Domain) bool {
		if in != d { // a subgroup has chosen the domain
			return anywhere(stmt, t, in)
		}
		return f.place(stmt, t)
	}
	return s
}
