package evict

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// victims knows who could go from which node, and what is left of gangs. All of it is derived and is
// made again when the node or the job has changed.
type victims struct {
	nodes []nodeVictims // by node index
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
	held       []held
}

// held is what a gang holds on one of its nodes.
type held struct {
	node    *api.NodeInfo
	request api.Resource
}

// at returns what the gang holds on a node. Most gangs are small, and a map would cost more.
func (g *gang) at(n *api.NodeInfo) api.Resource {
	for i := range g.held {
		if g.held[i].node == n {
			return g.held[i].request
		}
	}
	return nil
}

func newVictims() *victims {
	return &victims{gangs: map[*api.JobInfo]*gang{}}
}

// on lists the members of queues that stand on a node, the cheapest to lose first: by the priority
// of their jobs, then their own, then the youngest.
func (v *victims) on(n *api.NodeInfo) []*api.TaskInfo {
	for n.Index >= len(v.nodes) {
		v.nodes = append(v.nodes, nodeVictims{})
	}
	known := &v.nodes[n.Index]
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
	v.gangs[j] = g
	return g
}

// victim tells whether the job's members may be evicted at all: while some of them are on their
// way to their nodes, the job is left alone.
func victim(j *api.JobInfo) bool {
	return j.Queue != nil && j.Holding() > 0 && j.Count(api.Allocated)+j.Count(api.Binding)+j.Count(api.Pipelined) == 0
}
