package proportion

import (
	"maps"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// debt keeps a job that was evicted by entitlement from taking the same room again by borrowing,
// which the same queue would then be entitled to again, and so on for ever. Until it is paid the job
// starts only where its queue stays within what it deserves. It is paid when the queue that it went
// for deserves less than then of anything that was at issue.
type debt struct {
	taker    api.QueueID
	deserved api.Resource // by the taker, in parts of a unit
}

func (s *shares) indebted(j *api.JobInfo) bool {
	d, owes := s.debts[j.ID]
	return owes && !s.paid(d) || s.gave(j)
}

// gift is what a job was asked to give because the claim is entitled to it; not all of it may go.
type gift struct {
	claim *api.Claim
	tasks []*api.TaskInfo
}

// ask remembers what a job was asked to give and to whom, unless it has given already.
func (s *shares) ask(claim *api.Claim, unit api.Unit) {
	if s.gave(unit.Job) {
		return
	}
	g := s.gifts[unit.Job]
	if g.claim != claim {
		g = gift{claim: claim}
	}
	g.tasks = append(g.tasks, unit.Tasks...)
	s.gifts[unit.Job] = g
}

// gave tells whether a job was asked to give in this session, and did.
func (s *shares) gave(j *api.JobInfo) bool {
	return slices.ContainsFunc(s.gifts[j].tasks, (*api.TaskInfo).Leaving)
}

func (s *shares) paid(d debt) bool {
	taker := s.ssn.Cluster().Queues[d.taker]
	return taker == nil || !d.deserved.Fits(s.deserved[taker])
}

// settleDebts forgets debts that are paid, and makes debtors of the jobs that gave in this session.
func (s *shares) settleDebts() {
	maps.DeleteFunc(s.debts, func(_ api.JobID, d debt) bool { return s.paid(d) })
	for j, g := range s.gifts {
		if s.gave(j) {
			s.debts[j.ID] = s.debtOf(g)
		}
	}
}

func (s *shares) debtOf(g gift) debt {
	taker := g.claim.Job.Queue
	deserved := s.deserved[taker].Clone()
	for d := range deserved {
		if g.claim.Request.At(d) == 0 && !slices.ContainsFunc(g.tasks, func(t *api.TaskInfo) bool { return t.Request.At(d) > 0 }) {
			deserved[d] = 0 // nobody's concern
		}
	}
	return debt{taker: taker.ID, deserved: deserved}
}
