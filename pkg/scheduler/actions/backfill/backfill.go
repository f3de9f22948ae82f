// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package backfill is the action that places best-effort tasks, which request nothing but a pod slot. They do not
// compete for resources, so the action runs after the others.
package backfill

import (
	"context"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/subgroups"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// Name is the action's name in configurations.
const Name = "backfill"

// New returns the action.
func New() framework.Action { return action{} }

type action struct{}

func (action) Name() string { return Name }

// Execute visits jobs in queue and job order.
func (action) Execute(ctx context.Context, ssn *framework.Session) error {
	// Jobs with a job class have no best-effort tasks.
	if !slices.ContainsFunc(ssn.Backlog().Unclassified(), hasBestEffort) {
		return ctx.Err()
	}
	placer := place.New(ssn)
	list := worklist.New(ssn, ssn.Jobs())
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		// 1. Make the resources that are reserved for the job available.
		ssn.ActivateReservation(job)

		// 2. Select its best-effort tasks. A gang that waits for resources could not start with them.
		tasks := bestEffort(ssn, job)
		if len(tasks) == 0 || waitsForRelease(ssn, job) {
			continue
		}

		// 3. If the job is not ready, place as many tasks as make it ready, or none.
		if !ssn.JobReady(job) {
			tasks = complete(ssn, placer, job, tasks)
		}

		// 4. If the job is ready, place each task that fits on a node.
		if ssn.JobReady(job) {
			fill(ssn, placer, job, tasks)
		}
	}
	// 5. End the activation of the last job.
	ssn.ActivateReservation(nil)
	return ctx.Err()
}

// waitsForRelease reports whether the gang has all its placements and some of them wait for resources that are being
// released. Best-effort tasks would not complete such a gang.
func waitsForRelease(ssn *framework.Session, job *api.JobInfo) bool {
	return ssn.JobPipelined(job) && !ssn.JobReady(job)
}

func hasBestEffort(job *api.JobInfo) bool {
	return slices.ContainsFunc(job.Tasks, func(t *api.TaskInfo) bool { return t.Waiting() && t.BestEffort() })
}

// bestEffort returns the best-effort tasks that wait, without those that start only together with other members of a
// subgroup.
func bestEffort(ssn *framework.Session, job *api.JobInfo) []*api.TaskInfo {
	return slices.DeleteFunc(ssn.WaitingTasks(job), func(t *api.TaskInfo) bool {
		return !t.BestEffort() || job.SubGroups != nil && !subgroups.MayStartAlone(t)
	})
}

// complete makes the job ready by best-effort tasks, or changes nothing. It returns the tasks
// that are left.
func complete(ssn *framework.Session, placer *place.Placer, job *api.JobInfo, tasks []*api.TaskInfo) []*api.TaskInfo {
	stmt := ssn.Statement()
	for i, t := range tasks {
		if !placer.Place(stmt, t, place.Options{}) {
			break
		}
		if ssn.JobReady(job) {
			stmt.Commit()
			return tasks[i+1:]
		}
	}
	stmt.Discard()
	return tasks
}

// fill places each task that fits on a node, and explains the others.
func fill(ssn *framework.Session, placer *place.Placer, job *api.JobInfo, tasks []*api.TaskInfo) {
	failed := map[*api.EquivalenceClass]bool{}
	for i, t := range tasks {
		class := ssn.Cluster().ClassOf(t)
		if failed[class] {
			continue
		}
		stmt := ssn.Statement()
		if placer.Place(stmt, t, place.Options{}) {
			stmt.Commit()
			continue
		}
		failed[class] = true
		ssn.ExplainTasks(job, t.Signature, placer.Explain(t, t.Request, alike(tasks[i:])))
	}
}

// alike returns how many of the tasks have the pod signature of the first.
func alike(tasks []*api.TaskInfo) int32 {
	n := int32(0)
	for _, t := range tasks {
		if t.Signature == tasks[0].Signature {
			n++
		}
	}
	return n
}
