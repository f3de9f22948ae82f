// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"maps"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Domain restricts placements to some nodes; nil allows all.
type Domain func(*api.NodeInfo) bool

// Together returns the topology key of the domain that the gang of a claim has to choose; empty if
// it may go anywhere, or where its members say that run already.
func Together(claim *api.Claim) string {
	if claim.Job.ReadyCount() > 0 {
		return ""
	}
	return claim.Tasks[0].Signature.SelfAffinityKey()
}

// TopologyDomain is the nodes that have one value of a topology key.
type TopologyDomain struct {
	Key, Value string
	Room       int64 // for so many tasks, once what is being released is free
	Size       int64 // room for so many tasks if no member of a queue stood there
}

// Holds is the domain as a restriction.
func (d *TopologyDomain) Holds(n *api.NodeInfo) bool { return n.Node.Labels[d.Key] == d.Value }

// Domains lists the domains with nodes that pass the filters for t, the largest room first.
func Domains(ssn *framework.Session, t *api.TaskInfo, key string) []*TopologyDomain {
	known := map[string]*TopologyDomain{}
	nodes := ssn.Cluster().Nodes()
	ssn.Nodes().Feasible(t.Signature).Each(func(i int) {
		n := nodes[i]
		if value, ok := n.Node.Labels[key]; ok {
			d := known[value]
			if d == nil {
				d = &TopologyDomain{Key: key, Value: value}
				known[value] = d
			}
			d.Room += t.Request.TimesIn(n.Available(t.Priority, api.Future))
			d.Size += t.Request.TimesIn(n.Allocatable.Minus(n.Foreign))
		}
	})
	return slices.SortedFunc(maps.Values(known), func(a, b *TopologyDomain) int {
		return cmp.Or(cmp.Compare(b.Room, a.Room), cmp.Compare(b.Size, a.Size), cmp.Compare(a.Value, b.Value))
	})
}
