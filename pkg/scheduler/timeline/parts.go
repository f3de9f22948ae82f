// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Part are tasks of a gang, such as those of a subgroup or a segment, that must be in one domain of their own, inside that of
// what is around them.
type Part struct {
	// Tasks are all tasks of the part; those of one signature are neighbours.
	Tasks []*api.TaskInfo
	// Domains are those of which all of the tasks must be in one; nil if they may be anywhere inside the domain around the part.
	Domains []*Domain
	// Parts have all of the tasks, in this order; nil if no domains are required inside the part.
	Parts []*Part
}

// ofPart is the smallest subgroup of t that must be in one domain and has members with nodes; nil if there is none.
func ofPart(t *api.TaskInfo) *api.SubGroup {
	for s := t.SubGroup(); s != nil; s = s.Parent {
		if s.TopologyLevel != nil && s.PipelinedCount() > 0 {
			return s
		}
	}
	return nil
}

// whole returns the gang as a part that may be anywhere: its domain is that of the start.
func (g *Gang) whole() *Part { return &Part{Tasks: g.Tasks, Parts: g.Parts} }

// anywhere reports whether the gang may be on any nodes.
func (g *Gang) anywhere() bool { return g.Domains == nil && g.Parts == nil }

// eachKind visits a task of each kind of a part, some more than once.
func eachKind(part *Part, visit func(*api.TaskInfo)) {
	if part.Parts == nil {
		for _, tasks := range bySignature(part.Tasks) {
			visit(tasks[0])
		}
	}
	for i, inner := range part.Parts {
		if i == 0 || !inner.alike(part.Parts[i-1]) {
			eachKind(inner, visit)
		}
	}
}

// alike reports whether parts are equal but for which tasks they have, which are of one signature. A part is alike itself if
// its tasks are of one signature, and no domains are required inside it.
func (p *Part) alike(o *Part) bool {
	return len(p.Parts)+len(o.Parts) == 0 && len(p.Tasks) == len(o.Tasks) && len(p.Domains) == len(o.Domains) &&
		(len(p.Domains) == 0 || &p.Domains[0] == &o.Domains[0]) && len(bySignature(p.Tasks)) == 1 && len(bySignature(o.Tasks)) == 1 &&
		p.Tasks[0].Signature == o.Tasks[0].Signature
}

// inside reports whether a domain of the same topology is in another one, or is that; nil stands for all nodes.
func (d *Domain) inside(outer *Domain) bool {
	if outer == nil {
		return true
	}
	rest, is := strings.CutPrefix(d.Path, outer.Path)
	return is && (rest == "" || rest[0] == '/')
}

// option is a domain that a part could be in.
type option struct {
	domain *Domain
	free   int64 // tasks like the first one of the part that fit there
	tried  bool  // in vain
}

// chooseIn chooses the nodes of the tasks of a part in a domain; nil stands for all nodes. Its parts are chosen one after the
// other: each gets the first domain in the order of compareOptions that holds it after those before. So segments that are alike
// fit if they do in any way; other parts may fit only in another order. If it fails, what it has taken stays.
func (p inDomains) chooseIn(s *Start, part *Part, d *Domain) (shortage, bool) {
	if part.Parts == nil {
		return p.chooseTogether(s, part.Tasks, d)
	}
	var options []option
	for i, inner := range part.Parts {
		if inner.Domains == nil {
			if missing, ok := p.chooseIn(s, inner, d); !ok {
				return missing, false
			}
			continue
		}
		if i == 0 || !inner.alike(part.Parts[i-1]) {
			options = p.optionsOf(s, inner, d)
		}
		if missing, ok := p.chooseOption(s, inner, options); !ok {
			return missing, false
		}
	}
	return nil, true
}

func (p inDomains) optionsOf(s *Start, part *Part, d *Domain) (options []option) {
	for _, domain := range part.Domains {
		if domain.inside(d) {
			options = append(options, option{domain: domain, free: p.freeIn(part.Tasks[0], domain, s.At)})
		}
	}
	return options
}

// freeIn returns how many tasks like this one fit in a domain at a time.
func (p inDomains) freeIn(t *api.TaskInfo, d *Domain, at int64) (free int64) {
	for _, i := range p.nodesIn(t, d) {
		p.sum = p.available(i).at(at, p.sum)
		free += t.Request.TimesIn(p.sum)
	}
	return free
}

// chooseOption chooses the nodes of a part in the first of the options where it fits, and counts again what is free there.
func (p inDomains) chooseOption(s *Start, part *Part, options []option) (missing shortage, ok bool) {
	first, need, before := part.Tasks[0], int64(len(bySignature(part.Tasks)[0])), len(s.Placements)
	for i := range options {
		options[i].tried = false
		if lacks := need - options[i].free; lacks > 0 {
			missing = append(missing, lack{first, int(lacks), options[i].domain})
		}
	}
	for {
		best := -1
		for i, o := range options {
			if !o.tried && o.free >= need && (best < 0 || compareOptions(o, options[best]) < 0) {
				best = i
			}
		}
		if best < 0 {
			return missing, false
		}
		o := &options[best]
		o.tried = true
		lacks, ok := p.chooseIn(s, part, o.domain)
		if ok {
			o.free = p.freeIn(first, o.domain, s.At)
			return nil, true
		}
		missing = append(missing, lacks...)
		p.release(s)
		s.Placements = s.Placements[:before]
		p.take(s)
	}
}

// compareOptions is the order of package place: by the nodes lost, by how many tasks fit, and by the paths.
func compareOptions(a, b option) int {
	return cmp.Or(cmp.Compare(a.domain.Lost, b.domain.Lost), cmp.Compare(a.free, b.free), cmp.Compare(a.domain.Path, b.domain.Path))
}

// areKept reports whether the placements of parts, in this order, are each in a domain of its part, inside a domain.
func areKept(parts []*Part, placements []api.Decision, d *Domain) bool {
	for _, part := range parts {
		n := len(part.Tasks)
		if !isKept(part, placements[:n], d) {
			return false
		}
		placements = placements[n:]
	}
	return true
}

func isKept(part *Part, placements []api.Decision, d *Domain) bool {
	if part.Domains == nil {
		return areKept(part.Parts, placements, d)
	}
	return slices.ContainsFunc(part.Domains, func(option *Domain) bool {
		return option.inside(d) && option.hasAll(placements) && areKept(part.Parts, placements, option)
	})
}

func (d *Domain) hasAll(placements []api.Decision) bool {
	return !slices.ContainsFunc(placements, func(placed api.Decision) bool { return !d.Nodes.Has(placed.Node.Index) })
}
