package schedtest

import (
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// debtor is a job that was evicted because a queue deserved what its own had borrowed. As long as that queue
// asks for as much and nothing else changes, it must not borrow again.
type debtor struct {
	taker   api.QueueID
	request api.Resource // of the taker
	terms   string
}

// auditPlan looks at a statement that is committed: it raises its potential, and no debtor borrows.
func (r *replica) auditPlan(ssn *framework.Session, plan []api.Decision, result *cycle) {
	entitled, err := ssn.AuditPlan(plan)
	if err != nil {
		result.fault("%v", err)
	}
	for _, d := range plan {
		switch {
		case d.Kind != api.Evict:
			r.checkDebtor(ssn, d.Task, result)
		case entitled:
			taker := d.For.Queue
			r.debtors[d.Task.Job.ID] = debtor{taker.ID, asked(taker), termsOf(ssn)}
		}
	}
}

func (r *replica) checkDebtor(ssn *framework.Session, t *api.TaskInfo, result *cycle) {
	debt, owes := r.debtors[t.Job.ID]
	taker := r.model.Queues[debt.taker]
	if !owes || taker == nil || !debt.request.Fits(asked(taker)) || debt.terms != termsOf(ssn) {
		return
	}
	for d, n := range t.Request {
		if held := t.Job.Queue.Allocated.At(d); n > 0 && r.model.Dims.Shared(d) && held > ssn.Deserved(t.Job.Queue).At(d) {
			result.fault("%s is placed, although %s was evicted because queue %s deserves what queue %s had borrowed for it",
				result.cluster.podName(t), result.cluster.jobName(t.Job), debt.taker, t.Job.Queue.ID)
		}
	}
}

// asked is all that a queue asks for, be it possible or not.
func asked(q *api.QueueInfo) api.Resource {
	return q.Allocated.Plus(q.Releasing).Plus(q.Requested)
}

func termsOf(ssn *framework.Session) string {
	text := fmt.Sprint(ssn.Total())
	for _, q := range ssn.Cluster().SortedQueues() {
		text += fmt.Sprint(q.ID, q.Weight, q.Guarantee, q.Capability)
	}
	return text
}
