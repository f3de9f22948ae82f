// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package worklist

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Claim returns the claim of the current job, given its remaining tasks, in task order, of which the
// first waits: its whole gang while that cannot start, then one surplus task; nil while the gang waits
// for resources that are being released, and when nothing is left. Surplus tasks without requests are
// left to backfill.
func Claim(ssn *framework.Session, job *api.JobInfo, tasks []*api.TaskInfo) *api.Claim {
	switch {
	case len(tasks) == 0:
		return nil
	case !ssn.JobPipelined(job):
		need := int(max(job.MinMember-job.ReadyCount(), 1))
		return api.NewClaim(job, tasks[:min(need, len(tasks))])
	case !ssn.JobReady(job):
		return nil
	}
	for i, t := range tasks {
		if t.Waiting() && !t.BestEffort() {
			return api.NewClaim(job, tasks[i:i+1])
		}
	}
	return nil
}
