package allocate

import (
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// explainGang says why the gang of a claim was not placed. The model is as it was before the
// attempt, so the numbers are those that a person would find.
func (r *run) explainGang(claim *api.Claim, f *place.Failure) {
	missing := int32(0)
	for _, t := range claim.Tasks {
		if t.Signature == f.Task.Signature {
			missing++
		}
	}
	verdict := r.placer.Why(f.Task, claim.Request, max(missing, 1))
	verdict.Startable = min(f.Placed, verdict.Missing)
	verdict.Reservation = r.ssn.StarvationReservation(claim.Job)
	r.ssn.Explain(claim.Job, verdict)
}

// explainSurplus says why a task above minMember waits.
func (r *run) explainSurplus(claim *api.Claim) {
	task := claim.Tasks[0]
	missing := int32(0)
	for _, t := range claim.Job.Tasks {
		if t.Waiting() && t.Signature == task.Signature {
			missing++
		}
	}
	r.ssn.ExplainTasks(claim.Job, task.Signature, r.placer.Why(task, claim.Request, missing))
}

// explainHeld says of a gang that fits only on room being released that it waits for that room.
func (r *run) explainHeld(claim *api.Claim) {
	if r.ssn.JobReady(claim.Job) {
		return
	}
	r.ssn.Explain(claim.Job, &api.Verdict{
		Reason: v1alpha1.ReasonPreempting,
		Detail: fmt.Sprintf("has its nodes; %d of its pods wait there for pods that are being deleted", claim.Job.Count(api.Pipelined)),
	})
}
