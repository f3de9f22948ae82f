// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"math"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/tournament"
)

// candidateKey is what makes candidates equal: what the preemptor's task is to the nodes, and the queue of the victims.
type candidateKey struct {
	class       *api.EquivalenceClass
	priority    int32
	victimQueue *api.QueueInfo // nil: all victim queues
}

// candidates are the nodes that have a sufficient victim set for tasks of a kind, in order of cost.
type candidates struct {
	key      candidateKey
	nodes    *tournament.Tree[cost]
	reader   api.JournalReader
	excluded map[*api.NodeInfo]bool
}

// candidatesFor returns the candidates for tasks like t. They are kept during an attempt, except for tasks that other
// pods affect.
func (a *attempt) candidatesFor(t *api.TaskInfo, victimQueue *api.QueueInfo) *candidates {
	key := candidateKey{a.ssn.Cluster().ClassOf(t), t.Priority, victimQueue}
	if c := a.candidates[key]; c != nil && !key.class.AffectedByPods() {
		return c
	}
	c := &candidates{key: key, nodes: tournament.New(a.ssn.Cluster().Nodes(), cost.compare), excluded: map[*api.NodeInfo]bool{}}
	a.candidates[key] = c
	return c
}

// rebuild computes the candidates of all nodes.
func (c *candidates) rebuild(a *attempt, t *api.TaskInfo) {
	all := a.ssn.Cluster().Nodes()
	c.nodes.Fill(func(add func(*api.NodeInfo, cost)) {
		a.ssn.Nodes().Feasible(t.Signature).Each(func(i int) {
			if a.inDomain(all[i]) && !c.excluded[all[i]] {
				if units, ok := a.selectVictims(t, all[i], c.key.victimQueue); ok {
					add(all[i], a.costOn(t, all[i], units))
				}
			}
		})
	})
}

// cheapest returns the node with the cheapest candidate and its victim set; nil if there is none. The cost of a
// candidate can have risen since it was computed, because other candidates have used the surplus of its jobs. So
// cheapest computes the first candidate again until it remains the first.
func (c *candidates) cheapest(a *attempt, t *api.TaskInfo) (*api.NodeInfo, []api.Unit) {
	c.catchUp(a, t)
	for {
		first, before := c.nodes.Best()
		if first == nil {
			return nil, nil
		}
		units := c.update(a, t, first)
		if node, now := c.nodes.Best(); node == first && now == before {
			return node, slices.Clone(units)
		}
	}
}

// catchUp computes the candidates of the nodes that have changed. The number of updates has no limit: a rebuild
// searches all nodes, and entries of the journal often repeat the node before them.
func (c *candidates) catchUp(a *attempt, t *api.TaskInfo) {
	cluster := a.ssn.Cluster()
	changed, known := c.reader.CatchUp(cluster.NodeChanges(), math.MaxInt)
	if !known {
		c.rebuild(a, t)
		return
	}
	nodes, feasible, last := cluster.Nodes(), a.ssn.Nodes().Feasible(t.Signature), int32(-1)
	for _, index := range changed {
		if index != last && feasible.Has(int(index)) && a.inDomain(nodes[index]) {
			c.update(a, t, nodes[index])
		}
		last = index
	}
}

// update computes the candidate of a node.
func (c *candidates) update(a *attempt, t *api.TaskInfo, node *api.NodeInfo) []api.Unit {
	if units, ok := a.selectVictims(t, node, c.key.victimQueue); ok && !c.excluded[node] {
		c.nodes.Set(node, a.costOn(t, node, units))
		return units
	}
	c.nodes.Remove(node)
	return nil
}

// costOn returns the cost of a victim set for t on a node.
func (a *attempt) costOn(t *api.TaskInfo, node *api.NodeInfo, units []api.Unit) cost {
	c := costOf(a.claim, units)
	if !a.ssn.ScoresEvictions() {
		return c
	}
	var freed api.Resource
	for _, u := range units {
		for _, v := range u.Tasks {
			if v.Node == node {
				freed.Add(v.Request)
			}
		}
	}
	c.loss = -int64(a.ssn.EvictionScore(t, node, freed))
	return c
}

// exclude removes a node for the rest of the attempt.
func (c *candidates) exclude(node *api.NodeInfo) {
	c.excluded[node] = true
	c.nodes.Remove(node)
}

// selectVictims returns the cheapest victim set for t on a node, and whether it is sufficient. The set is empty if other
// pods, and not resources, keep t from the node. The slice is valid until the next call.
func (a *attempt) selectVictims(t *api.TaskInfo, node *api.NodeInfo, victimQueue *api.QueueInfo) ([]api.Unit, bool) {
	if !node.Ready() {
		return nil, false // its pods could be terminating without end
	}
	s := &a.set
	s.reset(t, node)
	list := a.victimsOn(node)
	if a.insufficient(list, victimQueue) {
		return nil, false
	}
	for from := 0; from < len(list) && !s.sufficient(); {
		to := from
		for to < len(list) && victimPriority(a.claim, list[to]) == victimPriority(a.claim, list[from]) {
			to++
		}
		a.addSurplus(list[from:to], victimQueue)
		a.addGangs(list[from:to], victimQueue)
		from = to
	}
	if !s.sufficient() {
		return nil, false
	}
	s.reprieve()
	return s.units, len(s.units) > 0 || a.affectedByPods(t)
}

// victimsOn returns the evictable pods of a node in the order of victimPriority.
func (a *attempt) victimsOn(node *api.NodeInfo) []*api.TaskInfo {
	list := a.evictable.onNode(node)
	if a.claim.Job.Holding() == 0 || !slices.ContainsFunc(list, func(t *api.TaskInfo) bool { return t.Job == a.claim.Job }) {
		return list
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y *api.TaskInfo) int {
		return cmp.Compare(victimPriority(a.claim, x), victimPriority(a.claim, y))
	})
	return list
}

// insufficient reports whether no victim set of the node can be sufficient: either the task does not fit without all pods, or
// it does not fit with one that plugins reject. Plugins reject pods of high priority most often, so these are tried
// first.
func (a *attempt) insufficient(list []*api.TaskInfo, victimQueue *api.QueueInfo) bool {
	s := &a.set
	most := s.available.Clone()
	for _, v := range list {
		if a.isCandidate(v.Job, victimQueue) {
			most.Add(v.Request)
		}
	}
	if s.task.Request.InsufficientDimension(most) >= 0 {
		return true
	}
	for _, v := range slices.Backward(list) {
		if a.isCandidate(v.Job, victimQueue) && !fitsWithout(s.task.Request, most, v) && !a.admitsAsAnyUnit(v) {
			return true
		}
	}
	return false
}

// admitsAsAnyUnit reports whether plugins admit the eviction of a pod, alone or with its gang.
func (a *attempt) admitsAsAnyUnit(v *api.TaskInfo) bool {
	if u, ok := api.SurplusUnit(v); ok && a.admitsCached(u) {
		return true
	}
	return !a.surplusOnly && a.admitsCached(a.evictable.remainingGang(v.Job).unit)
}

// fitsWithout reports whether the request fits the available resources without what v holds of them.
func fitsWithout(request, available api.Resource, v *api.TaskInfo) bool {
	for d, n := range request {
		if n > 0 && n > available.At(d)-v.Request.At(d) {
			return false
		}
	}
	return true
}

// affectedByPods reports whether pods of a node can conflict with t although the resources suffice.
func (a *attempt) affectedByPods(t *api.TaskInfo) bool {
	return len(t.Signature.Ports) > 0 || a.ssn.Cluster().ClassOf(t).AffectedByPods()
}

// addSurplus adds surplus pods to the victim set until it is sufficient.
func (a *attempt) addSurplus(list []*api.TaskInfo, victimQueue *api.QueueInfo) {
	s := &a.set
	for _, v := range list {
		if s.sufficient() {
			return
		}
		if s.reducesShortfall(v) && a.isCandidate(v.Job, victimQueue) {
			if u, ok := s.surplusUnit(v); ok && !a.rejected[keyOf(u)] && a.admitsCached(u) {
				s.add(u, u.HeldOn(s.node))
			}
		}
	}
}

// addGangs adds remaining gangs to the victim set until it is sufficient. The unit of a gang replaces its surplus pods.
func (a *attempt) addGangs(list []*api.TaskInfo, victimQueue *api.QueueInfo) {
	s := &a.set
	for _, v := range list {
		if s.sufficient() || a.surplusOnly {
			return
		}
		if s.reducesShortfall(v) && !s.hasGang(v.Job) && a.isCandidate(v.Job, victimQueue) && !a.rejectedGang[v.Job] {
			if g := a.evictable.remainingGang(v.Job); a.admitsCached(g.unit) {
				s.add(g.unit, g.heldOn(s.node))
			}
		}
	}
}

// isCandidate reports whether pods of a job may be evicted in this search.
func (a *attempt) isCandidate(j *api.JobInfo, victimQueue *api.QueueInfo) bool {
	return (victimQueue == nil || j.Queue == victimQueue) && j.Priority <= a.maxPriority && isVictimJob(j) && a.rules.IsCandidate(j)
}

func (a *attempt) inDomain(n *api.NodeInfo) bool { return a.domain.Contains(n) }

// admitsCached returns the vote on a unit while nothing is evicted: a unit that is rejected then is rejected in any plan.
// Later votes can differ, so admitsCached admits the unit, and evict asks for the vote.
func (a *attempt) admitsCached(u api.Unit) bool {
	if len(a.evicted) > 0 {
		return true
	}
	return a.cache.admits(u, a.admits)
}
