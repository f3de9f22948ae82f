// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package worklist

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/subgroups"
)

// Claim returns the claim of the current job, given its remaining tasks, in task order, of which the
// first waits: its whole gang while that cannot start, then one surplus task, or one segment or optional subgroup; nil
// while the gang waits for resources that are being released, and when nothing is left. Surplus tasks without requests
// are left to backfill.
func Claim(ssn *framework.Session, job *api.JobInfo, tasks []*api.TaskInfo) *api.Claim {
	switch {
	case len(tasks) == 0:
		return nil
	case !ssn.JobPipelined(job):
		tasks = Needed(job, tasks)
	case !ssn.JobReady(job):
		return nil
	default:
		tasks = surplus(job, tasks)
	}
	if len(tasks) == 0 {
		return nil
	}
	return api.NewClaim(job, tasks)
}

// Needed returns those of the tasks, which are in task order, with which the gang can start; at least one without
// subgroups.
func Needed(job *api.JobInfo, tasks []*api.TaskInfo) []*api.TaskInfo {
	if job.SubGroups != nil {
		return subgroups.Needed(job, tasks)
	}
	return tasks[:min(int(max(job.MinMember-job.ReadyCount(), 1)), len(tasks))]
}

// surplus returns those of the tasks that start next in a gang that is ready.
func surplus(job *api.JobInfo, tasks []*api.TaskInfo) []*api.TaskInfo {
	if job.SubGroups != nil {
		return subgroups.Surplus(job, tasks)
	}
	for i, t := range tasks {
		if t.Waiting() && !t.BestEffort() {
			return tasks[i : i+1]
		}
	}
	return nil
}
