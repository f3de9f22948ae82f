// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// nodesFor returns the nodes where tasks like this one could run if they were empty.
func (p *Plan) nodesFor(t *api.TaskInfo) []int {
	nodes, known := p.Readings.feasible[t.Signature]
	if !known {
		p.EachFeasible(t, func(i int) { nodes = append(nodes, i) })
		p.Readings.setFeasible(t.Signature, nodes)
	}
	return nodes
}

// readNodes reads these nodes again as far as they have changed.
func (p *Plan) readNodes(t *api.TaskInfo) {
	for _, i := range p.nodesFor(t) {
		p.available(i)
	}
}

// Suits reports whether a task could start on a node at a time if the node were empty.
func (p *Plan) Suits(t *api.TaskInfo, n *api.NodeInfo, at int64) bool {
	if n.Index < 0 || n.Index >= len(p.Nodes) || p.Nodes[n.Index] != n || n.Outlasts(t, at) {
		return false
	}
	_, suits := slices.BinarySearch(p.nodesFor(t), n.Index)
	return suits
}
