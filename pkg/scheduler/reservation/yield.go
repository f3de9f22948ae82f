// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/preemption"
)

// exceedsLimit reports whether a job has run for longer than its limit and may be evicted for a gang whose planned start
// depends on its end.
func exceedsLimit(j *api.JobInfo, now int64) bool {
	return j.RunTime.OnOverrun != api.OverrunIgnore && j.RunTime.Maximum > 0 && j.Started > 0 && j.Started+int64(j.RunTime.Maximum) <= now
}

// due returns the jobs whose start was planned in the last session, and has come, in the order in which they were planned.
func (p *planned) due(ssn *framework.Session) (jobs []*api.JobInfo) {
	for _, one := range p.jobs {
		if j := ssn.Cluster().Jobs()[one.id]; one.at <= ssn.Now.UnixNano() && j != nil && ssn.Backlog().IsOpen(j) {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// evictFor evicts jobs that have exceeded their limits for gangs whose start has come: the starts were planned for these
// limits. A gang that fits without evictions is left to allocate. Whatever is evicted has run for as long as it declared, so
// its priority and queue do not count; and each is evicted at most once for each time that it starts.
func (p *planned) evictFor(due []*api.JobInfo) {
	p.evicting = true
	defer func() { p.evicting = false }()
	for _, j := range due {
		p.ssn.ActivateReservation(j)
		claim := claimOf(p.ssn, j)
		if claim == nil {
			continue
		}
		stmt, now := p.ssn.Statement(), p.ssn.Now.UnixNano()
		if preemption.New(p.ssn).Plan(stmt, claim, preemption.Rules{
			Cause:        api.Overran,
			VictimQueues: p.ssn.Cluster().SortedQueues,
			IsCandidate:  func(other *api.JobInfo) bool { return other != j && exceedsLimit(other, now) },
			Admits: func(_ *api.Claim, u api.Unit) bool {
				return !slices.ContainsFunc(u.Tasks, p.ssn.NonEvictable)
			},
		}) {
			stmt.Commit()
		}
	}
	if len(due) > 0 {
		p.ssn.ActivateReservation(nil)
	}
}

// evictionAllowed reports whether preempt and reclaim may evict for a job: not if its start is so near that evictions would not
// help, because what it waits for ends by itself. A job whose start has come, and that waits still, waits for something else,
// such as a cap.
func (p *planned) evictionAllowed(j *api.JobInfo) bool {
	i, now := p.indexOf(j), p.ssn.Now.UnixNano()
	return i < 0 || p.evicting || p.order[i].At <= now || p.order[i].At > now+int64(p.PreemptionDelay)
}
