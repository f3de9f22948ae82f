// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package proportion

import (
	"maps"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// cooldown keeps a job that was evicted by entitlement from borrowing the same resources again: the same queue would be
// entitled to them again, and evictions would not end. Until the cooldown expires, the job starts only if its queue stays
// within what it deserves. It expires when the reclaiming queue deserves less of anything that was at issue, or when the job
// has ended that it was evicted for: otherwise jobs of two queues, each of which needs more than its queue deserves, could
// both wait although nothing runs.
type cooldown struct {
	reclaimer api.QueueID
	preemptor api.JobID
	deserved  api.Resource // by the reclaimer, in parts of a unit
}

// Distinguished implements framework.JobClassAware: jobs in cooldown may get less than others of their queue.
func (p *plugin) Distinguished() []api.JobID { return slices.Collect(maps.Keys(p.cooldowns)) }

func (s *shares) inCooldown(j *api.JobInfo) bool {
	if _, evicted := s.recorded[j.ID]; evicted {
		return true
	}
	d, found := s.cooldowns[j.ID]
	return found && !s.expired(d)
}

// recordWaiting records what a job in cooldown waits for. Its queue does not borrow that for other jobs meanwhile: the job
// starts only within what the queue deserves, so pods would have been evicted for it in vain.
func (s *shares) recordWaiting(decisions []api.Decision, held bool) {
	if len(s.cooldowns)+len(s.recorded) == 0 {
		return
	}
	for _, d := range decisions {
		if d.Kind != api.Evict && (held || d.Kind == api.Pipeline) && s.inCooldown(d.Task.Job) {
			q := d.Task.Job.Queue
			s.waiting[q] = s.waiting[q].Plus(d.Task.ShareRequest)
		}
	}
}

// recordReclaim begins the cooldown of jobs that a committed statement evicts for a claim that is entitled to it. Of
// several statements of a session the first one counts.
func (s *shares) recordReclaim(decisions []api.Decision, _ bool) {
	claim, victims := reclaimOf(decisions)
	if claim == nil || !s.isEntitled(claim, s.Before(claim).Plus(claim.Request), s.deserved[claim.Job.Queue]) {
		return
	}
	for j, tasks := range victims {
		if _, evicted := s.recorded[j.ID]; !evicted {
			s.recorded[j.ID] = s.cooldownOf(claim, tasks)
		}
	}
}

// reclaimOf returns the claim that a statement has carried out and what it evicts for it from other queues, by job; nil if
// it reclaims nothing.
func reclaimOf(decisions []api.Decision) (*api.Claim, map[*api.JobInfo][]*api.TaskInfo) {
	if !slices.ContainsFunc(decisions, func(d api.Decision) bool { return d.Kind == api.Evict && d.Cause == api.Reclaimed }) {
		return nil, nil
	}
	var reclaimer *api.JobInfo
	var placed []*api.TaskInfo
	victims := map[*api.JobInfo][]*api.TaskInfo{}
	for _, d := range decisions {
		switch {
		case d.Kind != api.Evict:
			placed = append(placed, d.Task)
		case d.Cause == api.Reclaimed:
			reclaimer = d.For
			victims[d.Task.Job] = append(victims[d.Task.Job], d.Task)
		}
	}
	claim := api.NewClaim(reclaimer, placed)
	claim.JobHeld.Sub(claim.Request) // the model contains the placements already
	claim.QueueHeld.Sub(claim.Request)
	return claim, victims
}

func (s *shares) expired(d cooldown) bool {
	reclaimer, preemptor := s.ssn.Cluster().Queues()[d.reclaimer], s.ssn.Cluster().Jobs()[d.preemptor]
	return reclaimer == nil || hasEnded(preemptor) || !d.deserved.Fits(s.deserved[reclaimer])
}

// hasEnded reports whether no member of a job waits, runs or is being deleted. It accepts nil.
func hasEnded(j *api.JobInfo) bool {
	return j == nil || int(j.Count(api.Succeeded)+j.Count(api.Failed)) == len(j.Tasks)
}

// expireCooldowns forgets the cooldowns that have expired, and adds those that began in this session.
func (s *shares) expireCooldowns() {
	maps.DeleteFunc(s.cooldowns, func(_ api.JobID, d cooldown) bool { return s.expired(d) })
	maps.Copy(s.cooldowns, s.recorded)
}

// cooldownOf returns the cooldown of a job whose tasks are evicted for a claim.
func (s *shares) cooldownOf(claim *api.Claim, victims []*api.TaskInfo) cooldown {
	reclaimer := claim.Job.Queue
	deserved := s.deserved[reclaimer].Clone()
	for d := range deserved {
		if claim.Request.At(d) == 0 && !slices.ContainsFunc(victims, func(t *api.TaskInfo) bool { return t.ShareRequest.At(d) > 0 }) {
			deserved[d] = 0 // not at issue
		}
	}
	return cooldown{reclaimer: reclaimer.ID, preemptor: claim.Job.ID, deserved: deserved}
}
