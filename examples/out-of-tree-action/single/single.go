// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package single is an example of an action. It places jobs of one pod on idle resources before other actions place
// gangs.
package single

import (
	"context"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// Name is the name of the action in configurations.
const Name = "single"

// New returns the action.
func New() framework.Action { return action{} }

type action struct{}

func (action) Name() string { return Name }

// Execute visits jobs in queue and job order.
func (action) Execute(ctx context.Context, ssn *framework.Session) error {
	placer := place.New(ssn)
	list := worklist.New(ssn, ssn.Jobs())
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		// 1. Make the resources that are reserved for the job available.
		ssn.ActivateReservation(job)
		tasks := ssn.WaitingTasks(job)
		if len(job.Tasks) != 1 || len(tasks) != 1 {
			continue
		}
		// 2. Place the pod on a statement. Commit it only if the plugins agree that the job can start.
		stmt := ssn.Statement()
		if placer.Place(stmt, tasks[0], place.Options{IdleOnly: true}) && ssn.JobReady(job) {
			stmt.Commit()
		} else {
			stmt.Discard()
		}
	}
	// 3. End the activation of the last job.
	ssn.ActivateReservation(nil)
	return ctx.Err()
}
