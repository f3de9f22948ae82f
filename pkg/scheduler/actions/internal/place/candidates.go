package place

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// candidates are the nodes that have idle room for tasks of one class, as a binary heap with
// the best node first. Its entries are true as of a position in the model's journal; best
// judges again the nodes that were touched since.
type candidates struct {
	ssn      *framework.Session
	passing  *framework.NodeSet
	position uint64

	heap []candidate
	// at is where in the heap a node is, by node index; -1 if it is not.
	at []int32
}

type candidate struct {
	score api.Score
	node  *api.NodeInfo
}

func newCandidates(ssn *framework.Session, t *api.TaskInfo) *candidates {
	c := &candidates{ssn: ssn, passing: ssn.Passing(t.Shape)}
	c.rebuild(t)
	return c
}

// best returns the best node for t, a task of the class, or nil.
func (c *candidates) best(t *api.TaskInfo) *api.NodeInfo {
	c.catchUp(t)
	if len(c.heap) == 0 {
		return nil
	}
	return c.heap[0].node
}

func (c *candidates) catchUp(t *api.TaskInfo) {
	journal := c.ssn.Cluster().Touched()
	touched, ok := journal.Since(c.position)
	if !ok || len(touched) > len(c.at) {
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
	c.heap = c.heap[:0]
	c.at = make([]int32, len(nodes))
	for i := range c.at {
		c.at[i] = -1
	}
	c.passing.Each(func(i int) {
		if c.fits(t, nodes[i]) {
			c.at[i] = int32(len(c.heap))
			c.heap = append(c.heap, candidate{c.ssn.NodeScore(t, nodes[i]), nodes[i]})
		}
	})
	for i := len(c.heap)/2 - 1; i >= 0; i-- {
		c.down(i)
	}
	c.position = c.ssn.Cluster().Touched().Position()
}

func (c *candidates) fits(t *api.TaskInfo, n *api.NodeInfo) bool {
	return n.Fits(t, api.Now) && c.ssn.Predicate(t, n, api.Now) == nil
}

// judge puts the node with that index where it belongs now.
func (c *candidates) judge(t *api.TaskInfo, index int) {
	if !c.passing.Has(index) {
		return
	}
	n := c.ssn.Cluster().Nodes()[index]
	at := int(c.at[index])
	switch fits := c.fits(t, n); {
	case fits && at < 0:
		at = len(c.heap)
		c.heap = append(c.heap, candidate{c.ssn.NodeScore(t, n), n})
		c.at[index] = int32(at)
		c.up(at)
	case fits:
		c.heap[at].score = c.ssn.NodeScore(t, n)
		c.fix(at)
	case at >= 0:
		c.remove(at)
	}
}

func (c *candidates) remove(i int) {
	last := len(c.heap) - 1
	c.at[c.heap[i].node.Index] = -1
	if i != last {
		c.heap[i] = c.heap[last]
		c.at[c.heap[i].node.Index] = int32(i)
	}
	c.heap = c.heap[:last]
	if i != last {
		c.fix(i)
	}
}

func (c *candidates) fix(i int) {
	if !c.down(i) {
		c.up(i)
	}
}

func (c *candidates) less(i, j int) bool {
	return better(c.heap[i].score, c.heap[i].node, c.heap[j].score, c.heap[j].node)
}

func (c *candidates) swap(i, j int) {
	c.heap[i], c.heap[j] = c.heap[j], c.heap[i]
	c.at[c.heap[i].node.Index] = int32(i)
	c.at[c.heap[j].node.Index] = int32(j)
}

func (c *candidates) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !c.less(i, parent) {
			return
		}
		c.swap(i, parent)
		i = parent
	}
}

func (c *candidates) down(i int) (moved bool) {
	for {
		child := 2*i + 1
		if child >= len(c.heap) {
			return moved
		}
		if right := child + 1; right < len(c.heap) && c.less(right, child) {
			child = right
		}
		if !c.less(child, i) {
			return moved
		}
		c.swap(i, child)
		i, moved = child, true
	}
}
