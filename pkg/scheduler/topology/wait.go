// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// startable keeps a gang with spec.topologyConstraint.preferredWait from starting in several domains until that time has
// passed. Package place has looked for one domain first.
func (r *constraints) startable(claim *api.Claim) *api.Verdict {
	until := waitsUntil(claim.Job, claim.Tasks)
	if !r.ssn.Now.Before(until) {
		return nil
	}
	level := claim.Job.PreferredLevel
	holding, all := r.ssn.Nodes().Domains(level).Holding(claim.Job)
	if all && len(holding) == 1 {
		return nil
	}
	r.ssn.WakeAt(until)
	where := fmt.Sprintf("in %d domains of level %s", len(holding), level.Name)
	if !all {
		where = fmt.Sprintf("on nodes that are in no domain of level %s", level.Name)
	}
	return &api.Verdict{
		Reason: v1alpha1.ReasonNotEnoughResources,
		Detail: fmt.Sprintf("would start %s, and waits for one of them until %s (spec.topologyConstraint.preferredWait)", where, until.UTC().Format(time.RFC3339)),
	}
}

// evictionAllowed keeps such a gang from evicting meanwhile: what it prefers is not worth the work of others.
func (r *constraints) evictionAllowed(j *api.JobInfo) bool {
	if j.PreferredWait == 0 || r.ssn.JobPipelined(j) {
		return true
	}
	until := waitsUntil(j, j.Tasks)
	if !r.ssn.Now.Before(until) {
		return true
	}
	r.ssn.WakeAt(until)
	return false
}

// waitsUntil returns when a job no longer waits for one domain of the level that it prefers: the time is counted from when the
// last of the tasks that wait was created.
func waitsUntil(j *api.JobInfo, tasks []*api.TaskInfo) time.Time {
	if j.PreferredWait == 0 {
		return time.Time{}
	}
	last := int64(0)
	for _, t := range tasks {
		last = max(last, t.Created)
	}
	return time.Unix(0, last).Add(j.PreferredWait)
}
