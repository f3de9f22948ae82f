package nodeorder

import (
	"math/bits"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// The resource scorers look at cpu and memory, and at each extended resource that the task asks
// for: a node is judged as it will be once the task is on it. A dimension of which the node has
// nothing is left out.

// weigh notes the share of each resource that stays free on n, for all resource scorers.
func (q *question) weigh(n *api.NodeInfo) {
	q.free = q.free[:0]
	for _, i := range q.dimensions {
		if whole := n.Allocatable.At(i); whole > 0 {
			q.free = append(q.free, share(n.Idle.At(i)-q.shape.Request.At(i), whole))
		}
	}
}

// leastRequested is the mean share that stays free.
func leastRequested(q *question, _ *api.NodeInfo) api.Score {
	if len(q.free) == 0 {
		return 0
	}
	var sum api.Score
	for _, free := range q.free {
		sum += free
	}
	return sum / api.Score(len(q.free))
}

// mostRequested is the mean share that is used.
func mostRequested(q *question, n *api.NodeInfo) api.Score {
	if len(q.free) == 0 {
		return 0
	}
	return api.OneScore - leastRequested(q, n)
}

// asksForSomething: pods that ask for nothing unbalance nothing.
func asksForSomething(s *api.Signature) bool { return !s.BestEffort }

// balancedResource is one less the difference between the shares in which the most and the least
// used resource are used. A node with a single resource is balanced.
func balancedResource(q *question, _ *api.NodeInfo) api.Score {
	least, most := api.OneScore, api.Score(0)
	for _, free := range q.free {
		least, most = min(least, free), max(most, free)
	}
	return api.OneScore - max(most-least, 0)
}

// share returns part/whole, cut to 0..1. The whole must be positive; the product with a million
// needs more than 64 bits for memory above 8 TiB.
func share(part, whole int64) api.Score {
	if part <= 0 {
		return 0
	}
	if part >= whole {
		return api.OneScore
	}
	high, low := bits.Mul64(uint64(part), uint64(api.OneScore))
	quotient, _ := bits.Div64(high, low, uint64(whole))
	return api.Score(quotient)
}
