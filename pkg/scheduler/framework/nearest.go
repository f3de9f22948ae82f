package framework

import "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"

// noDeficit is the gap of nodes that would not do if they were empty, or have room.
const noDeficit int64 = 0

// nearest follows which node comes nearest to having room for a kind of task, while the nodes change one by
// one: of several the first by name. It looks at all nodes again only when the nearest one has moved away.
type nearest struct {
	node    *api.NodeInfo // nil if there is none
	index   int           // that it had; another node may have it by now
	deficit int64
	lost    bool // look at all
	miss    *api.NearestNode
}

// look notes the gap of a node that was touched.
func (m *nearest) look(n *api.NodeInfo, gap int64) {
	switch {
	case m.lost:
	case m.node != nil && n.Index == m.index && (n != m.node || gap == noDeficit || gap > m.deficit):
		m.lost = true
	case gap != noDeficit && (m.node == nil || gap < m.deficit || gap == m.deficit && n.Rank <= m.node.Rank):
		m.node, m.index, m.deficit, m.miss = n, n.Index, gap, nil // what is missing may differ where the gap does not
	}
}

// gone notes that there is no node with that index any more.
func (m *nearest) gone(index int) {
	m.lost = m.lost || m.node != nil && m.index == index
}

// deficit is that of a node whose answer is that it lacks room, and nothing else.
func (y *nodeVerdicts) deficit(answer int16, t *api.TaskInfo, n *api.NodeInfo) int64 {
	if answer < 0 {
		return noDeficit
	}
	switch y.refusals[answer].unfit.Reason {
	case api.Insufficient, api.InsufficientWithForeignPods:
		return n.Deficit(t)
	}
	return noDeficit
}

// nearestNode returns the node with the smallest gap.
func (y *nodeVerdicts) nearestNode(nodes []*api.NodeInfo, t *api.TaskInfo) *api.NearestNode {
	if y.nearest.lost {
		y.nearest = nearest{}
		for _, n := range nodes {
			if n != nil {
				y.nearest.look(n, y.deficit(y.answers[n.Index], t, n))
			}
		}
	}
	if y.nearest.node != nil && y.nearest.miss == nil {
		y.nearest.miss = &api.NearestNode{Node: y.nearest.node.Name, Shortfall: y.nearest.node.Shortfall(t)}
	}
	return y.nearest.miss
}
