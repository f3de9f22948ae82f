package evict

import (
	"cmp"
	"math"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/tournament"
)

// cost orders offers: the highest priority of a victim, gangs broken, pods evicted, run time lost.
type cost struct {
	rank        int32
	gangs, pods int32
	lost        int64 // seconds since 1970, summed up and negated: the younger the cheaper
}

func (c cost) compare(o cost) int {
	return cmp.Or(cmp.Compare(c.rank, o.rank), cmp.Compare(c.gangs, o.gangs), cmp.Compare(c.pods, o.pods), cmp.Compare(c.lost, o.lost))
}

// candidateKey is what makes offers equal: the kind of task that they are made to, and who gives.
type candidateKey struct {
	class       *api.EquivalenceClass
	priority    int32
	victimQueue *api.QueueInfo // nil: all that may be asked
}

// candidates are the nodes where evictions could make room for a kind of task, the cheapest first.
type candidates struct {
	key     candidateKey
	nodes   *tournament.Tree[cost]
	reader  api.JournalReader
	dropped map[*api.NodeInfo]bool
}

// offersFor returns the offers of a giver to tasks like t. Where other pods have a say in the matter
// they are made anew each time.
func (a *attempt) offersFor(t *api.TaskInfo, victimQueue *api.QueueInfo) *candidates {
	key := candidateKey{a.ssn.Cluster().ClassOf(t), t.Priority, victimQueue}
	if o := a.offers[key]; o != nil && !key.class.AffectedByPods() {
		return o
	}
	o := &candidates{key: key, nodes: tournament.New(a.ssn.Cluster().Nodes(), cost.compare), dropped: map[*api.NodeInfo]bool{}}
	a.offers[key] = o
	return o
}

func (o *candidates) fill(a *attempt, t *api.TaskInfo) {
	all := a.ssn.Cluster().Nodes()
	o.nodes.Fill(func(add func(*api.NodeInfo, cost)) {
		a.ssn.Nodes().Feasible(t.Signature).Each(func(i int) {
			if a.within(all[i]) && !o.dropped[all[i]] {
				if units, ok := a.offer(t, all[i], o.key.victimQueue); ok {
					add(all[i], a.costOf(units))
				}
			}
		})
	})
}

// cheapest returns the node with the cheapest offer, and the offer; nil if there is none. An offer
// may have become dearer since it was made, because the surplus that it counts on is gone, so the
// first is made again until it stays first.
func (o *candidates) cheapest(a *attempt, t *api.TaskInfo) (*api.NodeInfo, []api.Unit) {
	o.catchUp(a, t)
	for {
		first, before := o.nodes.Best()
		if first == nil {
			return nil, nil
		}
		units := o.look(a, t, first)
		if node, now := o.nodes.Best(); node == first && now == before {
			return node, slices.Clone(units)
		}
	}
}

// catchUp searches again for victims on the nodes that have changed. The number of updates has no limit: a rebuild
// searches on all nodes, and entries of the journal often repeat the node before them.
func (o *candidates) catchUp(a *attempt, t *api.TaskInfo) {
	cluster := a.ssn.Cluster()
	changed, known := o.reader.CatchUp(cluster.NodeChanges(), math.MaxInt)
	if !known {
		o.fill(a, t)
		return
	}
	nodes, feasible, last := cluster.Nodes(), a.ssn.Nodes().Feasible(t.Signature), int32(-1)
	for _, index := range changed {
		if index != last && feasible.Has(int(index)) && a.within(nodes[index]) {
			o.look(a, t, nodes[index])
		}
		last = index
	}
}

// look makes the offer of a node again.
func (o *candidates) look(a *attempt, t *api.TaskInfo, node *api.NodeInfo) []api.Unit {
	if units, ok := a.offer(t, node, o.key.victimQueue); ok && !o.dropped[node] {
		o.nodes.Set(node, a.costOf(units))
		return units
	}
	o.nodes.Remove(node)
	return nil
}

// drop takes a node out for good.
func (o *candidates) drop(node *api.NodeInfo) {
	o.dropped[node] = true
	o.nodes.Remove(node)
}

// offer returns the cheapest units that make room for t on a node: low priority before high, surplus
// before gangs, young before old. Units that the others make unnecessary are left out. There are none
// in an offer to a task that neighbours keep away and not a lack of room. The slice is valid until
// the next call.
func (a *attempt) offer(t *api.TaskInfo, node *api.NodeInfo, victimQueue *api.QueueInfo) ([]api.Unit, bool) {
	if !node.Ready() {
		return nil, false // nobody knows when its pods would be gone
	}
	b := &a.bundle
	b.reset(t, node)
	list := a.victimsOn(node)
	if a.outOfReach(list, victimQueue) {
		return nil, false
	}
	for from := 0; from < len(list) && b.short(); {
		to := from
		for to < len(list) && rank(a.claim, list[to]) == rank(a.claim, list[from]) {
			to++
		}
		a.offerSurplus(list[from:to], victimQueue)
		a.offerGangs(list[from:to], victimQueue)
		from = to
	}
	if b.short() {
		return nil, false
	}
	b.leaveOut()
	return b.units, len(b.units) > 0 || a.neighbourly(t)
}

// victimsOn lists who stands on a node, by rank. The claim's own job rarely has members there.
func (a *attempt) victimsOn(node *api.NodeInfo) []*api.TaskInfo {
	list := a.victims.on(node)
	if a.claim.Job.Holding() == 0 || !slices.ContainsFunc(list, func(t *api.TaskInfo) bool { return t.Job == a.claim.Job }) {
		return list
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y *api.TaskInfo) int { return cmp.Compare(rank(a.claim, x), rank(a.claim, y)) })
	return list
}

// outOfReach tells quickly that no offer is possible: even with all victims gone the task would not
// fit, or not without one that stays. Those of high priority are asked first, who stay most likely.
func (a *attempt) outOfReach(list []*api.TaskInfo, victimQueue *api.QueueInfo) bool {
	b := &a.bundle
	most := b.room.Clone()
	for _, v := range list {
		if a.mayEvict(v.Job, victimQueue) {
			most.Add(v.Request)
		}
	}
	if b.task.Request.InsufficientDimension(most) >= 0 {
		return true
	}
	for _, v := range slices.Backward(list) {
		if a.mayEvict(v.Job, victimQueue) && !fitsWithout(b.task.Request, most, v) && !a.couldGo(v) {
			return true
		}
	}
	return false
}

// couldGo tells whether a pod could go in some way, alone or with the rest of its gang.
func (a *attempt) couldGo(v *api.TaskInfo) bool {
	if v.Job.Surplus() > 0 && a.admitsFirst(api.NewUnit(v.Job, []*api.TaskInfo{v})) {
		return true
	}
	return !a.surplusOnly && a.admitsFirst(a.victims.rest(v.Job).unit)
}

// fitsWithout tells whether the request fits the room without what v holds of it.
func fitsWithout(request, room api.Resource, v *api.TaskInfo) bool {
	for d, n := range request {
		if n > 0 && n > room.At(d)-v.Request.At(d) {
			return false
		}
	}
	return true
}

// neighbourly tells whether t could be kept away from a node by others that stand there, although
// there is room.
func (a *attempt) neighbourly(t *api.TaskInfo) bool {
	return len(t.Signature.Ports) > 0 || a.ssn.Cluster().ClassOf(t).AffectedByPods()
}

// offerSurplus adds single pods that their gangs can do without.
func (a *attempt) offerSurplus(list []*api.TaskInfo, victimQueue *api.QueueInfo) {
	b := &a.bundle
	for _, v := range list {
		if !b.short() {
			return
		}
		if b.helps(v) && v.Job.Surplus() > b.singlesOf(v.Job) && a.mayEvict(v.Job, victimQueue) && !a.stays[v] {
			if u := api.NewUnit(v.Job, []*api.TaskInfo{v}); a.admitsFirst(u) {
				b.add(u, v.Request)
			}
		}
	}
}

// offerGangs adds what is left of gangs, each as one unit: surplus pods that were added go with the
// rest.
func (a *attempt) offerGangs(list []*api.TaskInfo, victimQueue *api.QueueInfo) {
	b := &a.bundle
	for _, v := range list {
		if !b.short() || a.surplusOnly {
			return
		}
		if b.helps(v) && !b.hasGang(v.Job) && a.mayEvict(v.Job, victimQueue) && !a.whole[v.Job] {
			if g := a.victims.rest(v.Job); a.admitsFirst(g.unit) {
				b.drop(v.Job)
				b.add(g.unit, g.at(b.node))
			}
		}
	}
}

func (a *attempt) mayEvict(j *api.JobInfo, victimQueue *api.QueueInfo) bool {
	return (victimQueue == nil || j.Queue == victimQueue) && j.Priority <= a.limit && victim(j) && a.rules.May(j)
}

func (a *attempt) costOf(units []api.Unit) cost {
	var c cost
	for i := range units {
		u := &units[i]
		if u.Whole {
			c.gangs++
		}
		c.pods += int32(len(u.Tasks))
		for _, t := range u.Tasks {
			c.lost -= t.Created / int64(1e9)
			if r := rank(a.claim, t); i == 0 || r > c.rank {
				c.rank = r
			}
		}
	}
	return c
}

// rank is the priority by which a victim counts: its job's, or its own among tasks of one job.
func rank(claim *api.Claim, t *api.TaskInfo) int32 {
	if t.Job == claim.Job {
		return t.Priority
	}
	return t.Job.Priority
}
