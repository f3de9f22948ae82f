package proportion

import (
	"fmt"
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

// indebted tells whether a job has a debt, and forgets one that is paid.
func (s *shares) indebted(j *api.JobInfo) bool {
	d, owes := s.debts[j.ID]
	if !owes {
		return false
	}
	taker := s.ssn.Cluster().Queues[d.taker]
	if taker == nil || d.terms != s.terms || !d.request.Fits(s.requests[taker]) {
		delete(s.debts, j.ID)
		return false
	}
	return true
}

// remember makes debtors of the jobs that were asked to give and did.
func (s *shares) remember() {
	for j, claim := range s.entitled {
		for _, t := range j.Tasks {
			if t.Leaving() {
				taker := claim.Job.Queue
				s.debts[j.ID] = debt{taker: taker.ID, request: s.requests[taker].Clone(), terms: s.terms}
				break
			}
		}
	}
	for id := range s.debts {
		if s.ssn.Cluster().Jobs[id] == nil && s.ssn.Cluster().Queues[s.debts[id].taker] == nil {
			delete(s.debts, id)
		}
	}
}

func (s *shares) termsOf(queues []*api.QueueInfo, total api.Resource) string {
	var b strings.Builder
	fmt.Fprint(&b, total)
	for _, q := range queues {
		fmt.Fprint(&b, q.ID, q.Weight, q.Guarantee, q.Capability)
	}
	return b.String()
}
