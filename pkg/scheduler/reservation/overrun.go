// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/preemption"
)

// OverrunName is the name of the action that evicts jobs at their limits, in logs and metrics.
const OverrunName = "overrun"

// Overrun registers the policy for jobs whose onOverrun is Evict: they are evicted when they have run for as long as they
// declare. Their own PodGroup says so, so that no configuration has to.
//
// It ends: a job is evicted at most once for each time that it starts, after it has run for its limit.
func Overrun() framework.ComponentSpec {
	return framework.ComponentSpec{Name: OverrunName, New: func(framework.Environment) (framework.Plugin, framework.Action) {
		o := &overrun{limited: map[api.JobID]bool{}}
		return o, o
	}}
}

// overrun follows which jobs are to be evicted at their limits. Most clusters have none.
type overrun struct {
	reader  api.JournalReader
	limited map[api.JobID]bool
}

func (*overrun) Name() string { return OverrunName }

func (*overrun) OnSessionOpen(*framework.Session) {}

func (*overrun) OnSessionClose(*framework.Session) {}

// Execute evicts the jobs whose limits have passed, each in a statement of its own, and asks for a session at the next limit.
func (o *overrun) Execute(ctx context.Context, ssn *framework.Session) error {
	for _, j := range o.follow(ssn) {
		switch limit := time.Unix(0, j.Started+int64(j.RunTime.Maximum)); {
		case ctx.Err() != nil:
			return ctx.Err()
		case ssn.Now.Before(limit):
			ssn.WakeAt(limit)
		default:
			evictAll(ssn, j)
		}
	}
	return ctx.Err()
}

// follow returns the running jobs that are to be evicted at their limits, by id.
func (o *overrun) follow(ssn *framework.Session) []*api.JobInfo {
	table := ssn.Cluster().JobTable()
	changed, known := o.reader.CatchUp(table.Changes(), len(table.ByIndex()))
	if !known {
		clear(o.limited)
		for _, j := range table.ByIndex() {
			o.see(j)
		}
	}
	for _, i := range changed {
		o.see(table.ByIndex()[i])
	}
	var jobs []*api.JobInfo
	for id := range o.limited {
		switch j := ssn.Cluster().Jobs()[id]; {
		case j == nil:
			delete(o.limited, id)
		case j.Started > 0:
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *api.JobInfo) int { return cmp.Compare(a.ID, b.ID) })
	return jobs
}

// see takes a change of a job into account; nil is one that was removed.
func (o *overrun) see(j *api.JobInfo) {
	switch {
	case j == nil:
	case j.RunTime.OnOverrun == api.OverrunEvict && j.RunTime.Maximum > 0:
		o.limited[j.ID] = true
	default:
		delete(o.limited, j.ID)
	}
}

// evictAll evicts all that a job holds, unless some of it must not be evicted.
func evictAll(ssn *framework.Session, j *api.JobInfo) {
	var tasks []*api.TaskInfo
	for _, t := range j.Tasks {
		if t.Evictable() && !ssn.NonEvictable(t) {
			tasks = append(tasks, t)
		}
	}
	if len(tasks) == 0 || len(tasks) < int(j.Holding()) {
		return
	}
	slices.SortFunc(tasks, func(a, b *api.TaskInfo) int { return api.CompareAge(a.Created, b.Created, a.Key, b.Key) })
	stmt := ssn.Statement()
	for _, t := range tasks {
		stmt.Evict(t, j, api.Overran)
	}
	stmt.Commit()
}

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
