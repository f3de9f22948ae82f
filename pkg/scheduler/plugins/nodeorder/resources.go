// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeorder

import "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"

// The resource scorers use cpu, memory, and each extended resource that the task requests. They score a node as it is
// after the placement. A dimension of which the node has no capacity is ignored.

// computeFree stores the fraction of each resource that stays free on n, for all resource scorers.
func (q *scoreState) computeFree(n *api.NodeInfo) {
	q.free = q.free[:0]
	q.appendFree(n, q.dimensions[:q.extended])
	q.freeOther = len(q.free)
	q.appendFree(n, q.dimensions[q.extended:])
}

func (q *scoreState) appendFree(n *api.NodeInfo, dimensions []int) {
	for _, i := range dimensions {
		if whole := n.Allocatable.At(i); whole > 0 {
			q.free = append(q.free, api.ScoreOf(n.Idle.At(i)-q.signature.Request.At(i), whole))
		}
	}
}

// leastRequested returns the mean fraction that stays free.
func leastRequested(q *scoreState, _ *api.NodeInfo) api.Score {
	if len(q.free) == 0 {
		return 0
	}
	return mean(q.free)
}

// mean returns the mean of at least one score.
func mean(scores []api.Score) api.Score {
	var sum api.Score
	for _, score := range scores {
		sum += score
	}
	return sum / api.Score(len(scores))
}

// mostRequested returns the mean fraction that is used.
func mostRequested(q *scoreState, n *api.NodeInfo) api.Score {
	if len(q.free) == 0 {
		return 0
	}
	return api.OneScore - leastRequested(q, n)
}

// requestsExtended reports whether the pod requests extended resources.
func requestsExtended(q *scoreState) bool { return q.extended < len(q.dimensions) }

// extendedPacking returns the mean fraction that is used of the extended resources that the pod requests.
func extendedPacking(q *scoreState, _ *api.NodeInfo) api.Score {
	if len(q.free) == q.freeOther {
		return 0
	}
	return api.OneScore - mean(q.free[q.freeOther:])
}

// avoidsExtended reports whether some nodes may have extended resources and the pod has no use for them. Devices that it
// requests by claims may be on such nodes.
func avoidsExtended(q *scoreState) bool {
	if requestsExtended(q) || q.signature.Claims {
		return false
	}
	dims := q.cluster.Dims()
	for i := api.Pods + 1; i < dims.Len(); i++ {
		if dims.Extended(i) {
			return true
		}
	}
	return false
}

// extendedAvoidance returns 1/(1+resources): 1 for a node without extended resources, 1/2 for one that has one of them,
// and so on. So an extended resource that all nodes have does not hide that some nodes have GPUs too.
func extendedAvoidance(_ *scoreState, n *api.NodeInfo) api.Score {
	return api.OneScore / api.Score(1+n.ExtendedResources())
}

// requestsResources reports whether the pod has requests; balance does not apply to pods without.
func requestsResources(q *scoreState) bool { return !q.signature.BestEffort }

// balancedResource returns one minus the difference between the used fractions of the most and the least used
// resource. A node with a single resource is balanced.
func balancedResource(q *scoreState, _ *api.NodeInfo) api.Score {
	least, most := api.OneScore, api.Score(0)
	for _, free := range q.free {
		least, most = min(least, free), max(most, free)
	}
	return api.OneScore - max(most-least, 0)
}
