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

// RequiredDomainKey returns the topology key of the one domain that the gang of a claim must be placed in. It is empty if
// the gang has no such affinity, or if members run already, which determine the domain.
func RequiredDomainKey(claim *api.Claim) string {
	if claim.Job.ReadyCount() > 0 {
		return ""
	}
	return claim.Tasks[0].Signature.SelfAffinityKey()
}

// TopologyDomain is the nodes that have one value of a topology key.
type TopologyDomain struct {
	Key, Value string
	Available  int64 // number of tasks that fit once the resources that are being released are free
	Capacity   int64 // number of tasks that fit if no member of a queue runs there
}

// Contains reports whether a node is in the domain. It is a Domain.
func (d *TopologyDomain) Contains(n *api.NodeInfo) bool { return n.Node.Labels[d.Key] == d.Value }

// Domains returns the domains with feasible nodes for t, those with the most available resources first.
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
			d.Available += t.Request.TimesIn(n.Available(t.Priority, api.Future))
			d.Capacity += t.Request.TimesIn(n.Allocatable.Minus(n.Foreign))
		}
	})
	return slices.SortedFunc(maps.Values(known), func(a, b *TopologyDomain) int {
		return cmp.Or(cmp.Compare(b.Available, a.Available), cmp.Compare(b.Capacity, a.Capacity), cmp.Compare(a.Value, b.Value))
	})
}
