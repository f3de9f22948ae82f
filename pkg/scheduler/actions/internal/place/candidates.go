package place

import (
	"cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/internal/nodeheap"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// candidates are the nodes that have room for tasks of one class, by score: idle room, or in the
// Future on nodes where some is being released. They are true as of a position in the model's
// journal; best judges again the nodes that were touched since.
type candidates struct {
	ssn      *framework.Session
	when     api.When
	passing  *framework.NodeSet
	position uint64
	nodes    *nodeheap.Heap[api.Score]
}

func newCandidates(ssn *framework.Session, t *api.TaskInfo, when api.When) *candidates {
	c := &candidates{ssn: ssn, when: when, passing: ssn.Passing(t.Shape), nodes: nodeheap.New(highest)}
	c.rebuild(t)
	return c
}

func highest(a, b api.Score) int { return cmp.Compare(b, a) }

// best returns the best node for t, a task of the class, or nil.
func (c *candidates) best(t *api.TaskInfo) *api.NodeInfo {
	c.catchUp(t)
	n, _ := c.nodes.Best()
	return n
}

func (c *candidates) catchUp(t *api.TaskInfo) {
	journal := c.ssn.Cluster().Touched()
	touched, ok := journal.Since(c.position)
	if !ok || len(touched) > len(c.ssn.Cluster().Nodes()) {
		c.rebuild(t)
		return
	}
	for _, i := range touched {
		c.judge(t, int(i))
	}
	c.position = journal.Position()
}

func (c *candidates) rebuild(t *api.TaskInfo) {
	nodes := c.ssn.Cluster().Nodes()
	c.nodes.Fill(func(add func(*api.NodeInfo, api.Score)) {
		c.passing.Each(func(i int) {
			if c.fits(t, nodes[i]) {
				add(nodes[i], c.ssn.NodeScore(t, nodes[i]))
			}
		})
	})
	c.position = c.ssn.Cluster().Touched().Position()
}

func (c *candidates) fits(t *api.TaskInfo, n *api.NodeInfo) bool {
	if c.when == api.Future && !n.HasFutureRoom() {
		return false
	}
	return n.Fits(t, c.when) && c.ssn.Predicate(t, n, c.when) == nil
}

// judge puts the node with that index where it belongs now.
func (c *candidates) judge(t *api.TaskInfo, index int) {
	if !c.passing.Has(index) {
		return
	}
	if n := c.ssn.Cluster().Nodes()[index]; c.fits(t, n) {
		c.nodes.Set(n, c.ssn.NodeScore(t, n))
	} else {
		c.nodes.Remove(n)
	}
}
