// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// evictionPoints are the extension points of one session that are about evictions.
type evictionPoints struct {
	preemptable     chain[VictimFn]
	reclaimable     chain[VictimFn]
	nonEvictable    chain[TaskFn]
	validatePlan    chain[PlanFn]
	preFilterPlan   chain[PlanFn]
	evictionAllowed chain[TestFn]
	evictionScore   chain[EvictionScoreFn]
}

// ScoresEvictions reports whether EvictionScore depends on anything.
func (p *evictionPoints) ScoresEvictions() bool { return len(p.evictionScore) > 0 }

// EvictionScore sums the plugins' scores of a node from which pods are evicted for a task.
func (p *evictionPoints) EvictionScore(t *api.TaskInfo, n *api.NodeInfo, freed api.Resource) api.Score {
	var sum api.Score
	for i := range p.evictionScore {
		sum += p.evictionScore[i].fn(t, n, freed)
	}
	return sum
}

// Preemptable reports whether a unit may be evicted for a claim of the same queue.
func (p *evictionPoints) Preemptable(claim *api.Claim, unit api.Unit) bool {
	return admits(p.preemptable, claim, unit)
}

// Reclaimable reports whether a unit may be evicted for a claim of another queue.
func (p *evictionPoints) Reclaimable(claim *api.Claim, unit api.Unit) bool {
	return admits(p.reclaimable, claim, unit)
}

// NonEvictable reports whether nothing may evict the task.
func (p *evictionPoints) NonEvictable(t *api.TaskInfo) bool {
	return some(p.nonEvictable, func(fn TaskFn) bool { return fn(t) })
}

// PreFilterPlan reports whether evictions from other queues could ever make the claim fit.
func (p *evictionPoints) PreFilterPlan(claim *api.Claim) bool {
	return all(p.preFilterPlan, func(fn PlanFn) bool { return fn(claim) })
}

// ValidatePlan reports whether a plan for the claim, which the statement has carried out, may be
// committed.
func (p *evictionPoints) ValidatePlan(claim *api.Claim) bool {
	return all(p.validatePlan, func(fn PlanFn) bool { return fn(claim) })
}

// EvictionAllowed reports whether the job may evict now.
func (p *evictionPoints) EvictionAllowed(j *api.JobInfo) bool {
	return all(p.evictionAllowed, func(fn TestFn) bool { return fn(j) })
}
