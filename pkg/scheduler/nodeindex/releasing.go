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
	update := func(i int) { x.set.set(i, nodes[i] != nil && nodes[i].HasReleasing()) }
	x.reader.CatchUp(x.cluster.NodeChanges(), len(nodes), func() {
		for i := range nodes {
			update(i)
		}
	}, update)
	return &x.set
}
