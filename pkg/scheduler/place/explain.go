// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// explainGang records why the gang of a claim was not placed. The model is as it was before the attempt, so that a
// user finds the same numbers.
func (a *Allocator) explainGang(claim *api.Claim, f *Failure) {
	missing := int32(0)
	for _, t := range claim.Tasks {
		if t.Signature == f.Task.Signature {
			missing++
		}
	}
	verdict := a.placer.Explain(f.Task, claim.Request, max(missing, 1))
	verdict.Startable = min(f.Placed, verdict.Missing)
	verdict.Reservation = a.ssn.StarvationReservation(claim.Job)
	a.ssn.Explain(claim.Job, verdict)
}

// explainSurplus records why a task above minMember waits.
func (a *Allocator) explainSurplus(claim *api.Claim) {
	task := claim.Tasks[0]
	missing := int32(0)
	for _, t := range claim.Job.Tasks {
		if t.Waiting() && t.Signature == task.Signature {
			missing++
		}
	}
	a.ssn.ExplainTasks(claim.Job, task.Signature, a.placer.Explain(task, claim.Request, missing))
}

// explainHeld records that a gang waits for resources which are being released.
func (a *Allocator) explainHeld(claim *api.Claim) {
	if a.ssn.JobReady(claim.Job) {
		return
	}
	a.ssn.Explain(claim.Job, &api.Verdict{
		Reason: v1alpha1.ReasonPreempting,
		Detail: fmt.Sprintf("all required pods have nodes; %d of them wait for terminating pods there", claim.Job.Count(api.Pipelined)),
	})
}
