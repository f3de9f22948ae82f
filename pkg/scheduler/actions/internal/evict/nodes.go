package evict

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/internal/nodeheap"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// kind is what makes tasks equal in what makes room for them.
type kind struct {
	class    *api.Class
	priority int32
}

// nodes are those where evictions could make room for tasks of one kind, the cheapest first.
type nodes struct {
	heap     *nodeheap.Heap[offer]
	position uint64 // in the journal of touched nodes
	dropped  map[*api.NodeInfo]bool
}

// offer is what it takes to make room on a node.
type offer struct {
	cost  cost
	units []api.Unit
}

// cost orders offers: gangs broken, pods evicted, run time lost.
type cost struct {
	gangs, pods int
	lost        int64 // seconds since 1970, summed up and negated: the younger the cheaper
}

func (c cost) compare(o cost) int {
	return cmp.Or(cmp.Compare(c.gangs, o.gangs), cmp.Compare(c.pods, o.pods), cmp.Compare(c.lost, o.lost))
}

// nodesFor returns the offers to tasks like t. Where other pods have a say in the matter they are
// made anew each time.
func (a *attempt) nodesFor(t *api.TaskInfo) *nodes {
	k := kind{a.ssn.Cluster().ClassOf(t), t.Priority}
	if n := a.kinds[k]; n != nil && !k.class.Social() {
		return n
	}
	n := &nodes{heap: nodeheap.New(func(a, b offer) int { return a.cost.compare(b.cost) }), dropped: map[*api.NodeInfo]bool{}}
	n.fill(a, t)
	a.kinds[k] = n
	return n
}

func (n *nodes) fill(a *attempt, t *api.TaskInfo) {
	all := a.ssn.Cluster().Nodes()
	n.heap.Fill(func(add func(*api.NodeInfo, offer)) {
		a.ssn.Passing(t.Shape).Each(func(i int) {
			if o, ok := a.offer(t, all[i]); ok && !n.dropped[all[i]] {
				add(all[i], o)
			}
		})
	})
	n.position = a.ssn.Cluster().Touched().Position()
}

// cheapest returns the node with the cheapest offer, and the offer; nil if there is none. An offer
// may have become dearer since it was made, because the surplus that it counts on is gone, so the
// first is made again until it stays first.
func (n *nodes) cheapest(a *attempt, t *api.TaskInfo) (*api.NodeInfo, []api.Unit) {
	n.catchUp(a, t)
	for {
		first, before := n.heap.Best()
		if first == nil {
			return nil, nil
		}
		n.look(a, t, first)
		if node, now := n.heap.Best(); node == first && now.cost.compare(before.cost) == 0 {
			return node, now.units
		}
	}
}

// catchUp looks again at nodes that were touched.
func (n *nodes) catchUp(a *attempt, t *api.TaskInfo) {
	journal := a.ssn.Cluster().Touched()
	touched, ok := journal.Since(n.position)
	if !ok {
		n.fill(a, t)
		return
	}
	all, passing := a.ssn.Cluster().Nodes(), a.ssn.Passing(t.Shape)
	for _, i := range touched {
		if passing.Has(int(i)) {
			n.look(a, t, all[i])
		}
	}
	n.position = journal.Position()
}

// look makes the offer of a node again.
func (n *nodes) look(a *attempt, t *api.TaskInfo, node *api.NodeInfo) {
	if o, ok := a.offer(t, node); ok && !n.dropped[node] {
		n.heap.Set(node, o)
	} else {
		n.heap.Remove(node)
	}
}

// drop takes a node out for good.
func (n *nodes) drop(node *api.NodeInfo) {
	n.dropped[node] = true
	n.heap.Remove(node)
}

// offer returns the cheapest units that make room for t on a node, and their price: surplus
// before gangs, low priority before high, young before old. Units that the others make
// unnecessary are left out.
func (a *attempt) offer(t *api.TaskInfo, node *api.NodeInfo) (offer, bool) {
	if !node.Ready() {
		return offer{}, false // nobody knows when its pods would be gone
	}
	room := node.Room(t.Priority, api.Future)
	var units []api.Unit
	singles := map[*api.JobInfo]int32{}
	for _, v := range a.victimsOn(node) {
		if t.Request.Short(room) < 0 {
			break
		}
		if !helps(v, t, room) || contains(units, v) {
			continue
		}
		switch {
		case v.Job.Surplus() > singles[v.Job] && !a.stays[v]:
			singles[v.Job]++
			units = append(units, api.NewUnit(v.Job, []*api.TaskInfo{v}))
			room.Add(v.Request)
		case a.gangs && !a.whole[v.Job]:
			units = slices.DeleteFunc(units, func(u api.Unit) bool { // goes with the rest
				if u.Job == v.Job {
					room.Sub(u.Request)
				}
				return u.Job == v.Job
			})
			u := a.rest(v.Job)
			units = append(units, u)
			room.Add(on(node, u))
		}
	}
	if t.Request.Short(room) >= 0 {
		return offer{}, false
	}
	units = leaveOut(units, t, node, room)
	return offer{price(units), units}, len(units) > 0
}

// rest is what is left of a gang, as one unit.
func (a *attempt) rest(j *api.JobInfo) api.Unit {
	var tasks []*api.TaskInfo
	for _, t := range j.Tasks {
		if t.Evictable() {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, func(x, y *api.TaskInfo) int { return api.CompareAge(x.Created, y.Created, x.Key, y.Key) })
	u := api.NewUnit(j, tasks)
	u.Whole = true
	return u
}

// on is what a unit holds on a node.
func on(node *api.NodeInfo, u api.Unit) api.Resource {
	var here api.Resource
	for _, t := range u.Tasks {
		if t.Node == node {
			here.Add(t.Request)
		}
	}
	return here
}

// victimsOn lists who may go from a node, the cheapest first.
func (a *attempt) victimsOn(node *api.NodeInfo) []*api.TaskInfo {
	var list []*api.TaskInfo
	for _, v := range node.Tasks {
		if v.Evictable() && victim(v.Job) && a.rules.May(v.Job) && rank(a.claim, v) <= a.limit {
			list = append(list, v)
		}
	}
	single := func(v *api.TaskInfo) int {
		if v.Job.Surplus() > 0 && !a.stays[v] {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(x, y *api.TaskInfo) int {
		return cmp.Or(
			cmp.Compare(single(x), single(y)),
			cmp.Compare(rank(a.claim, x), rank(a.claim, y)),
			cmp.Compare(x.Priority, y.Priority),
			-api.CompareAge(x.Created, y.Created, x.Key, y.Key),
		)
	})
	return list
}

// helps tells whether v holds some of what t is short of.
func helps(v, t *api.TaskInfo, room api.Resource) bool {
	for d, n := range t.Request {
		if n > room.At(d) && v.Request.At(d) > 0 {
			return true
		}
	}
	return false
}

func contains(units []api.Unit, t *api.TaskInfo) bool {
	for _, u := range units {
		if slices.Contains(u.Tasks, t) {
			return true
		}
	}
	return false
}

// leaveOut drops units without which t still fits, dearest first.
func leaveOut(units []api.Unit, t *api.TaskInfo, node *api.NodeInfo, room api.Resource) []api.Unit {
	for i := len(units) - 1; i >= 0; i-- {
		if less := room.Minus(on(node, units[i])); t.Request.Short(less) < 0 {
			room = less
			units = slices.Delete(units, i, i+1)
		}
	}
	return units
}

func price(units []api.Unit) cost {
	var c cost
	for _, u := range units {
		if u.Whole {
			c.gangs++
		}
		c.pods += len(u.Tasks)
		for _, t := range u.Tasks {
			c.lost -= t.Created / int64(1e9)
		}
	}
	return c
}
