package nodeorder

import (
	"math/bits"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// The resource scorers look at cpu and memory, and at each extended resource that the task asks
// for: a node is judged as it will be once the task is on it. A dimension of which the node has
// nothing is left out.

// leastRequested is the mean share that stays free.
func leastRequested(q *question, n *api.NodeInfo) api.Score {
	return q.meanShare(n, func(free, whole int64) api.Score { return share(free, whole) })
}

// mostRequested is the mean share that is used.
func mostRequested(q *question, n *api.NodeInfo) api.Score {
	return q.meanShare(n, func(free, whole int64) api.Score { return share(whole-free, whole) })
}

func (q *question) meanShare(n *api.NodeInfo, of func(free, whole int64) api.Score) api.Score {
	var sum, count api.Score
	for _, i := range q.dimensions {
		if whole := n.Allocatable.At(i); whole > 0 {
			sum += of(n.Idle.At(i)-q.shape.Request.At(i), whole)
			count++
		}
	}
	if count == 0 {
		return 0
	}
	return sum / count
}

// asksForSomething: pods that ask for nothing unbalance nothing.
func asksForSomething(s *api.Shape) bool { return !s.BestEffort }

// balancedResource is one less the difference between the shares in which the most and the least
// used resource are used. A node with a single resource is balanced.
func balancedResource(q *question, n *api.NodeInfo) api.Score {
	least, most := api.OneScore, api.Score(0)
	for _, i := range q.dimensions {
		if whole := n.Allocatable.At(i); whole > 0 {
			free := share(n.Idle.At(i)-q.shape.Request.At(i), whole)
			least, most = min(least, free), max(most, free)
		}
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
