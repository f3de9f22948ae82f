// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/timeline"
)

// gangParts divides the tasks of a gang into the parts that must be in domains of their own.
type gangParts struct {
	ssn   *framework.Session
	job   *api.JobInfo
	tasks []*api.TaskInfo
	of    map[*api.SubGroup][]*api.TaskInfo // of the subgroup itself, without its children
	known map[partKind][]*timeline.Domain
}

// partKind is what makes subgroups equal in where they could be: segments of one subgroup, mostly.
type partKind struct {
	around    *api.SubGroup
	level     *api.TopologyLevel
	signature *api.Signature
	tasks     int
}

// partsOf returns the parts of a gang that must be in domains of their own; nil if there are none. It reports false if one of them
// has no domain.
func partsOf(ssn *framework.Session, j *api.JobInfo, tasks []*api.TaskInfo) (parts []*timeline.Part, ok bool) {
	if !j.SubGroups.HasConstraint() {
		return nil, true
	}
	p := &gangParts{ssn: ssn, job: j, tasks: tasks, of: map[*api.SubGroup][]*api.TaskInfo{}, known: map[partKind][]*timeline.Domain{}}
	for _, t := range tasks {
		p.of[t.SubGroup()] = append(p.of[t.SubGroup()], t)
	}
	return p.inside(j.SubGroups)
}

// inside returns the parts inside a subgroup: the subgroups with constraints, and then the other tasks. Those come first that
// have the fewest domains, and then those that request the most.
func (p *gangParts) inside(s *api.SubGroup) (parts []*timeline.Part, ok bool) {
	rest := slices.Clone(p.of[s])
	for _, c := range s.Children {
		if !c.HasConstraint() {
			rest = append(rest, p.below(c)...)
			continue
		}
		part, ok := p.part(c)
		if !ok {
			return nil, false
		}
		if part != nil {
			parts = append(parts, part)
		}
	}
	dims, total := p.ssn.Cluster().Dims(), p.ssn.Nodes().Total()
	shares := make(map[*timeline.Part]api.Share, len(parts))
	for _, part := range parts {
		shares[part] = dims.Dominant(requestOf(part.Tasks), total)
	}
	slices.SortStableFunc(parts, func(a, b *timeline.Part) int {
		return cmp.Or(cmp.Compare(len(a.Domains), len(b.Domains)), shares[b].Compare(shares[a]))
	})
	if len(rest) > 0 {
		parts = append(parts, &timeline.Part{Tasks: largestFirst(p.ssn, rest)})
	}
	return parts, true
}

func requestOf(tasks []*api.TaskInfo) (sum api.Resource) {
	for _, t := range tasks {
		sum.Add(t.Request)
	}
	return sum
}

// below returns the tasks of a subgroup and of its children.
func (p *gangParts) below(s *api.SubGroup) []*api.TaskInfo {
	tasks := slices.Clone(p.of[s])
	for _, c := range s.Children {
		tasks = append(tasks, p.below(c)...)
	}
	return tasks
}

// part returns a subgroup as a part; nil if it has no tasks. It reports false if it has no domain.
func (p *gangParts) part(s *api.SubGroup) (part *timeline.Part, ok bool) {
	tasks := p.below(s)
	if len(tasks) == 0 {
		return nil, true
	}
	part = &timeline.Part{Tasks: largestFirst(p.ssn, tasks)}
	if s.TopologyLevel != nil {
		if part.Domains = p.domainsOf(s, tasks); len(part.Domains) == 0 {
			return nil, false
		}
	}
	if slices.ContainsFunc(s.Children, (*api.SubGroup).HasConstraint) {
		if part.Parts, ok = p.inside(s); !ok {
			return nil, false
		}
		part.Tasks = concat(part.Parts)
	}
	return part, true
}

// concat returns the tasks of all parts in order.
func concat(parts []*timeline.Part) (tasks []*api.TaskInfo) {
	for _, part := range parts {
		tasks = append(tasks, part.Tasks...)
	}
	return tasks
}

// domainsOf returns the domains where a subgroup could ever start. Segments that are alike share the list.
func (p *gangParts) domainsOf(s *api.SubGroup, tasks []*api.TaskInfo) []*timeline.Domain {
	kind, shared := p.kindOf(s, tasks)
	if list, known := p.known[kind]; shared && known {
		return list
	}
	domains := p.ssn.Nodes().Domains(s.TopologyLevel)
	var list []*timeline.Domain
	for _, d := range place.SubGroupDomains(p.ssn, p.job, s, p.tasks, nil) {
		list = append(list, &timeline.Domain{Path: d.Path, Nodes: d.Nodes(), Lost: domains.Lost(d.Domain)})
	}
	sortDomains(list)
	if shared {
		p.known[kind] = list
	}
	return list
}

// kindOf returns what a subgroup has in common with others, and whether it may share its domains with these: a segment of equal
// tasks of which no member has a node.
func (p *gangParts) kindOf(s *api.SubGroup, tasks []*api.TaskInfo) (kind partKind, shared bool) {
	kind = partKind{s.Parent, s.TopologyLevel, tasks[0].Signature, len(tasks)}
	other := func(t *api.TaskInfo) bool { return t.Signature != kind.signature }
	return kind, len(s.Children) == 0 && s.PipelinedCount() == 0 && !slices.ContainsFunc(tasks, other)
}
