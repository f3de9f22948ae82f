package framework

import "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"

// noGap is the gap of nodes that would not do if they were empty, or have room.
const noGap int64 = 0

// nearest follows which node comes nearest to having room for a kind of task, while the nodes change one by
// one: of several the first by name. It looks at all nodes again only when the nearest one has moved away.
type nearest struct {
	node  *api.NodeInfo // nil if there is none
	index int           // that it had; another node may have it by now
	gap   int64
	lost  bool // look at all
	miss  *api.NearMiss
}

// look notes the gap of a node that was touched.
func (m *nearest) look(n *api.NodeInfo, gap int64) {
	switch {
	case m.lost:
	case m.node != nil && n.Index == m.index && (n != m.node || gap == noGap || gap > m.gap):
		m.lost = true
	case gap != noGap && (m.node == nil || gap < m.gap || gap == m.gap && n.Rank <= m.node.Rank):
		m.node, m.index, m.gap, m.miss = n, n.Index, gap, nil // what is missing may differ where the gap does not
	}
}

// gone notes that there is no node with that index any more.
func (m *nearest) gone(index int) {
	m.lost = m.lost || m.node != nil && m.index == index
}

// gap is that of a node whose answer is that it lacks room, and nothing else.
func (y *tally) gap(answer int16, t *api.TaskInfo, n *api.NodeInfo) int64 {
	if answer < 0 {
		return noGap
	}
	switch y.refusals[answer].unfit.Reason {
	case api.NoRoom, api.NoRoomBeside:
		return n.Gap(t)
	}
	return noGap
}

// nearMiss returns the node with the smallest gap.
func (y *tally) nearMiss(nodes []*api.NodeInfo, t *api.TaskInfo) *api.NearMiss {
	if y.near.lost {
		y.near = nearest{}
		for _, n := range nodes {
			if n != nil {
				y.near.look(n, y.gap(y.answers[n.Index], t, n))
			}
		}
	}
	if y.near.node != nil && y.near.miss == nil {
		y.near.miss = &api.NearMiss{Node: y.near.node.Name, Lacks: y.near.node.Lacks(t)}
	}
	return y.near.miss
}
