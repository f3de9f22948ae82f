// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// Rules state which victims the plans of an action may have. The functions are called while Plan runs, except that
// KnownInfeasible calls none of them.
type Rules struct {
	// Cause is recorded with each eviction. Results are cached by cause, so actions must not share one.
	Cause api.EvictionCause
	// VictimQueues returns the queues whose pods may be evicted, in the order in which they are tried. It is called
	// before each task, so the order may depend on current shares.
	VictimQueues func() []*api.QueueInfo
	// IsCandidate reports whether pods of a job of a victim queue may be evicted. It is called often and must be cheap.
	IsCandidate func(*api.JobInfo) bool
	// Admits reports whether the plugins admit the eviction of a unit, given what the plan has evicted so far:
	// Session.Preemptable or Session.Reclaimable.
	Admits func(*api.Claim, api.Unit) bool
	// PreFilter is a quick necessary condition. It is called once before the search; nil means that there is none.
	PreFilter func(*api.Claim) bool
	// Validate reports whether a complete plan, which the statement contains, may be committed; nil admits all plans.
	Validate func(*api.Claim) bool
	// SurplusOnly excludes plans that break gangs.
	SurplusOnly bool
}

// Planner searches for plans in one session. Only the scheduling goroutine may use it.
type Planner struct {
	ssn       *framework.Session
	placer    *place.Placer
	evictable *evictable
	caches    map[string]*planCache // by kind of claim

	// withSurplus are the jobs that had surplus when it was first needed. No job gains surplus during an action.
	withSurplus  []*api.JobInfo
	surplusKnown bool
}

// New returns a planner for an execution of an action.
func New(ssn *framework.Session) *Planner {
	return &Planner{ssn: ssn, placer: place.New(ssn), evictable: newEvictable(), caches: map[string]*planCache{}}
}

// KnownInfeasible reports whether Plan has found no plan for an equivalent claim since the model changed. It is cheap.
func (p *Planner) KnownInfeasible(claim *api.Claim, rules Rules) bool {
	infeasible := p.cacheFor(claim, rules).infeasible(claim)
	if infeasible {
		p.logNoPlan(claim, rules, knownInfeasible)
	}
	return infeasible
}

// Plan adds the placements of the claim and the evictions that they need to the statement, and reports whether it found
// a plan. The caller commits the statement. Without a plan the statement is empty. That is also the result if the claim
// fits without evictions, if its job must back off before it evicts again, or if an equivalent claim is known to be
// infeasible.
func (p *Planner) Plan(stmt *framework.Statement, claim *api.Claim, rules Rules) bool {
	why := p.search(stmt, claim, rules)
	if why != "" {
		p.logNoPlan(claim, rules, why)
	}
	return why == ""
}

// search does what Plan describes, and returns why there is no plan; empty if there is one.
func (p *Planner) search(stmt *framework.Statement, claim *api.Claim, rules Rules) noPlan {
	if !p.ssn.EvictionAllowed(claim.Job) {
		return notAllowed
	}
	if !completesGang(claim) {
		return tooFewPods
	}
	c := p.cacheFor(claim, rules)
	if c.infeasible(claim) {
		return knownInfeasible
	}
	if !p.hasCandidates(claim, rules) {
		c.setInfeasible(claim)
		return noCandidates
	}
	var why noPlan
	if level := place.RequiredLevel(p.ssn, claim); level != nil {
		d := domainPlans{planner: p, level: level, claim: claim, rules: rules}
		why = d.search(stmt, c)
	} else {
		why = p.planAnywhere(stmt, claim, rules, c)
	}
	if why == notFound {
		c.setInfeasible(claim)
	}
	return why
}

// planAnywhere searches for a plan among all nodes.
func (p *Planner) planAnywhere(stmt *framework.Statement, claim *api.Claim, rules Rules, c *planCache) noPlan {
	a := &attempt{Planner: p, stmt: stmt, claim: claim, rules: rules, cache: c}
	switch a.plan() {
	case found:
		return ""
	case notNeeded:
		return notNeededForFit
	}
	return notFound
}

// completesGang reports whether the job has enough members with the claim. A gang that has lost members in this session
// can have too few pending ones.
func completesGang(claim *api.Claim) bool {
	return claim.Job.ReadyCount()+claim.Job.Count(api.Pipelined)+int32(len(claim.Tasks)) >= claim.Job.MinMember
}

// hasCandidates reports whether the plugins admit any unit at all. This costs much less than a search of all nodes, and
// in queues full of equal jobs the plugins admit none.
func (p *Planner) hasCandidates(claim *api.Claim, rules Rules) bool {
	if rules.PreFilter != nil && !rules.PreFilter(claim) {
		return false
	}
	for _, q := range rules.VictimQueues() {
		for _, j := range q.Jobs {
			if isVictimJob(j) && rules.IsCandidate(j) && p.admitsAnyUnit(claim, rules, j) {
				return true
			}
		}
	}
	return false
}

// admitsAnyUnit reports whether the plugins admit any unit of a job: the remaining gang, or surplus.
func (p *Planner) admitsAnyUnit(claim *api.Claim, rules Rules, j *api.JobInfo) bool {
	gang := p.evictable.remainingGang(j).unit
	if !rules.SurplusOnly && len(gang.Tasks) > 0 && isComplete(gang) && rules.Admits(claim, gang) {
		return true
	}
	return j.Surplus() > 0 && slices.ContainsFunc(gang.Tasks, func(t *api.TaskInfo) bool {
		u, ok := api.SurplusUnit(t)
		return ok && rules.Admits(claim, u)
	})
}
