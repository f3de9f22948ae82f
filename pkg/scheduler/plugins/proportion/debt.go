package proportion

import (
	"maps"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// cooldown keeps a job that was evicted by entitlement from taking the same room again by borrowing,
// which the same queue would then be entitled to again, and so on for ever. Until it is paid the job
// starts only where its queue stays within what it deserves. It is paid when the queue that it went
// for deserves less than then of anything that was at issue.
type cooldown struct {
	reclaimer api.QueueID
	deserved  api.Resource // by the taker, in parts of a unit
}

func (s *shares) inCooldown(j *api.JobInfo) bool {
	d, owes := s.cooldowns[j.ID]
	return owes && !s.expired(d) || s.gave(j)
}

// recordedReclaim is what a job was asked to give because the claim is entitled to it; not all of it may go.
type recordedReclaim struct {
	claim *api.Claim
	tasks []*api.TaskInfo
}

// ask remembers what a job was asked to give and to whom, unless it has given already.
func (s *shares) ask(claim *api.Claim, unit api.Unit) {
	if s.gave(unit.Job) {
		return
	}
	g := s.recorded[unit.Job]
	if g.claim != claim {
		g = recordedReclaim{claim: claim}
	}
	g.tasks = append(g.tasks, unit.Tasks...)
	s.recorded[unit.Job] = g
}

// gave tells whether a job was asked to give in this session, and did.
func (s *shares) gave(j *api.JobInfo) bool {
	return slices.ContainsFunc(s.recorded[j].tasks, (*api.TaskInfo).Evicting)
}

func (s *shares) expired(d cooldown) bool {
	preemptor := s.ssn.Cluster().Queues()[d.reclaimer]
	return preemptor == nil || !d.deserved.Fits(s.deserved[preemptor])
}

// expireCooldowns forgets debts that are paid, and makes debtors of the jobs that gave in this session.
func (s *shares) expireCooldowns() {
	maps.DeleteFunc(s.cooldowns, func(_ api.JobID, d cooldown) bool { return s.expired(d) })
	for j, g := range s.recorded {
		if s.gave(j) {
			s.cooldowns[j.ID] = s.cooldownOf(g)
		}
	}
}

func (s *shares) cooldownOf(g recordedReclaim) cooldown {
	preemptor := g.claim.Job.Queue
	deserved := s.deserved[preemptor].Clone()
	for d := range deserved {
		if g.claim.Request.At(d) == 0 && !slices.ContainsFunc(g.tasks, func(t *api.TaskInfo) bool { return t.Request.At(d) > 0 }) {
			deserved[d] = 0 // nobody's concern
		}
	}
	return cooldown{reclaimer: preemptor.ID, deserved: deserved}
}
