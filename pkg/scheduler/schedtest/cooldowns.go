// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Plan is a statement with evictions: the preemptor, the victims, and the number of tasks that wait for them.
type Plan struct {
	For     string
	Victims []string
	Places  int
}

// cooldown belongs to a job whose member was evicted because another queue deserved what the job's queue had
// borrowed. As long as that queue deserves as much, and the job for which the eviction was has not ended, the job's queue must
// not borrow for the job again.
type cooldown struct {
	job       api.JobID // for which the eviction was
	preemptor api.QueueID
	deserved  api.Resource // by the preemptor's queue
}

// checkPlan checks a committed statement: it contributes to convergence, and no job in cooldown borrows.
func (r *replica) checkPlan(ssn *framework.Session, decisions []api.Decision, result *cycle) {
	result.recordPlan(decisions)
	if result.cluster.skipConvergence {
		return
	}
	entitled, err := audit.Plan(ssn, decisions)
	if err != nil {
		result.fault("%v", err)
	}
	for _, d := range decisions {
		switch {
		case d.Kind != api.Evict:
			r.checkCooldown(ssn, d.Task, result)
		case entitled:
			r.cooldowns[d.Task.Job.ID] = cooldown{d.For.ID, d.For.Queue.ID, ssn.Deserved(d.For.Queue)}
		}
	}
}

func (r *cycle) recordPlan(decisions []api.Decision) {
	var plan Plan
	waits := false
	for _, d := range decisions {
		if d.Kind == api.Evict {
			plan.For = r.cluster.jobName(d.For)
			plan.Victims = append(plan.Victims, r.cluster.podName(d.Task))
		}
		waits = waits || d.Kind == api.Pipeline
	}
	if plan.Places = len(decisions) - len(plan.Victims); len(plan.Victims) > 0 && waits {
		r.plans = append(r.plans, plan)
	}
}

func (r *replica) checkCooldown(ssn *framework.Session, t *api.TaskInfo, result *cycle) {
	last, found := r.cooldowns[t.Job.ID]
	preemptor := r.model.Queues()[last.preemptor]
	if job := r.model.Jobs()[last.job]; job == nil || !slices.ContainsFunc(job.Tasks, func(t *api.TaskInfo) bool { return !t.Status.Ended() }) {
		return
	}
	if !found || preemptor == nil || !last.deserved.Fits(ssn.Deserved(preemptor)) {
		return
	}
	for d, n := range t.Request {
		held := api.InParts(d, t.Job.Queue.Allocated.At(d))
		if n > 0 && r.model.Dims().Shared(d) && held > ssn.Deserved(t.Job.Queue).At(d) {
			result.fault("%s is placed, although %s was evicted because queue %s deserves what queue %s had borrowed for it",
				result.cluster.podName(t), result.cluster.jobName(t.Job), last.preemptor, t.Job.Queue.ID)
		}
	}
}
