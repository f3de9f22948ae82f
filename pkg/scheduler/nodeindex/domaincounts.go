// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"math"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// sumKind is what a domainSum counts on each node.
type sumKind int8

const (
	busyNodes       sumKind = iota // 1 if members of queues hold resources there
	availableTasks                 // tasks that fit when all is free that is being released
	capacityOfTasks                // tasks that fit if no members of queues run there
	emptyCapacity                  // tasks that fit if no pods run there
)

type sumKey struct {
	kind      sumKind
	signature *api.Signature // nil for busyNodes
	priority  int32          // of the task, for availableTasks
}

// domainSum is a sum over the nodes of each domain of a level. It is kept from session to session: a node that has
// changed is counted again, and the sum of its domain changes by the difference.
type domainSum struct {
	reader  api.JournalReader // of NodeChanges
	version uint64            // of the domains
	specs   uint64            // generation of the node objects
	parts   []int32           // by node index
	sums    []int64           // by Domain.id
	used    bool              // in this session
}

// DomainCounts are numbers of each domain of a level. They are valid until nodes change.
type DomainCounts struct{ sums []int64 }

// In returns the number of a domain of the level.
func (c DomainCounts) In(domain *Domain) int64 { return c.sums[domain.id] }

// Available returns how many tasks like t fit on the nodes of each domain once all is free that is being released there.
func (d *Domains) Available(t *api.TaskInfo) DomainCounts {
	return d.counts(sumKey{availableTasks, t.Signature, t.Priority})
}

// Capacity returns how many tasks with a signature fit on the nodes of each domain if no member of a queue runs there.
func (d *Domains) Capacity(signature *api.Signature) DomainCounts {
	return d.counts(sumKey{kind: capacityOfTasks, signature: signature})
}

// InUse returns on how many nodes of each domain members of queues hold resources.
func (d *Domains) InUse() DomainCounts { return d.counts(sumKey{kind: busyNodes}) }

// Whole reports whether no member of a queue holds resources in the domain.
func (d *Domains) Whole(domain *Domain) bool { return d.InUse().In(domain) == 0 }

// Lost returns how many nodes are in domains that are whole and would not be if pods ran in these domains: their own, and
// the wider ones that contain them.
func (d *Domains) Lost(domains ...*Domain) int {
	if len(domains) == 1 {
		return d.lostIn(domains[0])
	}
	lost := 0
	for level := d; level != nil && len(domains) > 0; level = level.wider {
		var wider []*Domain
		for _, domain := range domains {
			if !level.Whole(domain) {
				continue
			}
			lost += domain.size
			if around := level.widerOf(domain); around != nil && !slices.Contains(wider, around) {
				wider = append(wider, around)
			}
		}
		domains = wider
	}
	return lost
}

// lostIn is Lost for one domain. It allocates nothing: it is asked of all domains.
func (d *Domains) lostIn(domain *Domain) (lost int) {
	for level := d; level != nil && domain != nil && level.Whole(domain); level = level.wider {
		lost += domain.size
		domain = level.widerOf(domain)
	}
	return lost
}

func (d *Domains) counts(key sumKey) DomainCounts {
	s := d.sums[key]
	if s == nil {
		s = &domainSum{}
		d.sums[key] = s
	}
	s.used = true
	s.update(d, key)
	return DomainCounts{s.sums}
}

// update counts the nodes again that have changed.
func (s *domainSum) update(d *Domains, key sumKey) {
	cluster := d.index.feasible.cluster
	if specs := cluster.Generations().NodeSpecs; s.specs != specs || s.version != d.version {
		s.specs, s.version = specs, d.version
		s.reader.Invalidate()
	}
	if s.reader.UpToDate(cluster.NodeChanges()) {
		return
	}
	nodes := cluster.Nodes()
	changed, known := s.reader.CatchUp(cluster.NodeChanges(), len(nodes))
	if !known {
		s.parts, s.sums = make([]int32, len(nodes)), make([]int64, len(d.ids))
		for i := range nodes {
			s.count(d, key, i)
		}
		return
	}
	for _, i := range changed {
		s.count(d, key, int(i))
	}
}

// count counts the node with an index again.
func (s *domainSum) count(d *Domains, key sumKey, index int) {
	domain := d.of[index]
	if domain == nil {
		return
	}
	now := d.measure(key, d.index.feasible.cluster.Nodes()[index])
	s.sums[domain.id] += int64(now) - int64(s.parts[index])
	s.parts[index] = now
}

// measure returns what a node that exists adds to a sum.
func (d *Domains) measure(key sumKey, n *api.NodeInfo) int32 {
	if key.kind == busyNodes {
		if n.Members.At(api.Pods) > 0 {
			return 1
		}
		return 0
	}
	if !d.index.feasible.nodes(key.signature).Has(n.Index) {
		return 0
	}
	times, request := int64(0), key.signature.Request
	switch key.kind {
	case availableTasks:
		times = availableTimes(request, n, key.priority)
	case capacityOfTasks:
		if acceptsPods(n) {
			times = request.TimesInRest(n.Allocatable, n.Foreign)
		}
	default:
		if acceptsPods(n) {
			times = request.TimesInRest(n.Allocatable, nil)
		}
	}
	return int32(min(times, math.MaxInt32))
}

// availableTimes returns how often a request fits on a node once all is free that is being released there.
func availableTimes(request api.Resource, n *api.NodeInfo, priority int32) int64 {
	times := int64(math.MaxInt32)
	for d, asked := range request {
		if asked > 0 {
			times = min(times, max(n.AvailableIn(d, priority, api.Future), 0)/asked)
		}
	}
	return times
}
