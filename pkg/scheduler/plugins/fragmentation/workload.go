// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"maps"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/fragmentation"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// workload is the set of types, and what is known of nodes with it.
type workload struct {
	cluster api.ClusterView
	device  int // dimension
	withCPU bool
	fixed   []fragmentation.Type // of the policy; none: those of the members of queues

	groups  []group                   // by key
	keyed   map[*api.Signature]string // nil before the groups were made
	members uint64                    // generation of the members that they were made of

	types   []fragmentation.Type
	keys    []string           // of the groups of the types; empty for fixed ones
	set     *fragmentation.Set // nil: there is no type
	version uint64             // of the types
	specs   uint64             // generation of the node objects that nodes have seen
	nodes   []nodeState        // by index

	devices [1]fragmentation.Devices // of the current node
	meter   meter
}

// nodeState is what is known of one node.
type nodeState struct {
	admits     fragmentation.Mask
	generation uint64 // of the node with this F; none is 0
	lost       int64  // F
}

// group are the signatures of members that are one type: they request the same and may run on the same nodes.
type group struct {
	key        string
	signatures []*api.Signature // in the order of their creation
}

func newWorkload(a *Arguments, cluster api.ClusterView) *workload {
	w := &workload{cluster: cluster, device: cluster.Dims().Index(a.Resource), withCPU: a.WithCPU}
	for _, t := range a.Types {
		request := cluster.Dims().Vector(t.Request)
		w.fixed = append(w.fixed, fragmentation.Type{Request: request, Share: fragmentation.Whole, Weight: t.Weight})
	}
	return w
}

// update brings types and nodes up to date with the model.
func (w *workload) update(index *nodeindex.Index) {
	types, keys := w.fixed, []string(nil)
	if len(w.fixed) == 0 {
		types, keys = w.ofMembers()
	}
	same := slices.EqualFunc(types, w.types, func(a, b fragmentation.Type) bool { return a.Weight == b.Weight }) && slices.Equal(keys, w.keys)
	specs := w.cluster.Generations().NodeSpecs
	if same && specs == w.specs && len(w.nodes) > 0 {
		return
	}
	if w.types, w.keys, w.specs = types, keys, specs; !same {
		w.set = nil
		w.version++
		if len(types) > 0 {
			w.set = fragmentation.NewSet(w.device, types)
		}
	}
	w.nodes = append(w.nodes[:0], make([]nodeState, len(w.cluster.Nodes()))...)
	if len(w.fixed) > 0 {
		for i := range w.nodes {
			w.nodes[i].admits = fragmentation.All
		}
		return
	}
	for i := range types {
		index.Feasible(w.groups[types[i].Key].signatures[0]).Each(func(n int) { w.nodes[n].admits |= 1 << i })
	}
}

// maxDevices is how many devices of a node are counted, so that products stay in 64 bits.
const maxDevices = 1 << 16

// idle returns how many devices of a node are idle when some have been taken.
func (w *workload) idle(n *api.NodeInfo, taken int64) int64 {
	return min(max(n.Idle.At(w.device)-taken, 0), maxDevices)
}

// lost returns F of a node. It does not allocate.
func (w *workload) lost(n *api.NodeInfo) int64 {
	known := &w.nodes[n.Index]
	if known.generation != n.Generation {
		known.lost, known.generation = w.lostWithout(n, nil), n.Generation
	}
	return known.lost
}

// lostWithout returns F of a node if a request is taken of what is idle.
func (w *workload) lostWithout(n *api.NodeInfo, taken api.Resource) int64 {
	w.devices[0] = fragmentation.Devices{Free: fragmentation.Whole, Count: w.idle(n, taken.At(w.device))}
	return w.set.Lost(&fragmentation.Node{Idle: n.Idle, Taken: taken, Devices: w.devices[:], Admits: w.nodes[n.Index].admits})
}

// ofMembers returns the types of the members of queues, and their keys.
func (w *workload) ofMembers() (types []fragmentation.Type, keys []string) {
	if members := w.cluster.Generations().Members; w.keyed == nil || members != w.members {
		w.members = members
		w.group()
	}
	for i := range w.groups {
		t := fragmentation.Type{Request: w.groups[i].signatures[0].Request, Share: fragmentation.Whole, Key: i}
		for _, s := range w.groups[i].signatures {
			t.Weight += int64(s.Tracking.Members)
		}
		types = append(types, t)
	}
	types = fragmentation.Popular(types)
	for i := range types {
		keys = append(keys, w.groups[types[i].Key].key)
	}
	return types, keys
}

// group groups the signatures of the members of queues.
func (w *workload) group() {
	groups, keyed := map[string]*group{}, map[*api.Signature]string{}
	for _, s := range w.cluster.MemberSignatures() {
		if s.Request.At(w.device) == 0 && !w.withCPU {
			continue
		}
		key, known := w.keyed[s]
		if !known {
			key = fragmentation.TypeKey(s)
		}
		keyed[s] = key
		if groups[key] == nil {
			groups[key] = &group{key: key}
		}
		groups[key].signatures = append(groups[key].signatures, s)
	}
	w.groups, w.keyed = w.groups[:0], keyed
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		w.groups = append(w.groups, *groups[key])
	}
}
