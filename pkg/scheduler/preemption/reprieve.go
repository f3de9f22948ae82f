// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// reprieve revokes evictions that the plan does not need, the last one first. The surplus of a gang that is evicted is
// not reprieved, because it could not run alone; nor is that of a gang that loses a whole part, of which it may be.
func (a *attempt) reprieve() {
	placed := map[*api.NodeInfo][]*api.TaskInfo{}
	everywhere := a.capsRelieved // a reprieve can then affect tasks on any node
	for _, t := range a.claim.Tasks {
		placed[t.Node] = append(placed[t.Node], t)
		everywhere = everywhere || a.affectedByPods(t)
	}
	broken := map[*api.JobInfo]bool{}
	needed := a.evicted[:0:0]
	for _, u := range slices.Backward(a.evicted) {
		if broken[u.Job] || !a.fitsBeside(u, placed) || !a.reprieveUnit(u, placed, everywhere) {
			needed = append(needed, u)
			broken[u.Job] = broken[u.Job] || u.Whole || len(u.Tasks) > 1
		}
	}
	slices.Reverse(needed)
	a.evicted = needed
	if !everywhere {
		(&relocation{attempt: a, placed: placed}).reprieve()
	}
}

// fitsBeside reports whether the resources of the nodes suffice for the unit beside the tasks that the plan has placed
// there. It is a quick necessary condition of reprieveUnit.
func (a *attempt) fitsBeside(u api.Unit, placed map[*api.NodeInfo][]*api.TaskInfo) bool {
	for n, request := range heldByNode(u) {
		if tasks := placed[n]; len(tasks) > 0 && !request.Fits(n.Available(tasks[0].Priority, api.Future)) {
			return false
		}
	}
	return true
}

// heldByNode returns what the pods of a unit hold on each of its nodes.
func heldByNode(u api.Unit) map[*api.NodeInfo]api.Resource {
	held := map[*api.NodeInfo]api.Resource{}
	for _, t := range u.Tasks {
		sum := held[t.Node]
		sum.Add(t.Request)
		held[t.Node] = sum
	}
	return held
}

// reprieveUnit revokes the evictions of a unit if the claim still fits, and reports whether it does.
func (a *attempt) reprieveUnit(u api.Unit, placed map[*api.NodeInfo][]*api.TaskInfo, everywhere bool) bool {
	affected := a.claim.Tasks
	if !everywhere {
		affected = nil
		for _, t := range u.Tasks {
			affected = append(affected, placed[t.Node]...)
		}
	}
	for _, t := range u.Tasks {
		a.stmt.Revoke(t)
	}
	for _, t := range affected {
		if !a.stillFits(t) {
			for _, victim := range u.Tasks {
				a.stmt.Evict(victim, a.claim.Job, a.rules.Cause)
			}
			return false
		}
	}
	return true
}

// stillFits reports whether t, which is placed, could be placed on its node again.
func (a *attempt) stillFits(t *api.TaskInfo) bool {
	node, status := t.Node, t.Status
	a.stmt.Revoke(t)
	when := api.Future
	if status == api.Allocated {
		when = api.Now
	}
	fits := node.Fits(t, when) && a.ssn.Predicate(t, node, when) == nil && a.ssn.Allocatable(t.Job, t.ShareRequest, when)
	if status == api.Allocated {
		a.stmt.Allocate(t, node)
	} else {
		a.stmt.Pipeline(t, node)
	}
	return fits
}
