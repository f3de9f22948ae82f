// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// candidates returns the domains in which a subgroup could be, by their paths: the one where members of it have nodes, or
// those inside the domain of what is around it.
func (p *placing) candidates(s *api.SubGroup) []*nodeindex.Domain {
	domains := p.ssn.Nodes().Domains(s.TopologyLevel)
	if pinned := domains.OfSubGroup(p.job, s); pinned != nil {
		return []*nodeindex.Domain{pinned}
	}
	return p.inside(s.Parent, domains)
}

// inside returns the domains inside the one in which a subgroup and its members must be: that where members of it have nodes,
// of the smallest subgroup around it that has some, or the one that is tried at present.
func (p *placing) inside(s *api.SubGroup, domains *nodeindex.Domains) []*nodeindex.Domain {
	for ; s != nil; s = s.Parent {
		if s.TopologyLevel != nil {
			if pinned := p.ssn.Nodes().Domains(s.TopologyLevel).OfSubGroup(p.job, s); pinned != nil {
				return domains.Inside(pinned)
			}
		}
	}
	if p.domain == nil || p.domain.Level.Topology != domains.Level().Topology { // a pod affinity: predicates decide
		return domains.All()
	}
	return domains.Inside(p.domain.Domain)
}

// domainsOf returns the domains that hold a subgroup by the counts, in the order in which they are tried. Segments are in as
// few domains as possible, see segmentOrder. The others lose the fewest nodes of whole domains, and then leave the least over.
func (p *placing) domainsOf(s *api.SubGroup) []*nodeindex.Domain {
	domains := p.ssn.Nodes().Domains(s.TopologyLevel)
	held := p.mayHold(s, domains, p.candidates(s))
	if len(held) < 2 {
		return held
	}
	if s.Parent.SegmentSize > 0 {
		held = p.orderOf(s.Parent, p.lacks(s), domains).of(held)
	} else {
		p.tightestFirst(held, p.lacks(s), domains)
	}
	if p.search.before != nil {
		before := p.search.before(domains)
		slices.SortStableFunc(held, func(a, b *nodeindex.Domain) int { return trueFirst(before[a], before[b]) })
	}
	return held
}

// tightestFirst orders domains by the nodes lost, and then by how many tasks of the first kind fit.
func (p *placing) tightestFirst(list []*nodeindex.Domain, kinds []kindOfTasks, domains *nodeindex.Domains) {
	lost, fit := map[*nodeindex.Domain]int{}, map[*nodeindex.Domain]int64{}
	for _, d := range list {
		lost[d] = domains.Lost(d)
	}
	if len(kinds) > 0 {
		counts := p.search.fit(domains, kinds[0].task)
		for _, d := range list {
			fit[d] = counts.In(d)
		}
	}
	slices.SortFunc(list, func(a, b *nodeindex.Domain) int {
		return cmp.Or(cmp.Compare(lost[a], lost[b]), cmp.Compare(fit[a], fit[b]), cmp.Compare(a.Path, b.Path))
	})
}

// mayHold returns those of the domains where what a subgroup lacks fits by the counts. That is necessary. If all tasks are
// alike and only resources matter, it is sufficient for a subgroup without levels below it, and for one of segments.
func (p *placing) mayHold(s *api.SubGroup, domains *nodeindex.Domains, list []*nodeindex.Domain) []*nodeindex.Domain {
	kinds := p.lacks(s)
	fit := make([]nodeindex.DomainCounts, len(kinds))
	for i, k := range kinds {
		fit[i] = p.search.fit(domains, k.task)
	}
	var held []*nodeindex.Domain
	for _, d := range list {
		enough := true
		for i, k := range kinds {
			enough = enough && fit[i].In(d) >= k.count
		}
		if enough && p.mayHoldParts(s, d) {
			held = append(held, d)
		}
	}
	return held
}

// mayHoldParts reports whether the segments or children of a subgroup that have levels of their own may be inside a domain.
func (p *placing) mayHoldParts(s *api.SubGroup, d *nodeindex.Domain) bool {
	if s.SegmentLevel != nil {
		return p.holdsSegments(s, d)
	}
	if int(s.MinSubGroup) < len(s.Children) {
		return true
	}
	for _, c := range s.Children {
		if c.TopologyLevel == nil || c.Complete((*api.MemberCounts).PipelinedCount) {
			continue
		}
		inner := p.ssn.Nodes().Domains(c.TopologyLevel)
		if len(p.mayHold(c, inner, inner.Inside(d))) == 0 {
			return false
		}
	}
	return true
}

// holdsSegments reports whether the segments that a subgroup lacks fit in domains of their level inside a domain.
//
// For example, a block has racks for 6, 3 and 3 pods. It holds one segment of 4 pods, and not three.
func (p *placing) holdsSegments(s *api.SubGroup, d *nodeindex.Domain) bool {
	missing := int64(s.MinSubGroup - s.CompleteChildren((*api.MemberCounts).PipelinedCount))
	kinds := p.lacks(s)
	if missing <= 0 || len(kinds) != 1 || hasPartOfSegment(s) {
		return true
	}
	inner := p.ssn.Nodes().Domains(s.SegmentLevel)
	fit := p.search.fit(inner, kinds[0].task)
	for _, d := range inner.Inside(d) {
		missing -= fit.In(d) / int64(s.SegmentSize)
	}
	return missing <= 0
}

// hasPartOfSegment reports whether members of an incomplete segment have nodes.
func hasPartOfSegment(s *api.SubGroup) bool {
	return slices.ContainsFunc(s.Children, func(c *api.SubGroup) bool {
		n := c.PipelinedCount()
		return n > 0 && n < s.SegmentSize
	})
}

// lacks returns what a subgroup needs at least: how many tasks of which kinds. It leaves out what it does not know, because
// any of several kinds suffice.
func (p *placing) lacks(s *api.SubGroup) []kindOfTasks {
	kinds, known := p.lacking[s]
	if !known {
		kinds = p.countLacking(s)
		if p.lacking == nil {
			p.lacking = map[*api.SubGroup][]kindOfTasks{}
		}
		p.lacking[s] = kinds
	}
	return kinds
}

func (p *placing) countLacking(s *api.SubGroup) []kindOfTasks {
	n := int64(s.Lacks(pipelinedIn))
	if n == 0 {
		return nil
	}
	if all := kindsOf(p.waitingIn(s, nil)); len(all) < 2 {
		for i := range all {
			all[i].count = n
		}
		return all
	}
	if int(s.MinSubGroup) < len(s.Children) || s.SegmentSize > 0 {
		return nil
	}
	var kinds []kindOfTasks
	for _, c := range s.Children {
		for _, k := range p.lacks(c) {
			at := slices.IndexFunc(kinds, k.alike)
			if at < 0 {
				kinds = append(kinds, k)
			} else {
				kinds[at].count += k.count
			}
		}
	}
	return kinds
}

// waitingIn appends the tasks of a subgroup that have no nodes yet.
func (p *placing) waitingIn(s *api.SubGroup, tasks []*api.TaskInfo) []*api.TaskInfo {
	for _, t := range p.waiting[s] {
		if t.Waiting() {
			tasks = append(tasks, t)
		}
	}
	for _, c := range s.Children {
		tasks = p.waitingIn(c, tasks)
	}
	return tasks
}

// countIn returns how many of the tasks that a subgroup lacks fit in the domain where the most of them do; nil if they are of
// several kinds, or if there is no domain.
func (p *placing) countIn(s *api.SubGroup) *api.DomainCount {
	kinds := p.lacks(s)
	if len(kinds) != 1 {
		return nil
	}
	domains := p.ssn.Nodes().Domains(s.TopologyLevel)
	count := &api.DomainCount{Level: s.TopologyLevel, Need: int(kinds[0].count), Occupied: s.PipelinedCount() > 0, Startable: -1}
	fit := p.search.fit(domains, kinds[0].task)
	for _, d := range p.candidates(s) {
		if n := int(min(fit.In(d), kinds[0].count)); n > count.Startable {
			count.Startable, count.Path = n, d.Path
		}
	}
	if count.Startable < 0 {
		return nil
	}
	return count
}

// segmentOrder is the order of the domains for the segments of a subgroup: those for the most segments first, and as the
// last one that is needed the smallest that holds the rest.
//
// For example, hosts for 6, 5, 4, 3 and 2 pods hold 3, 2, 2, 1 and 1 segments of 2. Six segments get the hosts of 6, 4 and 2:
// of the hosts for 2 segments, that of 4 leaves nothing over.
type segmentOrder []*nodeindex.Domain

// of returns the domains of a list in this order, and then those that are not in it.
func (o segmentOrder) of(list []*nodeindex.Domain) []*nodeindex.Domain {
	rank := make(map[*nodeindex.Domain]int, len(o))
	for i, d := range o {
		rank[d] = i - len(o)
	}
	slices.SortStableFunc(list, func(a, b *nodeindex.Domain) int { return cmp.Compare(rank[a], rank[b]) })
	return list
}

// fittingSegments is how many segments fit in a domain.
type fittingSegments struct {
	domain      *nodeindex.Domain
	count, left int64 // segments, and tasks that fit besides
	lost        int   // nodes, see nodeindex.Domains.Lost
}

// orderOf returns the order for the segments that a subgroup lacks, which are alike.
func (p *placing) orderOf(s *api.SubGroup, segment []kindOfTasks, domains *nodeindex.Domains) segmentOrder {
	if order, known := p.orders[s]; known {
		return order
	}
	var list []fittingSegments
	if len(segment) == 1 {
		list = p.segmentsIn(s, segment[0].task, domains)
	}
	left := max(int64(s.MinSubGroup-s.CompleteChildren((*api.MemberCounts).PipelinedCount)), 1)
	var order segmentOrder
	for len(list) > 0 {
		at := 0
		for i, one := range list {
			if left > 0 && one.count >= left && list[at].count >= left && compareTightest(one, list[at]) < 0 {
				at = i
			}
		}
		left -= list[at].count
		order = append(order, list[at].domain)
		list = slices.Delete(list, at, at+1)
	}
	if p.orders == nil {
		p.orders = map[*api.SubGroup]segmentOrder{}
	}
	p.orders[s] = order
	return order
}

// segmentsIn returns the domains that hold segments, those for the most first.
func (p *placing) segmentsIn(s *api.SubGroup, task *api.TaskInfo, domains *nodeindex.Domains) []fittingSegments {
	var list []fittingSegments
	size, fit := int64(s.SegmentSize), p.search.fit(domains, task)
	for _, d := range p.inside(s, domains) {
		if n := fit.In(d); n >= size {
			list = append(list, fittingSegments{d, n / size, n % size, domains.Lost(d)})
		}
	}
	slices.SortFunc(list, func(a, b fittingSegments) int { return cmp.Or(cmp.Compare(b.count, a.count), compareTightest(a, b)) })
	return list
}

func compareTightest(a, b fittingSegments) int {
	return cmp.Or(cmp.Compare(a.count, b.count), cmp.Compare(a.lost, b.lost), cmp.Compare(a.left, b.left), cmp.Compare(a.domain.Path, b.domain.Path))
}

// capacityFor returns how many tasks like t fit in each domain if no members of queues run there.
func capacityFor(of *nodeindex.Domains, t *api.TaskInfo) nodeindex.DomainCounts {
	return of.Capacity(t.Signature)
}

// SubGroupDomains returns the domains inside another one in which some tasks of a subgroup could be if no members of queues ran
// there. If members of the subgroup have nodes, that is their domain. Nil stands for all nodes.
func SubGroupDomains(ssn *framework.Session, j *api.JobInfo, s *api.SubGroup, tasks []*api.TaskInfo, in *Domain) []*Domain {
	p := newPlacing(ssn, nil, j, tasks, search{domain: in, fit: capacityFor})
	domains := ssn.Nodes().Domains(s.TopologyLevel)
	var list []*Domain
	for _, d := range p.mayHold(s, domains, p.candidates(s)) {
		list = append(list, &Domain{Domain: d, Level: s.TopologyLevel})
	}
	return list
}
