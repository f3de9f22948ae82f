// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// evictable keeps the evictable pods of each node and of each gang, until the generation of the node or job changes.
type evictable struct {
	nodes []nodePods // by node index
	gangs map[*api.JobInfo]*gang
}

type nodePods struct {
	generation uint64
	list       []*api.TaskInfo
}

// gang is the unit of all evictable members of a job.
type gang struct {
	generation uint64
	unit       api.Unit
	held       []held
}

// held is what a gang holds on one of its nodes.
type held struct {
	node    *api.NodeInfo
	request api.Resource
}

// heldOn returns what the gang holds on a node. Most gangs are small, so a search of the list costs less than a map.
func (g *gang) heldOn(n *api.NodeInfo) api.Resource {
	for i := range g.held {
		if g.held[i].node == n {
			return g.held[i].request
		}
	}
	return nil
}

func newEvictable() *evictable {
	return &evictable{gangs: map[*api.JobInfo]*gang{}}
}

// onNode returns the evictable pods of a node, cheapest first.
func (e *evictable) onNode(n *api.NodeInfo) []*api.TaskInfo {
	for n.Index >= len(e.nodes) {
		e.nodes = append(e.nodes, nodePods{})
	}
	known := &e.nodes[n.Index]
	if known.generation == n.Generation {
		return known.list
	}
	list := known.list[:0]
	for _, t := range n.Tasks {
		if t.Evictable() {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, cheapestFirst)
	known.generation, known.list = n.Generation, list
	return list
}

// remainingGang returns the evictable members of a job as one unit.
func (e *evictable) remainingGang(j *api.JobInfo) *gang {
	if g := e.gangs[j]; g != nil && g.generation == j.Generation {
		return g
	}
	var tasks []*api.TaskInfo
	g := &gang{generation: j.Generation}
	for _, t := range j.Tasks {
		if t.Evictable() {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, func(a, b *api.TaskInfo) int {
		return cmp.Or(cmp.Compare(a.Node.Name, b.Node.Name), api.CompareAge(a.Created, b.Created, a.Key, b.Key))
	})
	for _, t := range tasks {
		if last := len(g.held) - 1; last < 0 || g.held[last].node != t.Node {
			g.held = append(g.held, held{node: t.Node})
		}
		g.held[len(g.held)-1].request.Add(t.Request)
	}
	g.unit = api.NewUnit(j, tasks)
	g.unit.Whole = true
	e.gangs[j] = g
	return g
}

// isComplete reports whether a unit that stands for all that is left of a gang contains all of it. It does not while some
// members must not be evicted, for example because an eviction of theirs was refused: then the others are surplus, if
// anything, and the shares count for each of them.
func isComplete(u api.Unit) bool { return !u.Whole || int32(len(u.Tasks)) == u.Job.Holding() }

// inQueue returns the evictable pods of a queue, cheapest first: by the priority of their jobs, surplus before gangs.
func inQueue(q *api.QueueInfo) []*api.TaskInfo {
	var list []*api.TaskInfo
	for _, j := range q.Jobs {
		for _, t := range j.Tasks {
			if t.Evictable() {
				list = append(list, t)
			}
		}
	}
	slices.SortFunc(list, func(x, y *api.TaskInfo) int {
		return cmp.Or(
			cmp.Compare(x.Job.Priority, y.Job.Priority),
			cmp.Compare(min(y.Job.Surplus(), 1), min(x.Job.Surplus(), 1)),
			cheapestFirst(x, y),
		)
	})
	return list
}

// cheapestFirst orders pods by the priority of their jobs, then by their own, then the youngest first, then those that
// a controller creates again.
func cheapestFirst(a, b *api.TaskInfo) int {
	if n := cmp.Or(
		cmp.Compare(a.Job.Priority, b.Job.Priority),
		cmp.Compare(a.Priority, b.Priority),
		cmp.Compare(b.Created, a.Created),
	); n != 0 {
		return n
	}
	switch {
	case a.Controlled() == b.Controlled():
		return cmp.Compare(b.Key, a.Key)
	case a.Controlled():
		return -1
	}
	return 1
}

// isVictimJob reports whether members of the job may be evicted at all. They may not while others of them are being
// placed or bound, nor if the group forbids it.
func isVictimJob(j *api.JobInfo) bool {
	return j.Queue != nil && !j.Group.IsNonPreemptable(j.Priority) && j.Holding() > 0 && j.Count(api.Allocated)+j.Count(api.Binding)+j.Count(api.Pipelined) == 0
}
