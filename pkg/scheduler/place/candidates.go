// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/tournament"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// measure returns the value by which nodes are compared for a task, and whether the task fits on the node at all.
type measure[V any] func(*api.TaskInfo, *api.NodeInfo) (value V, ok bool)

// candidates are the nodes where tasks of one class fit, by value. They follow the journal of node changes: best
// measures again the nodes that have changed.
type candidates[V any] struct {
	ssn     *framework.Session
	passing *nodeindex.NodeSet
	within  *nodeindex.NodeSet // nil: all nodes
	measure measure[V]
	among   among
	seen    *seen
	reader  api.JournalReader
	most    int // entries of the journal that are read; if there are more, all nodes are measured
	nodes   *tournament.Tree[V]
}

// among returns a set of nodes that contains all nodes where the task fits; nil is the set of all nodes.
type among func(*api.TaskInfo) *nodeindex.NodeSet

func newCandidates[V any](ssn *framework.Session, seen *seen, t *api.TaskInfo, measure measure[V], compare func(a, b V) int, among among) *candidates[V] {
	return &candidates[V]{
		ssn: ssn, passing: ssn.Nodes().Feasible(t.Signature), measure: measure, among: among, seen: seen,
		most: len(ssn.Cluster().Nodes()), nodes: tournament.New(ssn.Cluster().Nodes(), compare),
	}
}

// best returns the best node for t, a task of the class, or nil.
func (c *candidates[V]) best(t *api.TaskInfo) *api.NodeInfo {
	c.catchUp(t)
	n, _ := c.nodes.Best()
	return n
}

// catchUp measures the nodes again that have changed.
func (c *candidates[V]) catchUp(t *api.TaskInfo) {
	cluster := c.ssn.Cluster()
	nodes := cluster.Nodes()
	changed, known := c.reader.CatchUp(cluster.NodeChanges(), c.most)
	if !known {
		c.rebuild(t)
		return
	}
	c.seen.begin()
	for _, index := range changed {
		if c.seen.first(int(index)) {
			c.update(t, nodes, int(index))
		}
	}
}

func (c *candidates[V]) rebuild(t *api.TaskInfo) {
	nodes, possible := c.ssn.Cluster().Nodes(), c.among(t)
	if possible == nil {
		possible = c.passing
	}
	c.nodes.Fill(func(add func(*api.NodeInfo, V)) {
		possible.Each(func(i int) {
			if !c.isIn(i) {
				return
			}
			if value, ok := c.measure(t, nodes[i]); ok {
				add(nodes[i], value)
			}
		})
	})
}

// isIn reports whether the node with that index passes the filters, and is among those of the candidates.
func (c *candidates[V]) isIn(index int) bool {
	return c.passing.Has(index) && (c.within == nil || c.within.Has(index))
}

// update measures the node with that index again.
func (c *candidates[V]) update(t *api.TaskInfo, nodes []*api.NodeInfo, index int) {
	if !c.isIn(index) {
		return
	}
	n := nodes[index]
	if value, ok := c.measure(t, n); ok {
		c.nodes.Set(n, value)
	} else {
		c.nodes.Remove(n)
	}
}

// seen is the set of nodes that were measured in a round. All candidates of a session share one, so that it stays in
// the CPU's cache.
type seen struct {
	round  uint32
	rounds []uint32 // by node index: the last round in which the node was measured
}

func (s *seen) begin() { s.round++ }

// first reports whether the node with that index is visited for the first time in this round.
func (s *seen) first(index int) bool {
	for index >= len(s.rounds) {
		s.rounds = append(s.rounds, 0)
	}
	if s.rounds[index] == s.round {
		return false
	}
	s.rounds[index] = s.round
	return true
}
