// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package allocate

import (
	"context"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
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
	if !b.Undisturbed() || len(b.JobClasses()) == 0 {
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
	r.pass(ctx, r.pass(ctx, b.Unclassified(), true), false)
	if trial.Placed() || ctx.Err() != nil {
		restore()
		return false
	}
	for _, jc := range b.JobClasses() {
		b.Deferred(jc, func() *api.Claim { return allocator.Claim(jc.Job()) }, jc.Count())
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

// refusedBefore reports whether it is known that a gang of the job class of the job does not fit. Then it explains
// that, or reports that the job waits for the second pass.
func (r *run) refusedBefore(job *api.JobInfo, defers bool) (known, wait bool) {
	b := r.ssn.Backlog()
	jc := b.JobClass(job)
	if jc == nil || !b.Refused(jc, job) {
		return false, false
	}
	if defers && b.Deferred(jc, func() *api.Claim { return r.allocator.Claim(job) }, 1) {
		return true, true
	}
	return true, false
}

// explainJobClasses explains why the jobs of all job classes wait, by one of each whose refusal is not known.
func (r *run) explainJobClasses() {
	b := r.ssn.Backlog()
	trial, allocator := place.NewTrial(r.ssn)
	for _, jc := range b.JobClasses() {
		j := b.Waiting(jc)
		if j == nil || b.Refused(jc, j) {
			continue
		}
		if claim := allocator.Claim(j); claim != nil {
			allocator.Allocate(claim)
			b.SetRefused(j, trial.Take())
		}
	}
	b.ExplainRefusals()
}

// keepRefusal remembers why a job was refused, if it was and others have its job class. A trial explains nothing yet.
func (r *run) keepRefusal(job *api.JobInfo) {
	if r.trial != nil {
		return
	}
	if outcome := r.ssn.Outcome(job); outcome != nil {
		r.ssn.Backlog().SetRefused(job, outcome.Job)
	}
}
