// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// attempt places the tasks of a claim with a function, or changes nothing and returns the failure.
type attempt func(place func(*framework.Statement, *api.TaskInfo) bool) *Failure

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

func (p *Placer) placeWith(o Options) func(*framework.Statement, *api.TaskInfo) bool {
	return func(stmt *framework.Statement, t *api.TaskInfo) bool { return p.Place(stmt, t, o) }
}

// placeIn returns a function that places tasks in a domain, where it fills one part after the other.
func (p *Placer) placeIn(d *Domain, parts []part, o Options) func(*framework.Statement, *api.TaskInfo) bool {
	o.Domain = d
	if len(parts) == 0 || len(parts) == 1 && d != nil && parts[0].domain.Domain == d.Domain {
		return p.placeWith(o)
	}
	return (&filling{placer: p, o: o, parts: parts}).place
}
