package schedtest

import (
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// What must hold whatever the test is about:
//
//   - the accounts of the model add up, after every event, action and session (replica.audit);
//   - no node gives more than it has, now or once what is being released is gone (checkNodes);
//   - nobody takes what is set aside for a gang (checkAside);
//   - nobody takes the room of nominated pods of other schedulers that are not below him
//     (checkNominated);
//   - no queue exceeds its capability by what was placed (checkQueues);
//   - no gang is bound below its minMember (checkGangs);
//   - no eviction leaves a gang running below its minMember (checkEvictions);
//   - nobody is told names of another namespace (checkDiscretion);
//   - no task is decided twice or bound where its job may not run (cycle.Commit);
//   - what was not committed is undone (Cluster.launch);
//   - the same objects in any order lead to the same decisions (Cluster.Cycle).

// check looks at the model after an action.
func (r *cycle) check(action string) {
	r.checkAside(action)
	for _, t := range r.model.Tasks() {
		switch {
		case t.Status == api.Allocated, t.Status == api.Binding && r.decided[t.ID]:
			r.checkNode(action, t, t.Node.Idle)
			r.checkQueue(action, t, holding(t.Job.Queue).Plus(t.Job.Queue.Releasing))
		case t.Status == api.Pipelined:
			r.checkNode(action, t, t.Node.Idle.Plus(t.Node.Releasing).Minus(t.Node.Pipelined))
			r.checkQueue(action, t, t.Job.Queue.Allocated)
		}
	}
}

// checkNode asks for what is left of the node in the dimensions that t takes.
func (r *cycle) checkNode(action string, t *api.TaskInfo, left api.Resource) {
	for i, n := range t.Request {
		if n > 0 && left.At(i) < 0 {
			r.fault("after %s: %s is placed on %s, which then has %s too little", action, r.cluster.podName(t), t.Node.Name,
				r.model.Dims().FormatOne(i, -left.At(i)))
		}
	}
}

// checkAside asks whether what is set aside on nodes is there.
func (r *cycle) checkAside(action string) {
	for _, n := range r.model.Nodes() {
		if n == nil || n.Reserved.IsZero() {
			continue
		}
		left := n.Idle.Plus(n.Releasing).Minus(n.Pipelined).Minus(n.Reserved)
		for i, aside := range n.Reserved {
			if aside > 0 && left.At(i) < 0 {
				r.fault("after %s: of the %s set aside on %s %s is missing", action, r.model.Dims().FormatOne(i, aside), n.Name,
					r.model.Dims().FormatOne(i, -left.At(i)))
			}
		}
	}
}

// checkNominated asks whether a node still has what it keeps from tasks of the priority of d,
// when its statement is committed. Statements with several priorities are not asked about: those
// above may take what is kept from those below.
func (r *cycle) checkNominated(statement []api.Decision, d api.Decision) {
	for _, other := range statement {
		if other.Task.Priority != d.Task.Priority {
			return
		}
	}
	room := d.Node.Available(d.Task.Priority, api.Now)
	for i, n := range d.Task.Request {
		if n > 0 && room.At(i) < 0 {
			r.fault("%s takes room on %s that is kept for a nominated pod", r.cluster.podName(d.Task), d.Node.Name)
		}
	}
}

// checkQueue asks whether the queue of t is within its capability in the dimensions that t takes.
func (r *cycle) checkQueue(action string, t *api.TaskInfo, held api.Resource) {
	q := t.Job.Queue
	for i, n := range t.Request {
		if n > 0 && i < len(q.Capability) && held.At(i) > q.Capability[i] {
			r.fault("after %s: %s is placed, and queue %s then holds %s of %s", action, r.cluster.podName(t), q.ID,
				r.model.Dims().FormatOne(i, held.At(i)), r.model.Dims().FormatOne(i, q.Capability[i]))
		}
	}
}

// holding adds up what members of a queue hold, without what waits for room.
func holding(q *api.QueueInfo) api.Resource {
	var sum api.Resource
	for _, j := range q.Jobs {
		for _, t := range j.Tasks {
			if t.Status.Holding() && t.Node.Exists() {
				sum.Add(t.Request)
			}
		}
	}
	return sum
}

// checkGangs looks at what is bound once the session is over.
func (r *cycle) checkGangs() {
	for _, b := range r.binds {
		if j := r.model.Tasks()[b.uid].Job; j.ReadyCount() < j.MinMember {
			r.fault("%s is bound, and its gang has %d of %d members", b.Pod, j.ReadyCount(), j.MinMember)
		}
	}
}

// checkEvictions looks at what evictions have left of gangs that could run before.
func (r *cycle) checkEvictions() {
	gone := map[*api.JobInfo]int32{}
	for _, t := range r.evicted {
		gone[t.Job]++
	}
	for j, n := range gone {
		if ready := j.ReadyCount(); j.Holding() > 0 && ready < j.MinMember && ready+n >= j.MinMember {
			r.fault("evictions leave %d of the %d members that %s needs", ready, j.MinMember, r.cluster.jobName(j))
		}
	}
}

// checkDiscretion looks at what the owner of a job is told.
func (r *cycle) checkDiscretion(j *api.JobInfo, message string) {
	for _, t := range r.model.Tasks() {
		if foreign := t.Pod.Namespace; foreign != j.Namespace && (strings.Contains(message, t.Pod.Name) || strings.Contains(message, foreign+"/")) {
			r.fault("%s is told of namespace %s: %s", r.cluster.jobName(j), foreign, message)
		}
	}
}
