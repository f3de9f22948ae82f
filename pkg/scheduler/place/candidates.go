package place

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/tournament"
)

// measure tells what a node that passes the filters is worth for a task, and whether it can take
// it at all.
type measure[V any] func(*api.TaskInfo, *api.NodeInfo) (worth V, ok bool)

// candidates are the nodes that can take tasks of one class, by worth. They are true as of a
// position in the model's journal; best judges again the nodes that were touched since.
type candidates[V any] struct {
	ssn      *framework.Session
	passing  *framework.NodeSet
	measure  measure[V]
	among    among
	seen     *seen
	position uint64
	nodes    *tournament.Tree[V]
}

// among returns a set of nodes outside of which no node can take the task; nil: any could.
type among func(*api.TaskInfo) *framework.NodeSet

func newCandidates[V any](ssn *framework.Session, seen *seen, t *api.TaskInfo, measure measure[V], compare func(a, b V) int, among among) *candidates[V] {
	c := &candidates[V]{
		ssn: ssn, passing: ssn.FeasibleNodes(t.Signature), measure: measure, among: among, seen: seen,
		nodes: tournament.New(ssn.Cluster().Nodes(), compare),
	}
	c.rebuild(t)
	return c
}

// best returns the best node for t, a task of the class, or nil.
func (c *candidates[V]) best(t *api.TaskInfo) *api.NodeInfo {
	c.catchUp(t)
	n, _ := c.nodes.Best()
	return n
}

// catchUp judges the nodes again that were touched; all of them when there is more to read in the journal.
func (c *candidates[V]) catchUp(t *api.TaskInfo) {
	journal := c.ssn.Cluster().NodeChanges()
	touched, ok := journal.Since(c.position)
	if !ok || len(touched) > len(c.ssn.Cluster().Nodes()) {
		c.rebuild(t)
		return
	}
	c.seen.begin()
	for _, i := range touched {
		if c.seen.first(int(i)) {
			c.judge(t, int(i))
		}
	}
	c.position = journal.Position()
}

func (c *candidates[V]) rebuild(t *api.TaskInfo) {
	nodes, possible := c.ssn.Cluster().Nodes(), c.among(t)
	if possible == nil {
		possible = c.passing
	}
	c.nodes.Fill(func(add func(*api.NodeInfo, V)) {
		possible.Each(func(i int) {
			if !c.passing.Has(i) {
				return
			}
			if worth, ok := c.measure(t, nodes[i]); ok {
				add(nodes[i], worth)
			}
		})
	})
	c.position = c.ssn.Cluster().NodeChanges().Position()
}

// judge puts the node with that index where it belongs now.
func (c *candidates[V]) judge(t *api.TaskInfo, index int) {
	if !c.passing.Has(index) {
		return
	}
	n := c.ssn.Cluster().Nodes()[index]
	if worth, ok := c.measure(t, n); ok {
		c.nodes.Set(n, worth)
	} else {
		c.nodes.Remove(n)
	}
}

// seen tells which nodes come up for the first time in a round. All candidates of a session share one, so
// that it stays at hand.
type seen struct {
	round  uint32
	rounds []uint32 // by node index: in which a node came up last
}

func (s *seen) begin() { s.round++ }

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
