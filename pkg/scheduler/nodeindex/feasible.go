// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// feasibleIndex knows the feasible nodes of each signature.
//
// The answer of a filter depends on the signature and the node object alone, so it stays valid until the node
// object changes. For example, of 5,000 nodes the 200 with a GPU pass for a signature; one node is added and
// another one gets a label: the next call asks the filters about these two nodes.
type feasibleIndex struct {
	source
	known map[*api.Signature]*feasibleNodes
}

// feasibleNodes are the feasible nodes of one signature.
type feasibleNodes struct {
	set      NodeSet
	reader   api.JournalReader // of NodeSpecChanges
	capacity capacityCount
	empty    capacityCount
}

func (x *feasibleIndex) nodes(signature *api.Signature) *NodeSet { return &x.of(signature).set }

func (x *feasibleIndex) of(signature *api.Signature) *feasibleNodes {
	f := x.known[signature]
	if f == nil {
		f = &feasibleNodes{}
		x.known[signature] = f
	}
	if journal := x.cluster.NodeSpecChanges(); !f.reader.UpToDate(journal) {
		f.update(x, journal, signature)
	}
	return f
}

func (f *feasibleNodes) update(x *feasibleIndex, journal *api.Journal, signature *api.Signature) {
	f.capacity.known, f.empty.known = false, false
	nodes := x.cluster.Nodes()
	changed, known := f.reader.CatchUp(journal, len(nodes))
	if !known {
		f.updateAll(x.filters, signature, nodes)
		return
	}
	for _, i := range changed {
		n := nodes[i] // nil if there is none any more
		f.set.set(int(i), n != nil && x.filters.Feasible(signature, n))
	}
}

// updateAll filters all nodes: many times if each job has a signature of its own.
func (f *feasibleNodes) updateAll(filters Filters, signature *api.Signature, nodes []*api.NodeInfo) {
	f.set.clear(len(nodes))
	for i, n := range nodes {
		if n != nil && filters.Feasible(signature, n) {
			f.set.add(i)
		}
	}
}

// dropUnreferenced drops the signatures that no task has any more.
func (x *feasibleIndex) dropUnreferenced() {
	for signature := range x.known {
		if signature.Unreferenced() {
			delete(x.known, signature)
		}
	}
}

// acceptsPods reports whether new pods may be bound to the node at all.
func acceptsPods(n *api.NodeInfo) bool { return n.Ready() && !n.Node.Spec.Unschedulable }
