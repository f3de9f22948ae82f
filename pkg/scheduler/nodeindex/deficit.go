// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"

// nearest is the node with the smallest deficit for a kind of task; of several the first by name. It follows
// the changes of nodes one by one.
//
// A node that changes can become the nearest at once. If the nearest node itself disappears or its deficit
// grows, then any other node may be the nearest, and the next question compares the deficits of all nodes. For
// example, the deficits of the nodes a, b and c are 500, 250 and 750: the nearest is b. If c changes to 200, it becomes the
// nearest without a look at a and b. If c then changes to 900, all three are compared, and b is the nearest
// again.
type nearest struct {
	node      *api.NodeInfo // nil if there is none
	index     int           // of node when it was added; another node may have it by now
	deficit   int64
	unknown   bool    // compare all nodes
	deficits  []int32 // by node index
	shortfall *api.NearestNode
}

// noDeficit is the deficit of nodes that cannot be the nearest: the task fits there, the node has none of a
// resource that the task requests, or something else than resources keeps the task from running there.
const noDeficit int64 = 0

// set records the deficit of a node that is new or has changed.
func (m *nearest) set(n *api.NodeInfo, deficit int64) {
	for n.Index >= len(m.deficits) {
		m.deficits = append(m.deficits, int32(noDeficit))
	}
	m.deficits[n.Index] = int32(deficit)
	m.add(n, deficit)
}

// add compares a node with the nearest one.
func (m *nearest) add(n *api.NodeInfo, deficit int64) {
	switch {
	case m.unknown:
	case m.node != nil && n.Index == m.index && (n != m.node || deficit == noDeficit || deficit > m.deficit):
		m.unknown = true
	case deficit != noDeficit && (m.node == nil || deficit < m.deficit || deficit == m.deficit && n.Rank <= m.node.Rank):
		// The shortfall may differ where the deficit does not.
		m.node, m.index, m.deficit, m.shortfall = n, n.Index, deficit, nil
	}
}

// remove records that no node has that index any more.
func (m *nearest) remove(index int) {
	m.unknown = m.unknown || m.node != nil && m.index == index
	if index < len(m.deficits) {
		m.deficits[index] = int32(noDeficit)
	}
}

// compareAll finds the nearest node among all.
func (m *nearest) compareAll(nodes []*api.NodeInfo) {
	*m = nearest{deficits: m.deficits}
	for i, deficit := range m.deficits {
		if int64(deficit) != noDeficit {
			m.add(nodes[i], int64(deficit))
		}
	}
}

// deficit returns the deficit of a node whose resources are insufficient for the task, and noDeficit for any other.
func (v *nodeVerdicts) deficit(verdict int16, t *api.TaskInfo, n *api.NodeInfo) int64 {
	if verdict < 0 {
		return noDeficit
	}
	switch v.refusals[verdict].unfit.Reason {
	case api.Insufficient, api.InsufficientWithForeignPods:
		return n.Deficit(t)
	}
	return noDeficit
}

// nearestNode returns the nearest node with its shortfall, or nil.
func (v *nodeVerdicts) nearestNode(nodes []*api.NodeInfo, t *api.TaskInfo) *api.NearestNode {
	if v.nearest.unknown {
		v.nearest.compareAll(nodes)
	}
	m := &v.nearest
	if m.node != nil && m.shortfall == nil {
		m.shortfall = &api.NearestNode{Node: m.node.Name, Shortfall: m.node.Shortfall(t)}
	}
	return m.shortfall
}
