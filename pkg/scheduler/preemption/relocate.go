// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// relocation revokes evictions that are only needed where the plan has placed tasks of the claim: these move to resources
// that other evictions have left over. For example, a claim of three tasks of 1 cpu first evicts a pod of 1 cpu on one
// node, and then a pod of 2 cpu on another one, which would have sufficed. Most plans leave nothing over, because a task
// takes what is left over before it evicts.
type relocation struct {
	*attempt
	placed   map[*api.NodeInfo][]*api.TaskInfo // the tasks of the claim
	leftover []*api.NodeInfo                   // nodes of victims that have resources left over
}

// reprieve revokes evictions, the last one first.
func (r *relocation) reprieve() {
	if r.leftover = nodesLeftOver(r.attempt); len(r.leftover) == 0 {
		return
	}
	for i := len(r.evicted) - 1; i >= 0; i-- {
		if u := r.evicted[i]; !evictedWithOthers(r.evicted, i) && r.sufficient(u) && r.reprieveUnit(u) {
			r.evicted = slices.Delete(r.evicted, i, i+1)
		}
	}
}

// nodesLeftOver returns the nodes of victims where a task of the claim fits besides those that are placed there.
func nodesLeftOver(a *attempt) []*api.NodeInfo {
	var kinds []*api.TaskInfo // tasks of different pod signatures
	for _, t := range a.claim.Tasks {
		if !slices.ContainsFunc(kinds, func(k *api.TaskInfo) bool { return k.Signature == t.Signature }) {
			kinds = append(kinds, t)
		}
	}
	var nodes []*api.NodeInfo
	for i := range a.evicted {
		for _, v := range a.evicted[i].Tasks {
			fits := func(t *api.TaskInfo) bool { return v.Node.Fits(t, api.Future) }
			if slices.ContainsFunc(kinds, fits) && a.inDomain(v.Node) && !slices.Contains(nodes, v.Node) {
				nodes = append(nodes, v.Node)
			}
		}
	}
	return nodes
}

// evictedWithOthers reports whether the job of a unit loses another unit besides which this one is not reprieved, see
// attempt.reprieve.
func evictedWithOthers(evicted []api.Unit, i int) bool {
	for k := range evicted {
		if u := &evicted[k]; k != i && u.Job == evicted[i].Job && (u.Whole || len(u.Tasks) > 1) {
			return true
		}
	}
	return false
}

// sufficient reports whether what is left over, on all nodes together, is at least what the unit holds beyond what its nodes
// have left over. It is a quick necessary condition of reprieveUnit.
func (r *relocation) sufficient(u api.Unit) bool {
	var needed, left api.Resource
	available := func(n *api.NodeInfo) api.Resource { return n.Available(r.claim.Tasks[0].Priority, api.Future) }
	held := heldByNode(u)
	for n, request := range held {
		needed.Add(request.Minus(available(n)).NotNegative())
		left.Add(available(n).Minus(request).NotNegative())
	}
	for _, n := range r.leftover {
		if held[n] == nil {
			left.Add(available(n).NotNegative())
		}
	}
	return needed.Fits(left)
}

// move is a task that has moved.
type move struct {
	task *api.TaskInfo
	from *api.NodeInfo
}

// reprieveUnit revokes the evictions of a unit if the tasks that do not fit beside it fit elsewhere.
func (r *relocation) reprieveUnit(u api.Unit) bool {
	for _, v := range u.Tasks {
		r.stmt.Revoke(v)
	}
	var moves []move
	for _, v := range u.Tasks {
		for _, t := range r.placed[v.Node] {
			if t.Node != v.Node || t.Status != api.Pipelined || r.stillFits(t) {
				continue
			}
			if !r.move(t) {
				r.undo(u, moves)
				return false
			}
			moves = append(moves, move{t, v.Node})
		}
	}
	for _, m := range moves {
		moved := func(t *api.TaskInfo) bool { return t == m.task }
		r.placed[m.from] = slices.DeleteFunc(r.placed[m.from], moved)
		r.placed[m.task.Node] = append(r.placed[m.task.Node], m.task)
	}
	return true
}

// move moves a task to the first node with leftover resources where it fits, if the caps of its queue allow that.
func (r *relocation) move(t *api.TaskInfo) bool {
	from := t.Node
	r.stmt.Revoke(t)
	if r.ssn.Allocatable(t.Job, t.ShareRequest, api.Future) {
		if at := slices.IndexFunc(r.leftover, func(n *api.NodeInfo) bool { return n != from && r.fits(t, n) }); at >= 0 {
			r.stmt.Pipeline(t, r.leftover[at])
			return true
		}
	}
	r.stmt.Pipeline(t, from)
	return false
}

// undo moves tasks back, and evicts the unit again.
func (r *relocation) undo(u api.Unit, moves []move) {
	for _, m := range slices.Backward(moves) {
		r.stmt.Revoke(m.task)
		r.stmt.Pipeline(m.task, m.from)
	}
	for _, v := range u.Tasks {
		r.stmt.Evict(v, r.claim.Job, r.rules.Cause)
	}
}
