package proportion

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// debt keeps a job that was evicted by entitlement from taking the same room again by borrowing,
// which the same queue would then be entitled to again, and so on for ever. Until it is paid the job
// starts only where its queue stays within what it deserves. It is paid when the queue that it went
// for asks for less than then, or when what queues deserve is computed from other terms.
type debt struct {
	taker   api.QueueID
	request api.Resource // of the taker
	terms   string
}

func (s *shares) indebted(j *api.JobInfo) bool {
	d, owes := s.debts[j.ID]
	return owes && !s.paid(d) || s.gave(j)
}

// gift is a unit that a job was asked to give because the claim is entitled to it.
type gift struct {
	claim *api.Claim
	tasks []*api.TaskInfo
}

// ask remembers whom a job was asked to give to, unless it has given already.
func (s *shares) ask(claim *api.Claim, unit api.Unit) {
	if !s.gave(unit.Job) {
		s.gifts[unit.Job] = gift{claim, unit.Tasks}
	}
}

// gave tells whether a job was asked to give in this session, and did.
func (s *shares) gave(j *api.JobInfo) bool {
	return slices.ContainsFunc(s.gifts[j].tasks, (*api.TaskInfo).Leaving)
}

func (s *shares) paid(d debt) bool {
	taker := s.ssn.Cluster().Queues[d.taker]
	return taker == nil || !d.request.Fits(s.requests[taker]) || d.terms != s.terms()
}

// settleDebts forgets debts that are paid, and makes debtors of the jobs that gave in this session.
func (s *shares) settleDebts() {
	maps.DeleteFunc(s.debts, func(_ api.JobID, d debt) bool { return s.paid(d) })
	for j, g := range s.gifts {
		if s.gave(j) {
			taker := g.claim.Job.Queue
			s.debts[j.ID] = debt{taker: taker.ID, request: s.requests[taker].Clone(), terms: s.terms()}
		}
	}
}

// terms are weights and all else that deserved depends on, requests aside.
func (s *shares) terms() string {
	if s.knownTerms == "" {
		var b strings.Builder
		fmt.Fprint(&b, s.ssn.Total())
		for _, q := range s.ssn.Cluster().SortedQueues() {
			fmt.Fprint(&b, q.ID, q.Weight, q.Guarantee, q.Capability)
		}
		s.knownTerms = b.String()
	}
	return s.knownTerms
}
