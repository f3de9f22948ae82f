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
	verdict := f.Verdict
	if verdict == nil {
		verdict = a.placer.explain(f.Task, claim.Request, 1)
	}
	if verdict.Missing > 0 {
		countMembers(verdict, claim, f)
		if s := f.Task.SubGroup(); s != nil {
			verdict.SubGroup = s.Name
		}
		a.compareCapacity(verdict, claim.Job)
	}
	logNotPlaced(a.ssn.Log, f.Task, verdict)
	verdict.Reservation = a.ssn.StarvationReservation(claim.Job)
	a.explain(claim.Job, nil, verdict)
}

// compareCapacity changes the reason for which a gang waits if the gang could not start even if no other pods ran on the
// nodes.
func (a *Allocator) compareCapacity(v *api.Verdict, j *api.JobInfo) {
	if v.Reason == v1alpha1.ReasonUnschedulable {
		return
	}
	v.Reason = v1alpha1.ReasonNotEnoughResources
	need := min(j.MinMember, j.ValidCount()) // only without the gang plugin fewer pods exist
	if most := a.ssn.Nodes().MaxMembers(j); most < int64(need) {
		v.Reason, v.Have, v.Need = v1alpha1.ReasonExceedsClusterCapacity, int32(most), need
		v.Nodes.Nearest = nil // the gang would not start if less were in use there
	}
}

// countMembers counts the pods that the gang needs: those like the one that the verdict is about, those of them that
// could start now, all others, and those that fit into the best topology domain.
func countMembers(v *api.Verdict, claim *api.Claim, f *Failure) {
	missing, startable := int32(0), int32(0)
	for _, t := range claim.Tasks {
		if t.Signature.Alike(f.Task.Signature) {
			missing++
		} else {
			v.Others.Add(t.Signature.PodRequest)
		}
	}
	for _, t := range f.Placed {
		if t.Signature.Alike(f.Task.Signature) {
			startable++
		}
	}
	switch {
	case f.Count != nil:
		v.Domain = f.Count
		missing, startable = int32(f.Count.Need), int32(f.Count.Startable)
	case f.Domain != nil:
		v.Domain = &api.DomainCount{
			Level: f.Domain.Level, Path: f.Domain.Path, Startable: len(f.Placed), Need: len(claim.Tasks), Occupied: f.Domain.Occupied,
		}
	}
	v.Missing = max(missing, 1)
	v.Startable = min(startable, v.Missing)
}

// explainSurplus records why a task above minMember waits.
func (a *Allocator) explainSurplus(claim *api.Claim, task *api.TaskInfo) {
	missing := int32(0)
	for _, t := range claim.Job.Tasks {
		if t.Waiting() && t.Signature == task.Signature {
			missing++
		}
	}
	v := a.placer.Explain(task, claim.Request, missing)
	if level := claim.Job.TopologyLevel; level != nil && v.Missing > 0 {
		if pinned := a.ssn.Nodes().Domains(level).OfJob(claim.Job); pinned != nil {
			v.Domain = &api.DomainCount{Level: level, Path: pinned.Path, Need: int(missing), Occupied: true}
		}
	}
	a.explain(claim.Job, task.Signature, v)
}

// explainHeld records that a gang waits for resources which are being released.
func (a *Allocator) explainHeld(claim *api.Claim) {
	if a.trial != nil || a.ssn.JobReady(claim.Job) {
		return
	}
	a.ssn.Explain(claim.Job, &api.Verdict{
		Reason: v1alpha1.ReasonPreempting,
		Detail: fmt.Sprintf("all required pods have nodes; %d of them wait for terminating pods there", claim.Job.Count(api.Pipelined)),
	})
}
