// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// choose divides a rest between nodes that suit the pods of the job: first those of earlier parts, then those with the most.
// A node gets the same part of each dimension, because pods that are expected request all of them. The sum is less than the
// rest if the nodes do not have it.
func (e *expectations) choose(j *api.JobInfo, rest api.Resource, before []part) (parts []part) {
	missing := rest.Clone()
	reserve := func(n *api.NodeInfo) {
		if amount := proportional(missing, n.Available(j.Priority, api.Now)); amount != nil {
			parts = append(parts, part{n.Name, amount})
			missing.Sub(amount)
		}
	}
	known := map[string]bool{}
	for _, p := range before {
		if n := e.ssn.Cluster().Node(p.node); n != nil && !missing.IsZero() {
			known[p.node] = true
			reserve(n)
		}
	}
	if missing.IsZero() {
		return parts
	}
	for _, n := range e.largestParts(j, rest) {
		if !known[n.Name] && !missing.IsZero() {
			reserve(n)
		}
	}
	return parts
}

func sum(parts []part) (total api.Resource) {
	for _, p := range parts {
		total.Add(p.amount)
	}
	return total
}

// largestParts returns the suitable nodes that have something of each dimension of the rest, those with the largest part of
// it first.
func (e *expectations) largestParts(j *api.JobInfo, rest api.Resource) []*api.NodeInfo {
	if len(j.Tasks) == 0 {
		return nil
	}
	type candidate struct {
		node *api.NodeInfo
		part api.Share
	}
	var candidates []candidate
	nodes := e.ssn.Cluster().Nodes()
	e.ssn.Nodes().Feasible(e.expectedLike(j).Signature).Each(func(i int) {
		if part, _ := partOf(rest, nodes[i].Available(j.Priority, api.Now)); part.Part > 0 {
			candidates = append(candidates, candidate{nodes[i], part})
		}
	})
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Or(b.part.Compare(a.part), cmp.Compare(a.node.Name, b.node.Name)) })
	sorted := make([]*api.NodeInfo, len(candidates))
	for i, c := range candidates {
		sorted[i] = c.node
	}
	return sorted
}

// expectedLike returns the pod of a job that those are most like which are expected: the youngest.
func (*expectations) expectedLike(j *api.JobInfo) *api.TaskInfo {
	return slices.MaxFunc(j.Tasks, func(a, b *api.TaskInfo) int { return api.CompareAge(a.Created, b.Created, a.Key, b.Key) })
}

// partOf returns how much of a request is available, at most all of it: the smallest part among its dimensions.
func partOf(request, available api.Resource) (least api.Share, all bool) {
	least = api.Share{Part: 1, Whole: 1}
	for d, n := range request {
		if n <= 0 {
			continue
		}
		if part := (api.Share{Part: max(available.At(d), 0), Whole: n}); part.Compare(least) < 0 {
			least = part
		}
	}
	return least, least.Part == least.Whole
}

// proportional returns the largest part of a request that is available, the same of each dimension, rounded up to units; nil if
// there is none.
func proportional(request, available api.Resource) api.Resource {
	part, all := partOf(request, available)
	switch {
	case all:
		return request.Clone()
	case part.Part == 0:
		return nil
	}
	amount := make(api.Resource, len(request))
	for d, n := range request {
		if n > 0 {
			amount[d] = times(n, part)
		}
	}
	return amount
}

// times returns a part of n, rounded up. As the part is at most 1, the result is at most n.
func times(n int64, part api.Share) int64 {
	high, low := bits.Mul64(uint64(n), uint64(part.Part))
	quotient, remainder := bits.Div64(high, low, uint64(part.Whole))
	if remainder > 0 {
		quotient++
	}
	return int64(quotient)
}
