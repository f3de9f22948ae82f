// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// netChanges is a journal of the nodes that are not as they were when it was read the last time. Reservations end with their
// session, and most are made again by the next one: a node whose reservations are again as before has not changed, but
// NodeChanges has it twice.
//
// For example, 512 nodes are reserved for a gang in each session, and a pod ends on one of them. NodeChanges has 1,025 entries
// more when the next session has made its reservations, and this journal has one.
type netChanges struct {
	cluster Cluster
	reader  api.JournalReader // of NodeChanges
	seen    []seenNode        // by node index
	journal api.Journal
}

// seenNode is how a node was.
type seenNode struct {
	node        *api.NodeInfo
	generation  uint64 // NodeInfo.OwnGeneration
	reserved    api.Resource
	reservedFor []*api.JobInfo
}

// read returns the journal, up to date.
func (x *netChanges) read() *api.Journal {
	if x.reader.UpToDate(x.cluster.NodeChanges()) {
		return &x.journal
	}
	nodes := x.cluster.Nodes()
	if more := len(nodes) - len(x.seen); more > 0 {
		x.seen = append(x.seen, make([]seenNode, more)...)
	}
	changed, known := x.reader.CatchUp(x.cluster.NodeChanges(), len(nodes))
	for _, i := range changed {
		x.look(int(i), nodes[i])
	}
	if !known {
		for i, n := range nodes {
			x.look(i, n)
		}
	}
	return &x.journal
}

// look notes a node if it is not as it was.
func (x *netChanges) look(index int, n *api.NodeInfo) {
	before := &x.seen[index]
	switch {
	case n == nil && before.node == nil:
		return
	case n == nil:
		*before = seenNode{}
	case n == before.node && n.OwnGeneration == before.generation && n.Reserved.Equal(before.reserved) && slices.Equal(n.ReservedFor, before.reservedFor):
		return
	default:
		before.node, before.generation = n, n.OwnGeneration
		before.reserved = append(before.reserved[:0], n.Reserved...)
		clear(before.reservedFor)
		before.reservedFor = append(before.reservedFor[:0], n.ReservedFor...)
	}
	x.journal.Add(index)
}
