// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// releasingIndex is the set of nodes where resources are being released.
type releasingIndex struct {
	cluster Cluster
	set     NodeSet
	reader  api.JournalReader // of NodeChanges
}

func (x *releasingIndex) nodes() *NodeSet {
	nodes := x.cluster.Nodes()
	changed, known := x.reader.CatchUp(x.cluster.NodeChanges(), len(nodes))
	for _, i := range changed {
		x.updateNode(int(i), nodes[i])
	}
	if !known {
		for i, n := range nodes {
			x.updateNode(i, n)
		}
	}
	return &x.set
}

func (x *releasingIndex) updateNode(index int, n *api.NodeInfo) {
	x.set.set(index, n != nil && n.HasReleasing())
}
