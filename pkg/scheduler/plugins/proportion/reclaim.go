// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package proportion

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Rules prevent cycles of evictions between queues. A test replaces them to show that relaxed
// rules allow cycles (docs/design/preemption-convergence.md).
type Rules struct {
	// Fairer reports whether the reclaimer's share may rise from before to after while the victim queue keeps left.
	Fairer func(before, after, left api.Share) bool
	// EntitlementCounts reports whether a claim is entitled only if its queue stays within what it deserves in
	// the dimension.
	EntitlementCounts func(claim *api.Claim, dimension int) bool
	// Held is what counts in a queue's share, and Before what did when the claim was made.
	Held   func(*api.QueueInfo) api.Resource
	Before func(*api.Claim) api.Resource
}

// DefaultRules are those of Spec.
func DefaultRules() Rules {
	return Rules{
		Fairer:            api.Fairer,
		EntitlementCounts: func(*api.Claim, int) bool { return true },
		Held:              func(q *api.QueueInfo) api.Resource { return q.Allocated },
		Before:            func(claim *api.Claim) api.Resource { return claim.QueueHeld },
	}
}

// reclaimable permits a queue below its deserved share to reclaim what others borrow.
//
// The victim queue must hold some of the dimensions that are short for the claim, and more than it
// deserves of all dimensions that the unit holds, and keeps its guarantee; a victim queue that is not
// reclaimable loses only what the reclaimer's guarantee needs. Then either the rule of api.Fairer on
// queue shares permits it, or entitlement does: with the whole claim the reclaimer stays within what it
// deserves in every dimension, so others have only borrowed what it requests.
func (s *shares) reclaimable(claim *api.Claim, unit api.Unit) api.Vote {
	if cause := s.rejection(claim, unit); cause != "" {
		logRejection(s, claim, unit, cause)
		return api.Reject
	}
	return api.Permit
}

// rejection returns why the unit must not be evicted for the claim; empty if it may be.
func (s *shares) rejection(claim *api.Claim, unit api.Unit) rejection {
	victimQueue, preemptor := unit.Job.Queue, claim.Job.Queue
	on := s.statusOf(claim)
	switch {
	case victimQueue == nil || victimQueue == preemptor:
		return noOtherQueue
	case !victimQueue.Reclaimable && !on.guaranteed:
		return notReclaimable
	case !s.borrows(victimQueue, unit, on.short):
		return notBorrowed
	}
	left := s.Held(victimQueue).Minus(unit.Request)
	for d, n := range unit.Request {
		if n > 0 && api.InParts(d, left.At(d)) < s.floor(victimQueue, d) {
			return guaranteed
		}
	}
	if on.entitled || s.Fairer(on.before, on.after, s.shareOf(left, s.deserved[victimQueue])) {
		return ""
	}
	return notEntitled
}

// claimStatus is the state of a claim before any eviction for it. It does not change while a plan is
// made: resources that evictions will release make no dimension less short.
type claimStatus struct {
	claim *api.Claim
	// available is what the feasible nodes of the claim have available; short are the dimensions of which the claim
	// requests more, or all that it requests if none is short.
	available api.Resource
	short     []int
	// guaranteed reports whether the claim's queue stays within its guarantee with all of the claim, in the
	// short dimensions.
	guaranteed bool
	// entitled reports whether the claim's queue stays within what it deserves with all of the claim.
	entitled bool
	// before and after are the shares of the claim's queue without and with the claim.
	before, after api.Share
}

func (s *shares) statusOf(claim *api.Claim) *claimStatus {
	if s.last.claim == claim {
		return &s.last
	}
	deserved, before := s.deserved[claim.Job.Queue], s.Before(claim)
	held := before.Plus(claim.Request)
	on := claimStatus{
		claim: claim, available: s.ssn.Nodes().Available(claim), entitled: s.isEntitled(claim, held, deserved),
		before: s.shareOf(before, deserved), after: s.shareOf(held, deserved),
	}
	var asked []int
	for d, n := range claim.Request {
		if n <= 0 || !s.dims.Shared(d) {
			continue
		}
		asked = append(asked, d)
		if n > on.available.At(d) {
			on.short = append(on.short, d)
		}
	}
	if len(on.short) == 0 {
		on.short = asked
	}
	on.guaranteed = !slices.ContainsFunc(on.short, func(d int) bool { return api.InParts(d, held.At(d)) > s.floor(claim.Job.Queue, d) })
	s.last = on
	return &s.last
}

// floor is a queue's guarantee in parts of a unit, scaled down as in what the queue deserves if all
// guarantees together exceed the total.
func (s *shares) floor(q *api.QueueInfo, d int) int64 {
	return min(api.InParts(d, q.Guarantee.At(d)), s.deserved[q].At(d))
}

// isEntitled reports whether what a queue would hold with the claim is within what it deserves.
func (s *shares) isEntitled(claim *api.Claim, held, deserved api.Resource) bool {
	for d, n := range held {
		if n > 0 && s.dims.Shared(d) && s.EntitlementCounts(claim, d) && api.InParts(d, n) > deserved.At(d) {
			return false
		}
	}
	return true
}

// borrows reports whether the unit holds any of the short dimensions, and its queue holds more than
// it deserves in each of those.
func (s *shares) borrows(victimQueue *api.QueueInfo, unit api.Unit, short []int) bool {
	helps := false
	for _, d := range short {
		if unit.Request.At(d) <= 0 {
			continue
		}
		if api.InParts(d, s.Held(victimQueue).At(d)) <= s.deserved[victimQueue].At(d) {
			return false
		}
		helps = true
	}
	return helps
}

// validatePlan keeps preempt, whose victims are of the claim's own queue, from lifting that queue above
// what it deserves in a dimension in which it was not above before.
func (s *shares) validatePlan(claim *api.Claim) bool {
	q := claim.Job.Queue
	for d, n := range q.Allocated {
		deserved := s.deserved[q].At(d)
		if s.dims.Shared(d) && n > claim.QueueHeld.At(d) && api.InParts(d, n) > deserved && api.InParts(d, claim.QueueHeld.At(d)) <= deserved {
			return false
		}
	}
	return true
}

// preFilterPlan compares what the claim is short of with all that others could be made to give: what they
// hold beyond what they deserve, and as the last unit is evicted as a whole, the largest of their jobs.
// A claim that is not entitled gets nothing from queues whose share is below what that of its own queue would be.
func (s *shares) preFilterPlan(claim *api.Claim) bool {
	preemptor := claim.Job.Queue
	on := s.statusOf(claim)
	for _, d := range on.short {
		missing := claim.Request.At(d) - on.available.At(d)
		for _, q := range s.ssn.Cluster().Queues() {
			if q == preemptor || !q.Reclaimable && !on.guaranteed || !on.entitled && s.share(q).Compare(on.after) < 0 {
				continue
			}
			if over := q.Allocated.At(d) - s.deserved[q].At(d)/api.Parts(d); over > 0 {
				missing -= min(over+s.largestJob(q).At(d), q.Allocated.At(d)-s.floor(q, d)/api.Parts(d))
			}
		}
		if missing > 0 {
			return false
		}
	}
	return true
}

// largestJob returns for each dimension the most that one job of the queue held at the first call in the
// session. Jobs that hold more since are no victims.
func (s *shares) largestJob(q *api.QueueInfo) api.Resource {
	most, known := s.largest[q]
	if !known {
		most = make(api.Resource, s.dims.Len())
		for _, j := range q.Jobs {
			for d, n := range j.Allocated {
				most[d] = max(most[d], n)
			}
		}
		s.largest[q] = most
	}
	return most
}
