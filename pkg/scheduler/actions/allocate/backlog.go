// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package allocate

import (
	"context"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// explainAll explains why all jobs wait, if none of them can be placed, and reports whether that is so. Then it has done
// all that two passes over the jobs would have done.
//
// While nothing is placed, each job finds the same nodes and queues, in whatever order the jobs are tried, and gangs of
// one job class are refused for the same reason. So explainAll tries one gang of each job class whose refusal is not
// known, and all jobs without a job class. When one of them could be placed, it stops, and the passes begin with the
// first job.
func explainAll(ctx context.Context, ssn *framework.Session) bool {
	b := ssn.Backlog()
	if !b.Undisturbed() || len(b.JobClasses()) == 0 || ssn.FollowsUnplaced() {
		return false
	}
	trial, allocator := place.NewTrial(ssn)
	for _, jc := range b.JobClasses() {
		if !b.Refused(jc, jc.Job()) && !refuse(ssn, jc, trial, allocator) {
			return false
		}
	}
	restore := b.KeepCounts()
	r := &run{ssn: ssn, allocator: allocator, trial: trial}
	r.pass(ctx, r.pass(ctx, worklist.Sorted(ssn, b.Unclassified()), true), false)
	if trial.Placed() || ctx.Err() != nil {
		restore()
		return false
	}
	trial.Explain()
	r.explainJobClasses()
	return true
}

// refuse tries a gang of the job class, and reports whether it is refused.
func refuse(ssn *framework.Session, jc *framework.JobClass, trial *place.Trial, allocator *place.Allocator) bool {
	claim := allocator.Claim(jc.Job())
	if claim == nil {
		return false
	}
	allocator.Allocate(claim)
	return !trial.Placed() && ssn.Backlog().SetRefused(jc.Job(), trial.Take())
}

// pending returns the jobs of the session. Those of a job class that is refused as before stay refused, because allocate
// only ever uses up resources. If resources are reserved, a job class may be allowed to use them: then the first job of each
// is tried when it is the current job, and the others are refused with it.
func (r *run) pending() []*worklist.Part {
	if r.ssn.FollowsUnplaced() {
		return worklist.Sorted(r.ssn, r.ssn.Jobs())
	}
	parts := worklist.Pending(r.ssn)
	if r.ssn.Backlog().Reserved() {
		return parts
	}
	for _, p := range parts {
		p.Refused = p.Equal && r.refusedBefore(p.Jobs[0])
	}
	return parts
}

// overused reports whether the queue of the job is overused. The claim may be nil if the job has a job class.
func (r *run) overused(job *api.JobInfo, claim *api.Claim) bool {
	b := r.ssn.Backlog()
	jc := b.JobClass(job)
	if jc == nil {
		return r.ssn.Overused(job.Queue, claim)
	}
	return b.Deferred(jc, func() *api.Claim { return r.allocator.Claim(job) }, 0) // explainJobClasses counts
}

// refusedBefore reports whether it is known that a gang of the job class of the job does not fit.
func (r *run) refusedBefore(job *api.JobInfo) bool {
	b := r.ssn.Backlog()
	jc := b.JobClass(job)
	return jc != nil && b.Refused(jc, job)
}

// explainJobClasses explains why the jobs of all job classes wait, by one of each whose refusal is not known, and counts
// those whose queue is overused.
func (r *run) explainJobClasses() {
	b := r.ssn.Backlog()
	trial, allocator := place.NewTrial(r.ssn)
	b.EachWaiting(func(jc *framework.JobClass, jobs int) {
		j := b.Waiting(jc)
		b.Deferred(jc, func() *api.Claim { return allocator.Claim(j) }, jobs)
		if b.Refused(jc, j) {
			return
		}
		if claim := allocator.Claim(j); claim != nil {
			allocator.Allocate(claim)
			b.SetRefused(j, trial.Take())
		}
	})
	b.ExplainRefusals()
}

// keepRefusal remembers why a job was refused, if others have its job class, and reports whether all of these are refused
// too. A trial explains nothing yet.
func (r *run) keepRefusal(job *api.JobInfo) bool {
	b := r.ssn.Backlog()
	if r.trial != nil {
		return false
	}
	outcome := r.ssn.Outcome(job)
	return outcome != nil && b.SetRefused(job, outcome.Job)
}
