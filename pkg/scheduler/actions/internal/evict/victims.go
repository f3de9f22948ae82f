package evict

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// victims knows who could go from which node, and what is left of gangs. All of it is derived and is
// made again when the node or the job has changed.
type victims struct {
	nodes map[*api.NodeInfo]nodeVictims
	gangs map[*api.JobInfo]*gang
}

type nodeVictims struct {
	generation uint64
	list       []*api.TaskInfo
}

// gang is what is left of a gang, as one unit.
type gang struct {
	generation uint64
	unit       api.Unit
	at         map[*api.NodeInfo]api.Resource // what it holds there
}

func newVictims() *victims {
	return &victims{nodes: map[*api.NodeInfo]nodeVictims{}, gangs: map[*api.JobInfo]*gang{}}
}

// on lists the members of queues that stand on a node, the cheapest to lose first: by the priority
// of their jobs, then their own, then the youngest.
func (v *victims) on(n *api.NodeInfo) []*api.TaskInfo {
	known, ok := v.nodes[n]
	if ok && known.generation == n.Generation {
		return known.list
	}
	list := known.list[:0]
	for _, t := range n.Tasks {
		if t.Evictable() {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, cheapestFirst)
	v.nodes[n] = nodeVictims{n.Generation, list}
	return list
}

func cheapestFirst(a, b *api.TaskInfo) int {
	return cmp.Or(
		cmp.Compare(a.Job.Priority, b.Job.Priority),
		cmp.Compare(a.Priority, b.Priority),
		-api.CompareAge(a.Created, b.Created, a.Key, b.Key),
	)
}

// rest returns all that is left of a gang.
func (v *victims) rest(j *api.JobInfo) *gang {
	if g := v.gangs[j]; g != nil && g.generation == j.Generation {
		return g
	}
	var tasks []*api.TaskInfo
	g := &gang{generation: j.Generation, at: map[*api.NodeInfo]api.Resource{}}
	for _, t := range j.Tasks {
		if t.Evictable() {
			tasks = append(tasks, t)
			here := g.at[t.Node]
			here.Add(t.Request)
			g.at[t.Node] = here
		}
	}
	slices.SortFunc(tasks, func(a, b *api.TaskInfo) int { return api.CompareAge(a.Created, b.Created, a.Key, b.Key) })
	g.unit = api.NewUnit(j, tasks)
	g.unit.Whole = true
	v.gangs[j] = g
	return g
}

// victim tells whether the job's members may be evicted at all: while some of them are on their
// way to their nodes, the job is left alone.
func victim(j *api.JobInfo) bool {
	return j.Queue != nil && j.Holding() > 0 && j.Count(api.Allocated)+j.Count(api.Binding)+j.Count(api.Pipelined) == 0
}
