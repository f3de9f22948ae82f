// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/fragmentation"
)

// scoreEvictions returns the weighted score of a node by what a plan changes that evicts pods there, which free an amount, and
// places t: from F once all is free that is being released by now to F after the plan.
func (q *scores) scoreEvictions(t *api.TaskInfo, n *api.NodeInfo, freed api.Resource) api.Score {
	if q.set == nil || n.Allocatable.At(q.device) <= 0 || uint(n.Index) >= uint(len(q.nodes)) {
		return q.weight * (api.OneScore / 2)
	}
	idle := n.Available(t.Priority, api.Future)
	before := q.lostWith(n, idle)
	idle.Add(freed)
	return q.weight * q.set.Score(before, q.lostWith(n, idle.Minus(t.Request)))
}

// lostWith returns F of a node with so much idle.
func (q *scores) lostWith(n *api.NodeInfo, idle api.Resource) int64 {
	q.devices[0] = fragmentation.Devices{Free: fragmentation.Whole, Count: min(max(idle.At(q.device), 0), maxDevices)}
	return q.set.Lost(&fragmentation.Node{Idle: idle, Devices: q.devices[:], Admits: q.nodes[n.Index].admits})
}
