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

	// 4. Explain why the jobs of all job classes wait now, and those that have none any more.
	r.explainJobClasses()
	r.explainApart()
	return ctx.Err()
}

// run is one execution.
type run struct {
	ssn       *framework.Session
	allocator *place.Allocator
	trial     *place.Trial   // nil: claims are placed
	refused   []*api.JobInfo // jobs whose gangs could not be placed, if a plugin follows these; may repeat them
}

// pass serves jobs until none of them has a claim that fits: the best queue, its best job, the next claim of that
// job. It drops a job whose claim does not fit, because allocate only ever uses up resources. If it defers claims of
// overused queues, it returns their jobs.
func (r *run) pass(ctx context.Context, parts []*worklist.Part, defers bool) (deferred []*worklist.Part) {
	var jobs []*api.JobInfo
	list, b := worklist.Of(r.ssn, parts), r.ssn.Backlog()
	if b.Reserved() {
		list.SkipInOrder()
	}
	list.OnSkip(func(skipped []*api.JobInfo) {
		if b.Reserved() { // it makes no difference whether it is known that they cannot be placed
			r.ssn.ActivateReservation(skipped[0])
			r.ssn.ActivateReservation(skipped[len(skipped)-1])
		}
		if defers && r.overused(skipped[0], nil) { // they keep their places in the order of the second pass
			deferred = append(deferred, &worklist.Part{Jobs: skipped, Equal: true, Refused: true})
		}
	})
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		if r.ssn.Skip(job) {
			r.refused = append(r.refused, job)
			continue
		}
		r.ssn.ActivateReservation(job)
		if r.refusedBefore(job) {
			list.Refuse()
			if defers && r.overused(job, nil) {
				jobs = append(jobs, job)
			} else if r.unplaced(job) {
				list.Return(job)
			}
			continue
		}
		claim, alike, placed := r.allocator.Claim(job), b.JobClass(job) != nil, r.placed()
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
		if b.Reserved() && !alike && r.placed() > placed { // what was reserved for the job may be available to others
			list.Revive()
			for _, p := range deferred {
				p.Refused = false
			}
		}
	}
	r.ssn.ActivateReservation(nil)
	return append(deferred, worklist.Sorted(r.ssn, jobs)...)
}

// placed returns how many tasks the session has placed.
func (r *run) placed() int { return r.ssn.Decided(api.Allocate) + r.ssn.Decided(api.Pipeline) }

// unplaced reports to plugins that reserve resources that the gang of a job could not be placed, unless the pass is a trial. It
// reports whether it is to be tried once more.
func (r *run) unplaced(job *api.JobInfo) bool {
	if r.trial != nil || !r.ssn.FollowsUnplaced() || r.ssn.JobPipelined(job) {
		return false
	}
	r.refused = append(r.refused, job)
	return r.ssn.Unplaced(job)
}

// explainApart explains the jobs that resources have been reserved for: they are not like the others of their job classes any
// more, and some of them were not tried.
func (r *run) explainApart() {
	explained := map[*api.JobInfo]bool{}
	for _, job := range r.refused {
		if r.ssn.Backlog().Apart(job) && !explained[job] && !r.ssn.JobPipelined(job) {
			explained[job] = true
			r.ssn.ActivateReservation(job)
			if claim := r.allocator.Claim(job); claim != nil {
				r.allocator.Allocate(claim)
			}
		}
	}
	if len(r.refused) > 0 {
		r.ssn.ActivateReservation(nil)
	}
}
