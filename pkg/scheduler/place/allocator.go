// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// Allocator places jobs claim by claim in one session, and explains why what is left of them waits.
type Allocator struct {
	ssn    *framework.Session
	placer *Placer
	jobs   map[*api.JobInfo][]*api.TaskInfo // what is left to be placed of each, in task order
	trial  *Trial                           // nil: claims are placed
}

// NewAllocator returns an allocator.
func NewAllocator(ssn *framework.Session) *Allocator {
	return &Allocator{ssn: ssn, placer: New(ssn), jobs: map[*api.JobInfo][]*api.TaskInfo{}}
}

// Claim returns the next claim of the job; nil if nothing is left or if what is left has to wait.
func (a *Allocator) Claim(job *api.JobInfo) *api.Claim {
	return worklist.Claim(a.ssn, job, a.waiting(job))
}

// ClaimOf returns the next claim of the job among some of its tasks; nil if they are not enough for one.
func (a *Allocator) ClaimOf(job *api.JobInfo, tasks []*api.TaskInfo) *api.Claim {
	tasks = slices.DeleteFunc(slices.Clone(tasks), func(t *api.TaskInfo) bool { return !t.Waiting() })
	slices.SortFunc(tasks, a.ssn.CompareTasks)
	return worklist.Claim(a.ssn, job, tasks)
}

// waiting returns what is left to be placed of a job. The first task of it still waits.
func (a *Allocator) waiting(job *api.JobInfo) []*api.TaskInfo {
	tasks, known := a.jobs[job]
	if !known {
		tasks = a.ssn.WaitingTasks(job)
	}
	for len(tasks) > 0 && !tasks[0].Waiting() {
		tasks = tasks[1:] // placed for an earlier claim
	}
	a.jobs[job] = tasks
	return tasks
}

// Allocate places and commits the whole claim, or explains why it waits and changes nothing else. It reports whether
// the job may have another claim.
func (a *Allocator) Allocate(claim *api.Claim) bool {
	failure := a.try(claim, Options{})
	switch {
	case failure == nil:
		return a.trial == nil && len(a.waiting(claim.Job)) > 0
	case a.ssn.JobPipelined(claim.Job):
		a.explainSurplus(claim, failure.Task)
		return a.skipClass(claim, failure.Task)
	}
	a.explainGang(claim, failure)
	return false
}

// Try places and commits the whole claim where the options allow it, or changes nothing. It reports whether it has
// placed the claim.
func (a *Allocator) Try(claim *api.Claim, o Options) bool { return a.try(claim, o) == nil }

func (a *Allocator) try(claim *api.Claim, o Options) *Failure {
	stmt := a.ssn.Statement()
	if a.ssn.JobPipelined(claim.Job) {
		failure := a.placer.Surplus(stmt, claim, o)
		if failure == nil {
			a.commit(stmt)
		}
		return failure
	}
	if failure := a.placer.Gang(stmt, claim, a.waiting(claim.Job), o); failure != nil {
		return failure
	}
	if v := a.ssn.Startable(claim); v != nil {
		stmt.Discard()
		return &Failure{Task: claim.Tasks[0], Verdict: v}
	}
	a.commit(stmt)
	a.explainHeld(claim)
	return nil
}

func (a *Allocator) commit(stmt *framework.Statement) {
	if a.trial != nil {
		a.trial.placed = true
		stmt.Discard()
		return
	}
	stmt.Commit()
}

// skipClass leaves out the tasks that are of one class with a surplus task of the claim that fits nowhere. It reports
// whether the job has a claim without them.
func (a *Allocator) skipClass(claim *api.Claim, failed *api.TaskInfo) bool {
	class := a.ssn.Cluster().ClassOf(failed)
	a.jobs[claim.Job] = slices.DeleteFunc(slices.Clone(a.waiting(claim.Job)), func(t *api.TaskInfo) bool {
		return a.ssn.Cluster().ClassOf(t) == class
	})
	return a.Claim(claim.Job) != nil
}
