// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// totalIndex sums what members of queues could hold, node by node; see Index.Total.
//
// For example, of three nodes with 8 cpu the first runs foreign pods with 2 cpu, the second is cordoned and
// runs a member with 3 cpu, and the third is tainted and no member tolerates the taint: the total is 6 + 3 + 0 =
// 9 cpu. Whether a node is feasible for some member depends on node objects and on the kinds of signatures that
// members have; if either changes, the set of usable nodes and all parts are computed again.
type totalIndex struct {
	feasible       *feasibleIndex
	reader         api.JournalReader // of NodeChanges
	usable         NodeSet           // feasible for some member
	specs, members uint64            // generations of usable: NodeSpecs and MemberKinds
	parts          []api.Resource    // by node index
	sum            api.Resource

	opened api.Resource // sum when the session opened
}

// update brings the total up to date when a session opens.
func (x *totalIndex) update() {
	c := x.feasible.cluster
	if now := c.Generations(); now.NodeSpecs != x.specs || now.MemberKinds != x.members {
		x.specs, x.members = now.NodeSpecs, now.MemberKinds
		x.reader.Invalidate()
	}
	nodes := c.Nodes()
	changed, known := x.reader.CatchUp(c.NodeChanges(), len(nodes))
	for _, i := range changed {
		x.updateNode(int(i), nodes[i])
	}
	x.feasible.dropUnreferenced()
	if !known {
		x.findUsable()
		for i, n := range nodes {
			x.updateNode(i, n)
		}
	}
	x.opened = x.sum.Clone()
}

func (x *totalIndex) findUsable() {
	x.usable = NodeSet{}
	seen := map[*api.SignatureKind]bool{}
	for _, signature := range x.feasible.cluster.MemberSignatures() {
		if kind := signature.Tracking.Kind; !seen[kind] {
			seen[kind] = true
			x.usable.union(x.feasible.ofKind(signature))
		}
	}
}

func (x *totalIndex) updateNode(index int, n *api.NodeInfo) {
	for index >= len(x.parts) {
		x.parts = append(x.parts, nil)
	}
	part := x.parts[index]
	x.sum.Sub(part)
	switch part = part[:0]; {
	case n == nil:
	case x.usable.Has(index) && acceptsPods(n):
		part = append(part, n.Allocatable...)
		part.Sub(n.Foreign)
		part.NotNegative()
	default:
		part = append(part, n.Members...)
	}
	x.sum.Add(part)
	x.parts[index] = part
}
