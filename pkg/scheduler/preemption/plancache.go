// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// planCache keeps what a planner knows about equivalent claims: of one queue and priority, for jobs that hold the same,
// with tasks of the same equivalence classes that must be in the same topology domain or in one of the same level. Plugins cannot distinguish them, so a result for one claim holds for the
// next. Victim queues only lose while an action makes plans, so a rejection for one claim also holds for the next.
type planCache struct {
	planner *Planner
	kind    string
	// cacheable is false if results also depend on objects outside of the model, which change without notice.
	cacheable bool

	surplus    map[unitKey]bool             // votes on units of surplus, before the plan has evicted anything
	gangs      map[*api.JobInfo]bool        // votes on remaining gangs, before the plan has evicted anything
	candidates map[candidateKey]*candidates // of the last attempt

	protected map[*api.TaskInfo]struct{} // by disruption budgets
}

func (p *Planner) cacheFor(claim *api.Claim, rules Rules) *planCache {
	kind, cacheable := p.kindOf(claim, rules)
	if c := p.caches[kind]; c != nil && cacheable {
		return c
	}
	c := &planCache{planner: p, kind: kind, cacheable: cacheable, surplus: map[unitKey]bool{}, gangs: map[*api.JobInfo]bool{},
		protected: map[*api.TaskInfo]struct{}{}}
	p.caches[kind] = c
	return c
}

// kindOf returns the key that equivalent claims share, and whether results for them may be cached.
func (p *Planner) kindOf(claim *api.Claim, rules Rules) (kind string, cacheable bool) {
	job := claim.Job
	key := fmt.Appendf(nil, "%s/%s/%d/%t/", rules.Cause, job.Queue.ID, job.Priority, rules.SurplusOnly)
	key = claim.JobHeld.AppendKey(key)
	if job.Shadow() {
		key = append(key, "/shadow"...)
	}
	if job.Holding() > 0 && job.Surplus() > 0 { // its own pods are candidates
		key = append(append(key, '/'), job.ID...)
	}
	if level := job.TopologyLevel; level != nil {
		key = fmt.Appendf(key, "/in %s %s", level.Topology, level.Key())
		if pinned := p.ssn.Nodes().Domains(level).OfJob(job); pinned != nil {
			key = fmt.Appendf(key, ":%s", pinned.Path)
		}
	}
	if job.SubGroups.HasConstraint() {
		key = append(append(key, "/subgroups of "...), job.ID...)
	}
	cacheable = true
	var last *api.TaskInfo
	run := 0
	flush := func() {
		if last != nil {
			key = fmt.Appendf(key, "/%dx%s:%d:%t", run, last.Signature.Key(), last.Priority, last.Preempts())
			if limit := p.ssn.Cluster().ClassOf(last).Limit; limit > 0 {
				key = fmt.Appendf(key, ":%d", limit)
			}
		}
	}
	for _, t := range claim.Tasks {
		if last == nil || t.Signature != last.Signature || p.ssn.Cluster().ClassOf(t) != p.ssn.Cluster().ClassOf(last) {
			cacheable = cacheable && !t.Signature.HasExternalResources() && !p.ssn.Cluster().ClassOf(t).AffectedByPods()
		}
		if last == nil || t.Signature != last.Signature || t.Priority != last.Priority || t.Preempts() != last.Preempts() {
			flush()
			last, run = t, 0
		}
		run++
	}
	flush()
	return string(key), cacheable
}

// infeasible reports whether the negative plan cache has an entry for an equivalent claim.
func (c *planCache) infeasible(claim *api.Claim) bool {
	if !c.cacheable {
		return false
	}
	protected, infeasible := c.planner.ssn.Plans().KnownInfeasible(c.kind)
	c.planner.ssn.ExplainBlocked(claim.Job, protected)
	return infeasible
}

// setInfeasible records that there is no plan for the claim.
func (c *planCache) setInfeasible(claim *api.Claim) {
	c.planner.ssn.ExplainBlocked(claim.Job, len(c.protected))
	if c.cacheable {
		c.planner.ssn.Plans().SetInfeasible(c.kind, len(c.protected))
	}
}

// admits returns the vote on a unit. It calls vote only for units whose vote is not cached.
func (c *planCache) admits(u api.Unit, vote func(api.Unit) bool) bool {
	if u.Whole {
		answer, known := c.gangs[u.Job]
		if !known {
			answer = vote(u)
			c.gangs[u.Job] = answer
		}
		return answer
	}
	key := keyOf(u)
	answer, known := c.surplus[key]
	if !known {
		answer = vote(u)
		c.surplus[key] = answer
	}
	return answer
}

// unitKey names a unit of surplus: in one state of the model, a pod and a number of pods determine it.
type unitKey struct {
	first *api.TaskInfo
	size  int
}

func keyOf(u api.Unit) unitKey { return unitKey{u.Tasks[0], len(u.Tasks)} }
