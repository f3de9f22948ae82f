// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// outcomes are those of single jobs in one session; by JobInfo.Index. They are kept, because most sessions find out the
// same about the same jobs: those of older sessions have another number.
type outcomes []outcomeOf

type outcomeOf struct {
	job     *api.JobInfo
	session uint64
	outcome *Outcome
}

// explanations are what one session finds out about the jobs that wait.
type explanations struct {
	memory    *memory
	number    uint64         // of the session
	explained []*api.JobInfo // those with an outcome of their own
	yielding  map[*api.JobInfo]bool
}

// SetYielding records that a job must not borrow because another job of its queue waits for what it may have.
func (x *explanations) SetYielding(j *api.JobInfo) {
	if x.yielding == nil {
		x.yielding = map[*api.JobInfo]bool{}
	}
	x.yielding[j] = true
}

// Yielding reports whether SetYielding was called for the job in this session.
func (x *explanations) Yielding(j *api.JobInfo) bool { return x.yielding[j] }

// Explain records why a job waits; the latest explanation counts.
func (x *explanations) Explain(j *api.JobInfo, verdict *api.Verdict) {
	x.outcome(j).Job = verdict
}

// ExplainTasks records why members of a signature wait although the gang has started, or why they wait for another
// reason than the gang.
func (x *explanations) ExplainTasks(j *api.JobInfo, signature *api.Signature, verdict *api.Verdict) {
	o := x.outcome(j)
	if o.Tasks == nil {
		o.Tasks = map[*api.Signature]*api.Verdict{}
	}
	o.Tasks[signature] = verdict
}

// ExplainDegraded records that a gang has run for more than the grace with fewer members than it needs.
func (x *explanations) ExplainDegraded(j *api.JobInfo, grace time.Duration) {
	x.outcome(j).DegradedFor = grace
}

// ExplainBlocked records how many pods could not be evicted for a job because of disruption
// budgets.
func (x *explanations) ExplainBlocked(j *api.JobInfo, pods int) {
	if pods > 0 {
		o := x.outcome(j)
		o.BlockedByBudgets = max(o.BlockedByBudgets, pods)
	}
}

// outcome returns what is to be changed about a job.
func (x *explanations) outcome(j *api.JobInfo) *Outcome {
	if o := x.ownOutcome(j); o != nil {
		return o
	}
	o := &Outcome{}
	if shared := x.Outcome(j); shared != nil {
		o.Job = shared.Job
	}
	x.setOutcome(j, o)
	return o
}

func (x *explanations) setOutcome(j *api.JobInfo, o *Outcome) {
	list := x.memory.outcomes
	for j.Index >= len(list) {
		list = append(list, make([]outcomeOf, max(64, len(list), j.Index-len(list)))...)
	}
	if list[j.Index].job != j || list[j.Index].session != x.number {
		x.explained = append(x.explained, j)
	}
	list[j.Index] = outcomeOf{j, x.number, o}
	x.memory.outcomes = list
}

// ownOutcome returns what was found out about a single job.
func (x *explanations) ownOutcome(j *api.JobInfo) *Outcome {
	if list := x.memory.outcomes; j.Index < len(list) && list[j.Index].job == j && list[j.Index].session == x.number {
		return list[j.Index].outcome
	}
	return nil
}

// Outcome returns what was found out about a job, nil if it does not wait. The caller must not change it. It is valid
// until the next session opens.
func (x *explanations) Outcome(j *api.JobInfo) *Outcome {
	if o := x.ownOutcome(j); o != nil {
		return o
	}
	if b := &x.memory.backlog; b.session == x.number {
		if jc := b.JobClass(j); jc != nil {
			return jc.shown
		}
	}
	return nil
}

// explainAs gives a job the outcome of its job class, and keeps what else was found out about it.
func (x *explanations) explainAs(j *api.JobInfo, shared *Outcome) {
	o := x.ownOutcome(j)
	if o == nil {
		return
	}
	if o.Tasks == nil && o.BlockedByBudgets == 0 && o.DegradedFor == 0 {
		x.setOutcome(j, nil)
		return
	}
	o.Job = shared.Job
}

// EachExplained visits the jobs that have an outcome of their own. Others share that of their job class.
func (x *explanations) EachExplained(visit func(*api.JobInfo, *Outcome)) {
	for _, j := range x.explained {
		if o := x.ownOutcome(j); o != nil {
			visit(j, o)
		}
	}
}

// CountOutcomes visits the outcomes of the waiting jobs, each with a queue and with the number of jobs that have it. The
// queue is nil if a job has none.
func CountOutcomes(ssn *Session, visit func(o *Outcome, q *api.QueueInfo, jobs int)) {
	b := ssn.Backlog()
	unlike := map[*JobClass]int{}
	ssn.EachExplained(func(j *api.JobInfo, o *Outcome) {
		if j.Waits() {
			visit(o, j.Queue, 1)
		}
		if jc := b.JobClass(j); jc != nil {
			unlike[jc]++
		}
	})
	for _, j := range b.Declassified() {
		unlike[b.pending.record(j).class]++
	}
	for _, jc := range b.used {
		if n := jc.jobs - unlike[jc]; n > 0 && jc.shown != nil {
			visit(jc.shown, jc.queue, n)
		}
	}
}
