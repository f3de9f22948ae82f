package schedtest

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Plan is a statement with evictions: for whom, whose room it takes, and how many tasks wait for it.
type Plan struct {
	For     string
	Victims []string
	Places  int
}

// debtor is a job that was evicted because a queue deserved what its own had borrowed. As long as that queue
// deserves as much, it must not borrow again.
type debtor struct {
	taker    api.QueueID
	deserved api.Resource // by the taker
}

// watchPlan looks at a statement that is committed: it raises its potential, and no debtor borrows.
func (r *replica) watchPlan(ssn *framework.Session, decisions []api.Decision, result *cycle) {
	result.notePlan(decisions)
	if result.cluster.restless {
		return
	}
	entitled, err := audit.Plan(ssn, decisions)
	if err != nil {
		result.fault("%v", err)
	}
	for _, d := range decisions {
		switch {
		case d.Kind != api.Evict:
			r.checkDebtor(ssn, d.Task, result)
		case entitled:
			r.debtors[d.Task.Job.ID] = debtor{d.For.Queue.ID, ssn.Deserved(d.For.Queue)}
		}
	}
}

func (r *cycle) notePlan(decisions []api.Decision) {
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

func (r *replica) checkDebtor(ssn *framework.Session, t *api.TaskInfo, result *cycle) {
	debt, owes := r.debtors[t.Job.ID]
	preemptor := r.model.Queues()[debt.taker]
	if !owes || preemptor == nil || !debt.deserved.Fits(ssn.Deserved(preemptor)) {
		return
	}
	for d, n := range t.Request {
		held := api.InParts(d, t.Job.Queue.Allocated.At(d))
		if n > 0 && r.model.Dims().Shared(d) && held > ssn.Deserved(t.Job.Queue).At(d) {
			result.fault("%s is placed, although %s was evicted because queue %s deserves what queue %s had borrowed for it",
				result.cluster.podName(t), result.cluster.jobName(t.Job), debt.taker, t.Job.Queue.ID)
		}
	}
}

// Plans returns the plans of the last cycle, in the order of decisions.
func (c *Cluster) Plans() []Plan { return c.last.plans }
