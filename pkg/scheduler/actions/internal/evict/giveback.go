package evict

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// reprieve returns units that the plan does not need, last first. A gang that has gone keeps its
// surplus from coming back, because that alone could not run.
func (a *attempt) reprieve() {
	placed := map[*api.NodeInfo][]*api.TaskInfo{}
	everywhere := a.relieved // a unit that comes back could matter to tasks on any node
	for _, t := range a.claim.Tasks {
		placed[t.Node] = append(placed[t.Node], t)
		everywhere = everywhere || a.neighbourly(t)
	}
	broken := map[*api.JobInfo]bool{}
	kept := a.taken[:0:0]
	for _, u := range slices.Backward(a.taken) {
		if broken[u.Job] || !a.roomWithout(u, placed) || !a.spare(u, placed, everywhere) {
			kept = append(kept, u)
			broken[u.Job] = broken[u.Job] || u.Whole
		}
	}
	slices.Reverse(kept)
	a.taken = kept
}

// roomWithout tells whether the nodes of a unit have room for it beside what the plan has placed
// there: a quick answer to most questions.
func (a *attempt) roomWithout(u api.Unit, placed map[*api.NodeInfo][]*api.TaskInfo) bool {
	here := map[*api.NodeInfo]api.Resource{}
	for _, t := range u.Tasks {
		sum := here[t.Node]
		sum.Add(t.Request)
		here[t.Node] = sum
	}
	for n, request := range here {
		if tasks := placed[n]; len(tasks) > 0 && !request.Fits(n.Available(tasks[0].Priority, api.Future)) {
			return false
		}
	}
	return true
}

// spare takes a unit out of the plan if the claim still fits.
func (a *attempt) spare(u api.Unit, placed map[*api.NodeInfo][]*api.TaskInfo, everywhere bool) bool {
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
		if !a.fitsAgain(t) {
			for _, victim := range u.Tasks {
				a.stmt.Evict(victim, a.claim.Job, a.rules.Cause)
			}
			return false
		}
	}
	return true
}

// fitsAgain tells whether t, taken off its node, could go there.
func (a *attempt) fitsAgain(t *api.TaskInfo) bool {
	node, status := t.Node, t.Status
	a.stmt.Revoke(t)
	when := api.Future
	if status == api.Allocated {
		when = api.Now
	}
	fits := node.Fits(t, when) && a.ssn.Predicate(t, node, when) == nil && a.ssn.Allocatable(t.Job, t.Request, when)
	if status == api.Allocated {
		a.stmt.Allocate(t, node)
	} else {
		a.stmt.Pipeline(t, node)
	}
	return fits
}
