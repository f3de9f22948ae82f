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

// Execute goes through jobs in queue and job order, as long as their queues are below what they
// deserve. Reclaim leaves what fits without an eviction to allocate, but counts its resources as
// used until the action ends.
func (action) Execute(ctx context.Context, ssn *framework.Session) error {
	r := &run{ssn: ssn, planner: preemption.New(ssn), placer: place.New(ssn), queues: ssn.Cluster().SortedQueues()}
	list := worklist.New(ssn, ssn.Jobs())
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		ssn.ActivateReservation(job)
		claim := worklist.Claim(ssn, job, ssn.WaitingTasks(job))
		if claim != nil && !ssn.Overused(job.Queue, claim) && r.serve(claim) {
			list.Return(job)
		}
	}
	ssn.ActivateReservation(nil)
	for _, stmt := range slices.Backward(r.reserved) {
		stmt.Discard()
	}
	return ctx.Err()
}

// run is one execution.
type run struct {
	ssn      *framework.Session
	planner  *preemption.Planner
	placer   *place.Placer
	queues   []*api.QueueInfo
	reserved []*framework.Statement
}

func (r *run) serve(claim *api.Claim) bool {
	preemptor := claim.Job.Queue
	rules := preemption.Rules{
		Cause:        api.Reclaimed,
		VictimQueues: func() []*api.QueueInfo { return r.victimQueues(preemptor) },
		IsCandidate:  func(j *api.JobInfo) bool { return mayEvict(j.Queue, preemptor) },
		PreFilter:    r.ssn.PreFilterPlan,
		Admits:       r.ssn.Reclaimable,
	}
	if r.planner.KnownInfeasible(claim, rules) {
		return false // nor does it fit: nothing has changed
	}
	stmt := r.ssn.Statement()
	if r.fits(stmt, claim) {
		r.reserved = append(r.reserved, stmt)
		return false // its surplus has time until the gang itself has started
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

// mayEvict reports whether the action may evict pods of queue q for the preemptor. From a queue that is not reclaimable
// it takes only what the guarantee of the preemptor needs.
func mayEvict(q, preemptor *api.QueueInfo) bool {
	return q != preemptor && (q.Reclaimable || !preemptor.Guarantee.IsZero())
}

// victimQueues returns the queues that may have victims, the one with the highest share first. Queues that
// are not reclaimable come last.
func (r *run) victimQueues(preemptor *api.QueueInfo) []*api.QueueInfo {
	list := slices.DeleteFunc(slices.Clone(r.queues), func(q *api.QueueInfo) bool { return !mayEvict(q, preemptor) })
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
