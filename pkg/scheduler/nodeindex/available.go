// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// availableIndex sums what is idle or being released.
//
// The exact sum for a claim needs a walk over its feasible nodes. The question whether a claim is short of a
// dimension can mostly be answered without: in a full cluster all nodes together have less than the claim
// requests, and that sum is kept for the whole cluster; in an empty cluster the first few feasible nodes
// have enough. For example, a claim for 16 GPUs in a cluster of 1,000 nodes with 8 GPUs each: if 12 GPUs are
// available in all, the claim is short whatever nodes are feasible; if all are available, the walk ends at the
// second feasible node.
type availableIndex struct {
	feasible *feasibleIndex
	all      allAvailable
	last     lastAvailable
}

// lastAvailable is the last answer for claims of one signature.
type lastAvailable struct {
	signature *api.Signature
	position  uint64 // in NodeChanges
	sum       api.Resource
}

func (x *availableIndex) of(claim *api.Claim) api.Resource {
	if !ofOneSignature(claim) {
		return x.sum(claim)
	}
	signature, position := claim.Tasks[0].Signature, x.feasible.cluster.NodeChanges().Position()
	if x.last.signature != signature || x.last.position != position {
		x.last = lastAvailable{signature, position, x.sum(claim)}
	}
	return x.last.sum
}

// sum walks over the nodes that are feasible for some task of the claim.
func (x *availableIndex) sum(claim *api.Claim) api.Resource {
	var feasible NodeSet
	var last *api.Signature
	for _, t := range claim.Tasks {
		if t.Signature != last {
			last = t.Signature
			feasible.union(x.feasible.nodes(t.Signature))
		}
	}
	sum := make(api.Resource, x.feasible.dims.Len())
	nodes := x.feasible.cluster.Nodes()
	feasible.Each(func(i int) {
		for d := range sum {
			if claim.Request.At(d) != 0 {
				sum[d] += availableOn(nodes[i], d)
			}
		}
	})
	return sum
}

func (x *availableIndex) insufficient(claim *api.Claim, d int) bool {
	requested := claim.Request.At(d)
	if x.all.of(&x.feasible.source, d) < requested {
		return true
	}
	nodes, sum := x.feasible.cluster.Nodes(), int64(0)
	x.feasible.nodes(claim.Tasks[0].Signature).Until(func(i int) bool {
		sum += availableOn(nodes[i], d)
		return sum >= requested
	})
	if sum >= requested {
		return false
	}
	return ofOneSignature(claim) || x.of(claim).At(d) < requested
}

func ofOneSignature(claim *api.Claim) bool {
	return !slices.ContainsFunc(claim.Tasks, func(t *api.TaskInfo) bool { return t.Signature != claim.Tasks[0].Signature })
}

// availableOn returns what is idle or being released on a node in one dimension, less what pipelined tasks and
// reservations use of it.
func availableOn(n *api.NodeInfo, d int) int64 {
	free := n.Idle.At(d)
	if n.Ready() {
		free += n.Releasing.At(d)
	}
	return max(free-n.Pipelined.At(d)-n.Reserved.At(d), 0)
}

// allAvailable is the sum of what is idle or being released on all nodes, in each dimension.
type allAvailable struct {
	reader api.JournalReader // of NodeChanges
	dims   int
	parts  []int64 // by node index and dimension
	sum    []int64
}

func (a *allAvailable) of(s *source, d int) int64 {
	nodes := s.cluster.Nodes()
	if dims := s.dims.Len(); a.dims != dims || len(a.parts) < len(nodes)*dims {
		a.dims = dims
		a.reader.Invalidate()
	}
	changed, known := a.reader.CatchUp(s.cluster.NodeChanges(), len(nodes))
	for _, i := range changed {
		a.update(int(i), nodes[i])
	}
	if !known {
		a.parts, a.sum = make([]int64, len(nodes)*a.dims), make([]int64, a.dims)
		for i, n := range nodes {
			a.update(i, n)
		}
	}
	return a.sum[d]
}

func (a *allAvailable) update(index int, n *api.NodeInfo) {
	for d := range a.sum {
		part := &a.parts[index*a.dims+d]
		a.sum[d] -= *part
		*part = 0
		if n != nil {
			*part = availableOn(n, d)
		}
		a.sum[d] += *part
	}
}
