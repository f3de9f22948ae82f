// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package allocate is the action that places waiting jobs on available resources: gangs as a whole,
// then surplus tasks one by one, queues in the order of their shares.
package allocate

import (
	"context"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// Name is the action's name in configurations.
const Name = "allocate"

// New returns the action.
func New() framework.Action { return action{} }

type action struct{}

func (action) Name() string { return Name }

// Execute makes two passes of one loop, unless nothing can be placed.
func (action) Execute(ctx context.Context, ssn *framework.Session) error {
	// 1. Explain why all jobs wait, if none of them can be placed. Then the passes would change nothing.
	if ssn.Backlog().Count() == 0 || explainAll(ctx, ssn) {
		return ctx.Err()
	}

	// 2. Serve the jobs whose queues hold less than they deserve.
	r := &run{ssn: ssn, allocator: place.NewAllocator(ssn)}
	deferred := r.pass(ctx, r.pending(), true)

	// 3. Let the queues of the other jobs borrow what is left, within their capability.
	r.pass(ctx, deferred, false)

	// 4. Explain why the jobs of all job classes wait now.
	r.explainJobClasses()
	return ctx.Err()
}

// run is one execution.
type run struct {
	ssn       *framework.Session
	allocator *place.Allocator
	trial     *place.Trial // nil: claims are placed
}

// pass serves jobs until none of them has a claim that fits: the best queue, its best job, the next claim of that
// job. It drops a job whose claim does not fit, because allocate only ever uses up resources. If it defers claims of
// overused queues, it returns their jobs.
func (r *run) pass(ctx context.Context, parts []*worklist.Part, defers bool) (deferred []*worklist.Part) {
	var jobs []*api.JobInfo
	list := worklist.Of(r.ssn, parts)
	if defers {
		// Jobs that are skipped keep their places in the order of the second pass.
		list.OnSkip(func(jobs []*api.JobInfo) {
			if r.overused(jobs[0], nil) {
				deferred = append(deferred, &worklist.Part{Jobs: jobs, Refused: true})
			}
		})
	}
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		if r.ssn.Skip(job) {
			continue
		}
		r.ssn.ActivateReservation(job)
		if r.refusedBefore(job) {
			if defers && r.overused(job, nil) {
				jobs = append(jobs, job)
			} else if r.unplaced(job) {
				list.Return(job)
			}
			continue
		}
		claim := r.allocator.Claim(job)
		switch {
		case claim == nil: // has all that it can get
		case defers && r.overused(job, claim):
			jobs = append(jobs, job)
		case r.allocator.Allocate(claim):
			list.Return(job)
		default:
			if r.keepRefusal(job) {
				list.Refuse()
			}
			if r.unplaced(job) {
				list.Return(job)
			}
		}
		if r.trial.Placed() {
			break
		}
	}
	r.ssn.ActivateReservation(nil)
	return append(deferred, worklist.Sorted(r.ssn, jobs)...)
}

// unplaced reports to plugins that reserve resources that the gang of a job could not be placed, unless the pass is a trial. It
// reports whether it is to be tried once more. A job that has resources reserved now is not like the others of its job class
// any more, and is explained alone.
func (r *run) unplaced(job *api.JobInfo) bool {
	if r.trial != nil || !r.ssn.FollowsUnplaced() || r.ssn.JobPipelined(job) {
		return false
	}
	b := r.ssn.Backlog()
	equal := b.JobClass(job) != nil
	if r.ssn.Unplaced(job) {
		return true
	}
	if equal && b.JobClass(job) == nil {
		if claim := r.allocator.Claim(job); claim != nil {
			r.allocator.Allocate(claim)
		}
	}
	return false
}
