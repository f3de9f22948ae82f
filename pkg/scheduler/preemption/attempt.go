// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"math"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// result is the result of an attempt.
type result int8

const (
	infeasible result = iota
	found
	notNeeded // the claim fits without evictions, and is left to allocate
)

// attempt is the search for one plan.
type attempt struct {
	*Planner
	stmt   *framework.Statement
	claim  *api.Claim
	rules  Rules
	cache  *planCache
	domain *place.Domain // nil: all nodes

	maxPriority int32 // of the jobs of victims
	surplusOnly bool  // do not break gangs

	evicted      []api.Unit // in the order of their eviction
	rejected     map[unitKey]bool
	rejectedGang map[*api.JobInfo]bool
	candidates   map[candidateKey]*candidates
	set          victimSet
	capsRelieved bool // units were evicted so that the caps of the queue allow more
}

// reset begins a search without evictions.
func (a *attempt) reset(maxPriority int32, surplusOnly bool) {
	a.maxPriority, a.surplusOnly, a.capsRelieved = maxPriority, surplusOnly, false
	a.evicted, a.rejected, a.rejectedGang = nil, map[unitKey]bool{}, map[*api.JobInfo]bool{}
	a.candidates, a.cache.candidates = a.cache.candidates, nil
	if a.candidates == nil || maxPriority < math.MaxInt32 || a.domain != nil {
		a.candidates = map[candidateKey]*candidates{}
	}
}

// keepCandidates keeps the candidates for the next equivalent claim, unless they depend on this claim.
func (a *attempt) keepCandidates() {
	if a.maxPriority == math.MaxInt32 && a.domain == nil && a.claim.Job.Holding() == 0 {
		a.cache.candidates = a.candidates
	}
}

// plan searches for the best plan. The cheapest candidate for each task gives the lowest highest victim priority. If the
// plan breaks gangs, plan searches again among surplus pods of at most that priority.
func (a *attempt) plan() result {
	if a.reset(math.MaxInt32, a.rules.SurplusOnly); !a.placeAll() {
		a.stmt.Discard()
		if len(a.rejected)+len(a.rejectedGang) == 0 { // the candidates exclude no unit because of this attempt
			a.keepCandidates()
		}
		return infeasible
	}
	if highest, gangs := highestVictimPriority(a.claim, a.evicted); gangs && a.hasSurplus(highest) {
		a.stmt.Discard()
		if a.reset(highest, true); !a.placeAll() {
			a.stmt.Discard()
			a.reset(math.MaxInt32, a.rules.SurplusOnly)
			a.placeAll()
		}
	}
	a.reprieve()
	switch {
	case len(a.evicted) == 0:
		a.stmt.Discard()
		return notNeeded
	case !a.leavesSubGroupsComplete(), a.rules.Validate != nil && !a.rules.Validate(a.claim):
		a.stmt.Discard()
		return infeasible
	}
	a.keepCandidates()
	return found
}

// leavesSubGroupsComplete reports whether the tasks of the claim can start after the plan if that evicts members of the same
// job. They cannot if a part of the gang that has them lacks members then, for example because the whole part is evicted
// for one of its surplus tasks.
func (a *attempt) leavesSubGroupsComplete() bool {
	if a.claim.Job.SubGroups == nil || !slices.ContainsFunc(a.evicted, func(u api.Unit) bool { return u.Job == a.claim.Job }) {
		return true
	}
	for _, t := range a.claim.Tasks {
		for s := t.SubGroup(); s != nil; s = s.Parent {
			if !s.Complete((*api.MemberCounts).PipelinedCount) {
				return false
			}
		}
	}
	return true
}

// hasSurplus reports whether a victim queue has surplus pods of jobs of at most this priority.
func (a *attempt) hasSurplus(maxPriority int32) bool {
	if !a.surplusKnown {
		a.surplusKnown = true
		for _, j := range a.ssn.Cluster().Jobs() {
			if j.Surplus() > 0 && isVictimJob(j) {
				a.withSurplus = append(a.withSurplus, j)
			}
		}
	}
	victimQueues := a.rules.VictimQueues()
	return slices.ContainsFunc(a.withSurplus, func(j *api.JobInfo) bool {
		return j.Priority <= maxPriority && j.Surplus() > 0 && slices.Contains(victimQueues, j.Queue) && a.rules.IsCandidate(j)
	})
}

// placeAll places the tasks of the claim, with evictions where resources are insufficient.
func (a *attempt) placeAll() bool {
	if a.claim.Job.SubGroups.HasConstraint() {
		return placeSubGroup(a, a.claim.Job.SubGroups, a.claim.Tasks)
	}
	return a.placeTasks(a.claim.Tasks)
}

func (a *attempt) placeTasks(tasks []*api.TaskInfo) bool {
	for _, t := range tasks {
		if !a.placer.Place(a.stmt, t, place.Options{Domain: a.domain}) && !a.preempt(t) {
			return false
		}
	}
	return true
}

// preempt evicts the cheapest candidate for t and places t on its node. It tries one victim queue after the other, and
// then all of them together.
func (a *attempt) preempt(t *api.TaskInfo) bool {
	if !a.ssn.Allocatable(t.Job, t.ShareRequest, api.Future) {
		if !a.preemptForCaps(t) {
			return false
		}
		if a.placer.Place(a.stmt, t, place.Options{Domain: a.domain}) {
			return true
		}
	}
	victimQueues := a.rules.VictimQueues()
	if len(victimQueues) > 1 {
		victimQueues = append(slices.Clip(victimQueues), nil)
	}
	for _, victimQueue := range victimQueues {
		if a.preemptFrom(victimQueue, t) {
			return true
		}
	}
	return false
}

// preemptForCaps evicts units of the preemptor's own queue, cheapest first, until the caps of the queue allow t.
func (a *attempt) preemptForCaps(t *api.TaskInfo) bool {
	queue := t.Job.Queue
	if !slices.Contains(a.rules.VictimQueues(), queue) {
		return false
	}
	for _, v := range inQueue(queue) {
		if a.ssn.Allocatable(t.Job, t.ShareRequest, api.Future) {
			return true
		}
		if v.Evictable() && shareDimension(v.ShareRequest, t.ShareRequest) && a.isCandidate(v.Job, queue) {
			if unit, ok := a.unitOf(v); ok {
				a.capsRelieved = a.evict(unit) || a.capsRelieved
			}
		}
	}
	return a.ssn.Allocatable(t.Job, t.ShareRequest, api.Future)
}

// shareDimension reports whether two requests have a dimension in common other than the number of pods.
func shareDimension(x, y api.Resource) bool {
	for d, n := range x {
		if d != api.Pods && n > 0 && y.At(d) > 0 {
			return true
		}
	}
	return false
}

// preemptFrom evicts the cheapest candidate of a victim queue, or of all if it is nil. If plugins reject one of its
// units or t does not fit afterwards, preemptFrom rolls back and tries the next candidate.
func (a *attempt) preemptFrom(victimQueue *api.QueueInfo, t *api.TaskInfo) bool {
	candidates := a.candidatesFor(t, victimQueue)
	for {
		node, units := candidates.cheapest(a, t)
		if node == nil {
			return false
		}
		mark, evicted := a.stmt.Mark(), len(a.evicted)
		if a.evict(units...) {
			if a.placeOn(t, node, victimQueue) {
				return true
			}
			candidates.exclude(node) // neither resources nor other pods are the obstacle
		}
		a.stmt.RollbackTo(mark)
		a.evicted = a.evicted[:evicted]
		candidates.update(a, t, node)
	}
}

// placeOn places t on a node whose resources suffice. If other pods still conflict with t, placeOn evicts them one by
// one until t fits; reprieve later revokes the evictions that were not needed.
func (a *attempt) placeOn(t *api.TaskInfo, node *api.NodeInfo, victimQueue *api.QueueInfo) bool {
	if a.fits(t, node) {
		a.stmt.Pipeline(t, node)
		return true
	}
	if !a.affectedByPods(t) {
		return false
	}
	for _, v := range slices.Clone(a.evictable.onNode(node)) {
		if v.Status == api.Releasing || !a.isCandidate(v.Job, victimQueue) {
			continue
		}
		if unit, ok := a.unitOf(v); ok && a.evict(unit) && a.fits(t, node) {
			a.stmt.Pipeline(t, node)
			return true
		}
	}
	return false
}

func (a *attempt) fits(t *api.TaskInfo, node *api.NodeInfo) bool {
	return node.Fits(t, api.Future) && a.ssn.Predicate(t, node, api.Future) == nil
}

// unitOf returns the unit in which a pod may be evicted now: as surplus, or with its gang.
func (a *attempt) unitOf(v *api.TaskInfo) (api.Unit, bool) {
	if u, ok := api.SurplusUnit(v); ok && !a.rejected[keyOf(u)] {
		return u, true
	}
	if a.surplusOnly || a.rejectedGang[v.Job] {
		return api.Unit{}, false
	}
	return a.evictable.remainingGang(v.Job).unit, true
}

// evict evicts units one by one. It stops at the first that a plugin or a disruption budget rejects, and records the
// rejection.
func (a *attempt) evict(units ...api.Unit) bool {
	for _, u := range units {
		if !a.admits(u) {
			if u.Whole {
				a.rejectedGang[u.Job] = true
			} else {
				a.rejected[keyOf(u)] = true
			}
			return false
		}
		for _, t := range u.Tasks {
			a.stmt.Evict(t, a.claim.Job, a.rules.Cause)
		}
		a.evicted = append(a.evicted, u)
	}
	return true
}

func (a *attempt) admits(u api.Unit) bool {
	if !isComplete(u) || !a.rules.Admits(a.claim, u) {
		return false
	}
	if a.ssn.Cluster().BudgetsAllow(u) {
		return true
	}
	for _, t := range u.Tasks {
		a.cache.protected[t] = struct{}{}
	}
	return false
}
