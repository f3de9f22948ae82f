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

// Execute visits jobs in queue and job order.
func (action) Execute(ctx context.Context, ssn *framework.Session) error {
	planner := preemption.New(ssn)
	list := worklist.New(ssn, ssn.Jobs())
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		// 1. Make the resources that are reserved for the job available.
		ssn.ActivateReservation(job)

		// 2. Evict for its gang, or for one surplus task. If that succeeds, the job may have another claim.
		if claim := worklist.Claim(ssn, job, ssn.WaitingTasks(job)); claim != nil && preempt(ssn, planner, claim) {
			list.Return(job)
		}
	}
	// 3. End the activation of the last job.
	ssn.ActivateReservation(nil)
	return ctx.Err()
}

// preempt commits a plan for the claim, if there is one. It leaves what fits without evictions to allocate.
func preempt(ssn *framework.Session, planner *preemption.Planner, claim *api.Claim) bool {
	job := claim.Job
	surplus := ssn.JobReady(job)
	stmt := ssn.Statement()
	own := []*api.QueueInfo{job.Queue}
	ok := planner.Plan(stmt, claim, preemption.Rules{
		Cause:        api.Preempted,
		VictimQueues: func() []*api.QueueInfo { return own },
		IsCandidate: func(j *api.JobInfo) bool {
			// Pods that are in no gang are no victims of other jobs of the same priority.
			return j.Queue == job.Queue && (j != job || surplus) && !(isPlain(j) && j.Priority == job.Priority && j != job)
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

// isPlain reports whether the job consists of pods without PodGroup, group key and owner that would make them a gang.
func isPlain(j *api.JobInfo) bool { return j.Shadow() && j.GroupKey() == "" && j.Owner == nil }
