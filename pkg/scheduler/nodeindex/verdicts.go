// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// verdictIndex knows for each kind of task which nodes it could start on now and why not on the others.
//
// Each node has one verdict for a kind of task: the task fits now, or a refusal. The index keeps the verdicts and
// how many nodes have each of them, and examines a node again when it changes. So explaining for the second
// time why a job waits costs as much as what has changed, and not the size of the cluster. For example, 5,000
// nodes are full: 4,000 have insufficient cpu, 1,000 have insufficient memory. A pod ends on one node and
// the task still does not fit there: one node is examined, and the counts stay. Another pod ends and the task
// fits: one node moves from 4,000 (now 3,999) to the available ones (now 1).
//
// That works for tasks for which a node's verdict depends on that node alone. If pods on other nodes or objects
// outside of the model matter, all nodes are examined for each call.
type verdictIndex struct {
	feasible *feasibleIndex
	domains  *domainIndex
	known    map[verdictKey]*nodeVerdicts
	unfits   unfitCache
	changes  netChanges
}

// verdictKey is what makes tasks equal in their verdicts, if these depend on single nodes alone.
type verdictKey struct {
	signature *api.Signature
	priority  int32
	limit     time.Duration // see EquivalenceClass.Limit
	level     *api.TopologyLevel
	inner     *api.TopologyLevel // of the smallest subgroup that requires one; nodes in its domains are in those of others too
}

// keyOf returns the key of a task, and whether its verdicts depend on single nodes alone. Those of a gang, or a subgroup, that
// must be in one domain do, as long as no member has a node: a predicate then asks only whether a node is in some domain.
func (x *verdictIndex) keyOf(t *api.TaskInfo) (verdictKey, bool) {
	class := x.feasible.cluster.ClassOf(t)
	key, local := verdictKey{t.Signature, t.Priority, class.Limit, class.Level, nil}, class.NodeLocalInDomain()
	switch s := class.SubGroup; {
	case s != nil:
		key.inner = s.TopologyLevel
		local = local && t.Job.ReadyCount() == 0 && t.Job.Count(api.Pipelined) == 0
	case class.Level != nil:
		local = local && x.domains.get(class.Level).OfJob(t.Job) == nil
	}
	return key, local
}

// nodeVerdicts are the verdicts for one kind of task.
type nodeVerdicts struct {
	reader    api.JournalReader // of netChanges
	available NodeSet
	verdicts  []int16 // by node index
	refusals  []refusal
	total     int // nodes
	nearest   nearest
	specs     uint64 // generation of the node objects
	used      bool   // in this session

	counts  api.NodeCounts
	changed bool // since counts were made
}

// refusal is a reason with the number of nodes that it holds for.
type refusal struct {
	unfit *api.Unfit
	nodes int
}

// Verdicts that are not refusals; the others are indexes of nodeVerdicts.refusals.
const (
	noNode    int16 = -2
	fitsThere int16 = -1
)

func (x *verdictIndex) count(t *api.TaskInfo, nearest bool) api.NodeCounts {
	key, local := x.keyOf(t)
	if !local {
		var fresh nodeVerdicts
		fresh.update(x, t)
		return fresh.result(x, t, nearest)
	}
	v := x.known[key]
	if v == nil {
		v = &nodeVerdicts{}
		x.known[key] = v
	}
	v.update(x, t)
	return v.result(x, t, nearest)
}

func (x *verdictIndex) knownAvailable(t *api.TaskInfo) *NodeSet {
	key, local := x.keyOf(t)
	v := x.known[key]
	if v == nil || !local {
		return nil
	}
	v.update(x, t)
	return &v.available
}

func (x *verdictIndex) keep(t *api.TaskInfo) {
	key, _ := x.keyOf(t)
	if v := x.known[key]; v != nil {
		v.used = true
	}
}

// dropUnused drops what no call has used since the last dropUnused: the verdicts for a job that waits in vain are
// used in each session.
func (x *verdictIndex) dropUnused() {
	for key, v := range x.known {
		if !v.used || key.signature.Unreferenced() {
			delete(x.known, key)
		}
		v.used = false
	}
	x.unfits.selectors.Clear()
	clear(x.unfits.reserved)
}

// unfit returns why the task cannot start now on an existing node, or nil.
func (x *verdictIndex) unfit(t *api.TaskInfo, n *api.NodeInfo, feasible *NodeSet) *api.Unfit {
	if !feasible.Has(n.Index) {
		unfit := x.feasible.filters.Filter(t.Signature, n)
		if unfit != nil && unfit.Reason == api.NodeSelector {
			unfit = x.unfits.selectors.To(unfit.Plugin, t.Signature.UnmetSelector(n.Node))
		}
		return unfit
	}
	if dimension := n.InsufficientDimension(t, api.Now); dimension >= 0 {
		missing := n.MissingDimension(t.Request)
		switch {
		case missing >= 0:
			return x.unfits.without(x.feasible.dims, missing)
		case !n.Reserved.IsZero() && t.Request.Fits(n.Idle):
			return x.unfits.reservedFor(n.ReservedFor.First(t.Pod.Namespace))
		case n.FitsWithoutForeignPods(t):
			return x.unfits.insufficientWithForeignPods(x.feasible.dims, dimension)
		}
		return x.unfits.insufficient(x.feasible.dims, dimension)
	}
	return x.feasible.filters.Predicate(t, n, api.Now)
}

// update examines the nodes that have changed.
func (v *nodeVerdicts) update(x *verdictIndex, t *api.TaskInfo) {
	v.used = true
	journal := x.changes.read()
	if v.reader.UpToDate(journal) {
		return
	}
	nodes, feasible := x.feasible.cluster.Nodes(), x.feasible.nodes(t.Signature)
	changed, known := v.reader.CatchUp(journal, len(nodes))
	specs := x.feasible.cluster.Generations().NodeSpecs
	unchanged := v.specs == specs
	v.specs = specs
	for _, i := range changed {
		if unchanged && !feasible.Has(int(i)) {
			continue // a filter refuses the node, and reads the node object alone
		}
		v.examine(x, t, int(i), nodes[i], feasible)
	}
	if !known {
		v.nearest = nearest{}
		for i, n := range nodes {
			v.examine(x, t, i, n, feasible)
		}
	}
}

// examine finds the verdict for the node with that index; nil if there is none.
func (v *nodeVerdicts) examine(x *verdictIndex, t *api.TaskInfo, index int, n *api.NodeInfo, feasible *NodeSet) {
	if n == nil {
		v.set(index, noNode)
		v.nearest.remove(index)
		return
	}
	verdict := fitsThere
	if unfit := x.unfit(t, n, feasible); unfit != nil {
		verdict = v.refusal(unfit)
	}
	v.set(index, verdict)
	v.nearest.set(n, v.deficit(verdict, t, n))
}

// set records the verdict for the node with that index.
func (v *nodeVerdicts) set(index int, verdict int16) {
	for index >= len(v.verdicts) {
		v.verdicts = append(v.verdicts, noNode)
	}
	before := v.verdicts[index]
	if before == verdict {
		return
	}
	v.verdicts[index], v.changed = verdict, true
	v.add(before, -1)
	v.add(verdict, +1)
	v.available.set(index, verdict == fitsThere)
}

func (v *nodeVerdicts) add(verdict int16, nodes int) {
	if verdict != noNode {
		v.total += nodes
	}
	if verdict >= 0 {
		v.refusals[verdict].nodes += nodes
	}
}

// refusal returns the verdict for a reason. There are only few different ones at a time. Reasons that no node has any more
// are replaced: taints, for example, may have a timestamp as value.
func (v *nodeVerdicts) refusal(unfit *api.Unfit) int16 {
	unused := -1
	for i := range v.refusals {
		if known := v.refusals[i].unfit; known == unfit || *known == *unfit {
			return int16(i)
		}
		if v.refusals[i].nodes == 0 {
			unused = i
		}
	}
	if unused >= 0 {
		v.refusals[unused].unfit = unfit
		return int16(unused)
	}
	v.refusals = append(v.refusals, refusal{unfit: unfit})
	return int16(len(v.refusals) - 1)
}

func (v *nodeVerdicts) result(x *verdictIndex, t *api.TaskInfo, nearest bool) api.NodeCounts {
	if v.changed {
		v.sum()
	}
	v.counts.Nearest = nil
	if nearest && v.counts.Available == 0 {
		v.counts.Nearest = v.nearestNode(x.feasible.cluster.Nodes(), t)
	}
	return v.counts
}

func (v *nodeVerdicts) sum() {
	v.counts, v.changed = api.NodeCounts{Total: v.total, Available: v.total}, false
	for _, r := range v.refusals {
		if r.nodes > 0 {
			v.counts.Unfit = append(v.counts.Unfit, api.UnfitCount{Unfit: *r.unfit, Count: r.nodes})
			v.counts.Available -= r.nodes
		}
	}
	v.counts.Sort()
}

// unfitCache has one reason for each dimension, so that a verdict does not allocate.
type unfitCache struct {
	resources, withForeignPods, withoutResource []*api.Unfit // by dimension
	selectors                                   api.Attributed
	reserved                                    map[string]*api.Unfit // by job
}

func (c *unfitCache) insufficient(dims *api.Dimensions, dimension int) *api.Unfit {
	return cached(&c.resources, api.Insufficient, dims, dimension)
}

func (c *unfitCache) insufficientWithForeignPods(dims *api.Dimensions, dimension int) *api.Unfit {
	return cached(&c.withForeignPods, api.InsufficientWithForeignPods, dims, dimension)
}

func (c *unfitCache) without(dims *api.Dimensions, dimension int) *api.Unfit {
	return cached(&c.withoutResource, api.WithoutResource, dims, dimension)
}

func cached(known *[]*api.Unfit, reason api.UnfitReason, dims *api.Dimensions, dimension int) *api.Unfit {
	for dimension >= len(*known) {
		*known = append(*known, nil)
	}
	if (*known)[dimension] == nil {
		(*known)[dimension] = &api.Unfit{Reason: reason, Detail: string(dims.Name(dimension)), Plugin: api.RefusedByResources}
	}
	return (*known)[dimension]
}

// reservedFor returns the reason of nodes whose idle resources suffice and are reserved for a job; empty if it is one of
// another namespace.
func (c *unfitCache) reservedFor(job string) *api.Unfit {
	if c.reserved[job] == nil {
		if c.reserved == nil {
			c.reserved = map[string]*api.Unfit{}
		}
		c.reserved[job] = &api.Unfit{Reason: api.Reserved, Detail: job, Plugin: api.RefusedByReservation}
	}
	return c.reserved[job]
}
