// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Invariants of every scenario:
//
//   - the accounts of the model are consistent, after every event, action and session (replica.audit);
//   - no node is overcommitted, now or once what is being released is gone (checkNode);
//   - plugins answer equally for the tasks of an equivalence class (checkClasses);
//   - no task uses resources that are reserved for a gang (checkReserved);
//   - no task uses resources of nominated pods of other schedulers that have at least its priority
//     (checkNominated);
//   - no placement exceeds the capability of its queue (checkQueue);
//   - no gang is bound below its minMember (checkGangs);
//   - no eviction leaves a gang running below its minMember (checkEvictions);
//   - no message contains names of another namespace (checkDiscretion);
//   - no task is decided twice or bound where its job may not run (cycle.Commit);
//   - what was not committed is undone (Scenario.replayCommitted);
//   - the same objects in any order lead to the same decisions (Scenario.Cycle).

// check checks the invariants after an action.
func (r *cycle) check(action string) {
	r.checkReserved(action)
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

// checkNode checks that the node is not overcommitted in the dimensions that t requests.
func (r *cycle) checkNode(action string, t *api.TaskInfo, left api.Resource) {
	for i, n := range t.Request {
		if n > 0 && left.At(i) < 0 {
			r.fault("after %s: %s is placed on %s, which is overcommitted by %s", action, r.cluster.podName(t), t.Node.Name,
				r.model.Dims().FormatOne(i, -left.At(i)))
		}
	}
}

// checkReserved checks that the reserved resources of nodes are available.
func (r *cycle) checkReserved(action string) {
	for _, n := range r.model.Nodes() {
		if n == nil || n.Reserved.IsZero() {
			continue
		}
		left := n.Idle.Plus(n.Releasing).Minus(n.Pipelined).Minus(n.Reserved)
		for i, reserved := range n.Reserved {
			if reserved > 0 && left.At(i) < 0 {
				r.fault("after %s: of the %s reserved on %s %s is missing", action, r.model.Dims().FormatOne(i, reserved), n.Name,
					r.model.Dims().FormatOne(i, -left.At(i)))
			}
		}
	}
}

// checkNominated checks, when a statement is committed, that the node still has what it reserves from tasks of the
// priority of d. It skips statements with several priorities: tasks of higher priority may use what is reserved from
// those of lower priority.
func (r *cycle) checkNominated(statement []api.Decision, d api.Decision) {
	for _, other := range statement {
		if other.Task.Priority != d.Task.Priority {
			return
		}
	}
	available := d.Node.Available(d.Task.Priority, api.Now)
	for i, n := range d.Task.Request {
		if n > 0 && available.At(i) < 0 {
			r.fault("%s uses resources on %s that are reserved for a nominated pod", r.cluster.podName(d.Task), d.Node.Name)
		}
	}
}

// checkQueue checks that the queue of t is within its capability in the dimensions that t requests.
func (r *cycle) checkQueue(action string, t *api.TaskInfo, held api.Resource) {
	q := t.Job.Queue
	for i, n := range t.Request {
		if n > 0 && i < len(q.Capability) && held.At(i) > q.Capability[i] {
			r.fault("after %s: %s is placed, and queue %s then holds %s of %s", action, r.cluster.podName(t), q.ID,
				r.model.Dims().FormatOne(i, held.At(i)), r.model.Dims().FormatOne(i, q.Capability[i]))
		}
	}
}

// holding returns the sum of what members of a queue hold, without pipelined tasks.
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

// checkGangs checks the bound gangs after the session.
func (r *cycle) checkGangs() {
	for _, b := range r.binds {
		t := r.model.Tasks()[b.uid]
		if j := t.Job; !j.Ready() {
			r.fault("%s is bound, and its gang has %d of %d members", b.Pod, j.ReadyCount(), j.MinMember)
		}
		for s := t.SubGroup(); s != nil; s = s.Parent {
			if !s.Complete((*api.MemberCounts).ReadyCount) {
				r.fault("%s is bound, and its subgroup %s is incomplete", b.Pod, s.Name)
			}
		}
	}
}

// checkEvictions checks the gangs that evictions have reduced and that could run before.
func (r *cycle) checkEvictions() {
	gone := map[*api.JobInfo]int32{}
	parts := map[*api.MemberCounts]int32{}
	for _, t := range r.evicted {
		gone[t.Job]++
		for s := t.SubGroup(); s != nil; s = s.Parent {
			parts[&s.MemberCounts]++
		}
	}
	for j, n := range gone {
		if ready := j.ReadyCount(); j.Holding() > 0 && ready < j.MinMember && ready+n >= j.MinMember {
			r.fault("evictions leave %d of the %d members that %s needs", ready, j.MinMember, r.cluster.jobName(j))
		}
	}
	before := func(c *api.MemberCounts) int32 { return c.ReadyCount() + parts[c] }
	for _, t := range r.evicted {
		for s := t.SubGroup(); s != nil; s = s.Parent {
			if s.Holding() > 0 && s.Complete(before) && !s.Complete((*api.MemberCounts).ReadyCount) {
				r.fault("evictions leave %d members in subgroup %q of %s, which then is incomplete", s.Holding(), s.Name, r.cluster.jobName(t.Job))
			}
		}
	}
}

// checkDiscretion checks a message for the owner of a job.
func (r *cycle) checkDiscretion(j *api.JobInfo, message string) {
	for _, t := range r.model.Tasks() {
		if foreign := t.Pod.Namespace; foreign != j.Namespace && (strings.Contains(message, t.Pod.Name) || strings.Contains(message, foreign+"/")) {
			r.fault("the message for %s mentions namespace %s: %s", r.cluster.jobName(j), foreign, message)
		}
	}
}
