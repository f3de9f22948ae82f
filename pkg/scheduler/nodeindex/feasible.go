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
//
// Signatures that are alike share their nodes. A cluster may run tens of thousands of pods with claims, each with a
// signature of its own, which are made from a few templates.
type feasibleIndex struct {
	source
	known map[*api.Signature]*feasibleNodes
	kept  int // how many were known when the unreferenced ones were dropped last
	kinds map[*api.SignatureKind]*feasibleSet
}

// feasibleNodes are the feasible nodes of one signature.
type feasibleNodes struct {
	*feasibleSet
	counted  uint64 // version of the nodes that the counts are for
	capacity capacityCount
	empty    capacityCount
}

// feasibleSet is the set of feasible nodes of signatures that are alike.
type feasibleSet struct {
	set     NodeSet
	reader  api.JournalReader // of NodeSpecChanges
	version uint64            // counts changes of node objects that the set is updated for
}

func (x *feasibleIndex) nodes(signature *api.Signature) *NodeSet { return &x.of(signature).set }

func (x *feasibleIndex) of(signature *api.Signature) *feasibleNodes {
	f := x.known[signature]
	if f == nil {
		f = &feasibleNodes{feasibleSet: x.kind(signature)}
		x.known[signature] = f
	}
	x.update(f.feasibleSet, signature)
	if f.counted != f.version {
		f.counted = f.version
		f.capacity.known, f.empty.known = false, false
	}
	return f
}

// ofKind returns the nodes of signatures that are alike, one of which is given. It keeps nothing for the signature.
func (x *feasibleIndex) ofKind(signature *api.Signature) *NodeSet {
	f := x.kind(signature)
	x.update(f, signature)
	return &f.set
}

func (x *feasibleIndex) kind(signature *api.Signature) *feasibleSet {
	kind := signature.Tracking.Kind
	f := x.kinds[kind]
	if f == nil {
		f = &feasibleSet{}
		x.kinds[kind] = f
	}
	return f
}

func (x *feasibleIndex) update(f *feasibleSet, signature *api.Signature) {
	journal := x.cluster.NodeSpecChanges()
	if f.reader.UpToDate(journal) {
		return
	}
	f.version++
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
func (f *feasibleSet) updateAll(filters Filters, signature *api.Signature, nodes []*api.NodeInfo) {
	f.set.clear(len(nodes))
	for i, n := range nodes {
		if n != nil && filters.Feasible(signature, n) {
			f.set.add(i)
		}
	}
}

// dropUnreferenced drops the signatures that no task has any more, if many have been added since the last time.
func (x *feasibleIndex) dropUnreferenced() {
	const few = 100
	if len(x.known) < 2*x.kept+few && len(x.kinds) < 2*x.kept+few {
		return
	}
	for signature := range x.known {
		if signature.Unreferenced() {
			delete(x.known, signature)
		}
	}
	for kind := range x.kinds {
		if kind.Signatures == 0 {
			delete(x.kinds, kind)
		}
	}
	x.kept = max(len(x.known), len(x.kinds))
}

// acceptsPods reports whether new pods may be bound to the node at all.
func acceptsPods(n *api.NodeInfo) bool { return n.Ready() && !n.Node.Spec.Unschedulable }
