package evict

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// NextClaim is what a job asks others to make room for: its whole gang while it cannot start, then
// one surplus task; nil if it waits for room already, or for nothing.
func NextClaim(ssn *framework.Session, job *api.JobInfo) *api.Claim {
	tasks := ssn.WaitingTasks(job)
	if len(tasks) == 0 {
		return nil
	}
	switch {
	case !ssn.JobPipelined(job):
		need := int(max(job.MinMember-job.ReadyCount(), 1))
		return api.NewClaim(job, tasks[:min(need, len(tasks))])
	case !ssn.JobReady(job):
		return nil
	}
	for i, t := range tasks {
		if !t.BestEffort() {
			return api.NewClaim(job, tasks[i:i+1])
		}
	}
	return nil
}
