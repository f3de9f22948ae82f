// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package preempt is the action that frees resources within a queue by evictions that the plugins permit: for pending
// gangs, and then for single surplus tasks.
package preempt

import (
	"context"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/preemption"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// Name is the action's name in configurations.
const Name = "preempt"

// New returns the action.
func New() framework.Action { return action{} }

type action struct{}

func (action) Name() string { return Name }

// Execute visits jobs in queue and job order. A plan without evictions is not committed:
// what fits without them is left to allocate.
func (action) Execute(ctx context.Context, ssn *framework.Session) error {
	planner := preemption.New(ssn)
	list := worklist.New(ssn, ssn.Jobs())
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		ssn.ActivateReservation(job)
		if claim := worklist.Claim(ssn, job, ssn.WaitingTasks(job)); claim != nil && preempt(ssn, planner, claim) {
			list.Return(job)
		}
	}
	ssn.ActivateReservation(nil)
	return ctx.Err()
}

func preempt(ssn *framework.Session, planner *preemption.Planner, claim *api.Claim) bool {
	job := claim.Job
	surplus := ssn.JobReady(job)
	stmt := ssn.Statement()
	own := []*api.QueueInfo{job.Queue}
	ok := planner.Plan(stmt, claim, preemption.Rules{
		Cause:        api.Preempted,
		VictimQueues: func() []*api.QueueInfo { return own },
		IsCandidate: func(j *api.JobInfo) bool {
			// Pods without a group know of no gang: equals do not push each other out.
			return j.Queue == job.Queue && (j != job || surplus) && !(j.Shadow() && j.Priority == job.Priority && j != job)
		},
		Admits:      ssn.Preemptable,
		Validate:    ssn.ValidatePlan,
		SurplusOnly: surplus,
	})
	if ok {
		stmt.Commit()
	}
	return ok
}
