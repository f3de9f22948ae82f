// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package reclaim is the action that takes back what queues have borrowed, for queues that have
// less than they deserve.
package reclaim

import (
	"context"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/preemption"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// Name is the action's name in configurations.
const Name = "reclaim"

// New returns the action.
func New() framework.Action { return action{} }

type action struct{}

func (action) Name() string { return Name }

// Execute visits jobs in queue and job order.
func (action) Execute(ctx context.Context, ssn *framework.Session) error {
	r := &run{ssn: ssn, planner: preemption.New(ssn), placer: place.New(ssn), queues: ssn.Cluster().SortedQueues()}
	list := worklist.New(ssn, ssn.Jobs())
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		// 1. Make the resources that are reserved for the job available.
		ssn.ActivateReservation(job)

		// 2. If the queue of the job deserves more, evict for the job. If that succeeds, the job may have another claim.
		claim := worklist.Claim(ssn, job, ssn.WaitingTasks(job))
		if claim != nil && !ssn.Overused(job.Queue, claim) && r.serve(claim) {
			list.Return(job)
		}
	}
	// 3. Undo the placements that need no evictions, and leave them to allocate.
	for _, stmt := range slices.Backward(r.reserved) {
		stmt.Discard()
	}

	// 4. End the activation of the last job, so that what is reserved is reserved again.
	ssn.ActivateReservation(nil)
	return ctx.Err()
}

// run is one execution.
type run struct {
	ssn      *framework.Session
	planner  *preemption.Planner
	placer   *place.Placer
	queues   []*api.QueueInfo
	reserved []*framework.Statement // placements without evictions; their resources count as used until the action ends
}

// serve commits a plan for the claim, and reports whether there is one.
func (r *run) serve(claim *api.Claim) bool {
	preemptor := claim.Job.Queue
	rules := preemption.Rules{
		Cause:        api.Reclaimed,
		VictimQueues: func() []*api.QueueInfo { return r.victimQueues(preemptor) },
		IsCandidate:  func(j *api.JobInfo) bool { return isVictimQueue(j.Queue, preemptor) },
		PreFilter:    r.ssn.PreFilterPlan,
		Admits:       r.ssn.Reclaimable,
	}
	if r.planner.KnownInfeasible(claim, rules) {
		return false // nor does it fit: nothing has changed
	}
	stmt := r.ssn.Statement()
	if r.fits(stmt, claim) {
		r.reserved = append(r.reserved, stmt)
		return false // its surplus is served when the gang has started
	}
	stmt.Discard()
	if !r.planner.Plan(stmt, claim, rules) {
		return false
	}
	stmt.Commit()
	return true
}

func (r *run) fits(stmt *framework.Statement, claim *api.Claim) bool {
	for _, t := range claim.Tasks {
		if !r.placer.Place(stmt, t, place.Options{}) {
			return false
		}
	}
	return true
}

// isVictimQueue reports whether pods of q can be victims of the preemptor's queue. If q is not reclaimable, they can only
// be for the guarantee of that queue.
func isVictimQueue(q, preemptor *api.QueueInfo) bool {
	return q != preemptor && (q.Reclaimable || !preemptor.Guarantee.IsZero())
}

// victimQueues returns the queues that may have victims, the one with the highest share first. Queues that
// are not reclaimable come last.
func (r *run) victimQueues(preemptor *api.QueueInfo) []*api.QueueInfo {
	list := slices.DeleteFunc(slices.Clone(r.queues), func(q *api.QueueInfo) bool { return !isVictimQueue(q, preemptor) })
	slices.SortStableFunc(list, func(a, b *api.QueueInfo) int {
		switch {
		case a.Reclaimable == b.Reclaimable:
			return r.ssn.CompareQueues(b, a)
		case a.Reclaimable:
			return -1
		}
		return +1
	})
	return list
}
