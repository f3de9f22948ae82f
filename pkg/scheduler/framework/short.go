package framework

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Insufficient tells whether a claim asks for more than Room returns in a dimension. It is quick in both cases
// that are common: in a full cluster all nodes together have less, which is known without looking at them,
// and in an empty one a few nodes have enough.
func (ssn *Session) Insufficient(claim *api.Claim, d int) bool {
	asked := claim.Request.At(d)
	if ssn.memory.clusterAvailable.of(ssn.cluster, d) < asked {
		return true
	}
	if availableUpTo(ssn.cluster.Nodes(), ssn.FeasibleNodes(claim.Tasks[0].Signature), d, asked) >= asked {
		return false
	}
	return ofOneShape(claim) || ssn.Available(claim).At(d) < asked
}

// availableUpTo adds up the room of nodes until there is enough.
func availableUpTo(nodes []*api.NodeInfo, set *NodeSet, d int, enough int64) (room int64) {
	set.Until(func(i int) bool {
		room += availableOn(nodes[i], d)
		return room >= enough
	})
	return room
}

// clusterAvailable is what is idle or being released on all nodes together. It follows the journal of touched
// nodes.
type clusterAvailable struct {
	dims     int
	parts    []int64 // by node index and dimension
	sum      []int64
	position uint64
}

// of returns the sum in one dimension.
func (w *clusterAvailable) of(c *api.Cluster, d int) int64 {
	journal, nodes := c.NodeChanges(), c.Nodes()
	touched, ok := journal.Since(w.position)
	if !ok || w.dims != c.Dims.Len() || len(w.parts) < len(nodes)*w.dims {
		w.dims = c.Dims.Len()
		w.parts, w.sum = make([]int64, len(nodes)*w.dims), make([]int64, w.dims)
		for i, n := range nodes {
			w.update(i, n)
		}
	} else {
		for _, i := range touched {
			w.update(int(i), nodes[i])
		}
	}
	w.position = journal.Position()
	return w.sum[d]
}

func (w *clusterAvailable) update(index int, n *api.NodeInfo) {
	for d := range w.sum {
		part := &w.parts[index*w.dims+d]
		w.sum[d] -= *part
		*part = 0
		if n != nil {
			*part = availableOn(n, d)
		}
		w.sum[d] += *part
	}
}
