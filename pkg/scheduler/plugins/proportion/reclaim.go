package proportion

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// reclaimable lets a queue that is short of what it deserves take back what others borrow.
//
// The giver must be reclaimable, must hold some of what the claim is short of, and more than it
// deserves of all of that which the unit holds, and keeps its guarantee. Then either the rule of
// api.Fairer on queue shares permits it, or entitlement does: with the whole claim the taker stays
// within what it deserves in every dimension, so what it asks for was only borrowed by others.
func (s *shares) reclaimable(claim *api.Claim, unit api.Unit) api.Vote {
	giver, taker := unit.Job.Queue, claim.Job.Queue
	if giver == nil || giver == taker || !giver.Reclaimable || !s.borrows(giver, unit, s.short(claim)) {
		return api.Reject
	}
	left := giver.Allocated.Minus(unit.Request)
	for d, n := range unit.Request {
		if n > 0 && left.At(d) < giver.Guarantee.At(d) {
			return api.Reject
		}
	}
	if s.isEntitled(claim) {
		s.entitled[unit.Job] = claim
		return api.Permit
	}
	deserved := s.deserved[taker]
	before, after := s.shareOf(claim.QueueHeld, deserved), s.shareOf(claim.QueueHeld.Plus(claim.Request), deserved)
	if api.Fairer(before, after, s.shareOf(left, s.deserved[giver])) {
		return api.Permit
	}
	return api.Reject
}

// borrows tells whether the unit holds any of the short dimensions, and its queue holds more than
// it deserves in each of those.
func (s *shares) borrows(giver *api.QueueInfo, unit api.Unit, short []int) bool {
	helps := false
	for _, d := range short {
		if unit.Request.At(d) <= 0 {
			continue
		}
		if giver.Allocated.At(d)*scale(d) <= s.deserved[giver].At(d) {
			return false
		}
		helps = true
	}
	return helps
}

// isEntitled tells whether the claim's queue stays within what it deserves with all of the claim.
func (s *shares) isEntitled(claim *api.Claim) bool {
	deserved := s.deserved[claim.Job.Queue]
	for d, n := range claim.QueueHeld.Plus(claim.Request) {
		if n > 0 && s.dims.Shared(d) && n*scale(d) > deserved.At(d) {
			return false
		}
	}
	return true
}

// short returns the dimensions of which a claim asks for more than the nodes that suit it have
// left, or all that it asks for if none is short. It stands still while a plan is made: the room
// that evictions will set free does not make a dimension less short.
func (s *shares) short(claim *api.Claim) []int {
	if s.shortOf == claim {
		return s.shortDims
	}
	room := s.ssn.Room(claim)
	var asked, short []int
	for d, n := range claim.Request {
		if n <= 0 || !s.dims.Shared(d) {
			continue
		}
		asked = append(asked, d)
		if n > room.At(d) {
			short = append(short, d)
		}
	}
	if len(short) == 0 {
		short = asked
	}
	s.shortOf, s.shortDims = claim, short
	return short
}

// harmless keeps preempt, whose victims are of the claim's own queue, from lifting that queue above
// what it deserves in a dimension in which it was not above before.
func (s *shares) harmless(claim *api.Claim) bool {
	q := claim.Job.Queue
	for d, n := range q.Allocated {
		deserved := s.deserved[q].At(d)
		if s.dims.Shared(d) && n > claim.QueueHeld.At(d) && n*scale(d) > deserved && claim.QueueHeld.At(d)*scale(d) <= deserved {
			return false
		}
	}
	return true
}

// reachable compares what the claim is short of with all that others could be made to give: what they
// hold beyond what they deserve, and as the last unit goes as a whole, the largest of their jobs.
// Who is not entitled gets nothing of queues with a share at or below what its own would be.
func (s *shares) reachable(claim *api.Claim) bool {
	taker := claim.Job.Queue
	after := s.shareOf(claim.QueueHeld.Plus(claim.Request), s.deserved[taker])
	entitled := s.isEntitled(claim)
	room := s.ssn.Room(claim)
	for _, d := range s.short(claim) {
		missing := claim.Request.At(d) - room.At(d)
		for _, q := range s.ssn.Cluster().Queues {
			if q == taker || !q.Reclaimable || !entitled && s.share(q).Compare(after) < 0 {
				continue
			}
			if over := q.Allocated.At(d) - s.deserved[q].At(d)/scale(d); over > 0 {
				missing -= min(over+s.largestJob(q).At(d), q.Allocated.At(d)-min(q.Guarantee.At(d), q.Allocated.At(d)))
			}
		}
		if missing > 0 {
			return false
		}
	}
	return true
}

// largestJob returns for each dimension the most that one job of the queue held when it was first
// asked for in the session. Jobs that have grown since are no victims.
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
