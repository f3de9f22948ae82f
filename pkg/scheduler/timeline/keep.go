// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Keep adds a gang at a time, with the placements that it had in another plan. It reports false if it does not fit there any
// more, or if another start would not.
func (p *Plan) Keep(g Gang, at int64, placements []api.Decision) (*Start, bool) {
	s := &Start{Gang: g, At: at, Placements: placements}
	return s, p.KeepAll([]*Start{s})
}

// KeepAll adds starts that were in another plan, all or none. It reports whether these and all others fit.
func (p *Plan) KeepAll(starts []*Start) bool {
	for _, s := range starts {
		if !p.couldKeep(s) {
			return false
		}
	}
	for _, s := range starts {
		s.At = max(s.At, p.Now)
		p.insert(s)
		p.take(s)
	}
	if !slices.ContainsFunc(p.starts, func(s *Start) bool { return !p.fits(s) }) {
		return true
	}
	for _, s := range starts {
		p.Remove(s)
	}
	return false
}

// couldKeep reports whether the placements of a start are those of its tasks, on nodes that still suit them.
func (p *Plan) couldKeep(s *Start) bool {
	if len(s.Placements) != len(s.Tasks) {
		return false
	}
	for i, d := range s.Placements {
		if d.Task != s.Tasks[i] || !p.Suits(d.Task, d.Node, max(s.At, p.Now)) {
			return false
		}
	}
	return s.findDomain()
}

// Improve moves starts to earlier times, in this order, if they fit there and delay nothing. They can do so only if more is free
// at some time than in the plans before: more says that the caller knows so, for example because a start was dropped. Improve
// reports whether this is so, also for gangs that are not in the plan.
func (p *Plan) Improve(starts []*Start, more bool) bool {
	for _, s := range starts {
		eachKind(s.whole(), func(t *api.TaskInfo) { more = p.HasGrown(t) || more })
	}
	if more = more || p.Readings.grown; !more {
		return false
	}
	p.Readings.grown = false
	for _, s := range starts {
		if (bounds{p}).couldFitBefore(s.Gang, s.At) {
			p.improve(s)
		}
	}
	return true
}

// HasGrown reports whether more may be free at some time for tasks like this one than in the plans before. It reads the nodes
// where they could run.
func (p *Plan) HasGrown(t *api.TaskInfo) bool {
	_, known := p.Readings.before[KindOf(t)]
	p.readNodes(t)
	return p.Readings.grown || !known
}

func (p *Plan) improve(s *Start) {
	before := *s
	p.Remove(s)
	if !p.addBefore(s, before.At) {
		*s = before
		p.insert(s)
		p.take(s)
	}
}

// nodesFor returns the nodes where tasks like this one could run if they were empty.
func (p *Plan) nodesFor(t *api.TaskInfo) []int {
	kind := KindOf(t)
	nodes, known := p.Readings.feasible[kind]
	if !known {
		p.EachFeasible(t, func(i int) { nodes = append(nodes, i) })
		p.Readings.setFeasible(kind, nodes)
	}
	return nodes
}

// readNodes reads these nodes again as far as they have changed.
func (p *Plan) readNodes(t *api.TaskInfo) {
	for _, i := range p.nodesFor(t) {
		p.available(i)
	}
}

// Suits reports whether a task could start on a node at a time if the node were empty.
func (p *Plan) Suits(t *api.TaskInfo, n *api.NodeInfo, at int64) bool {
	if n.Index < 0 || n.Index >= len(p.Nodes) || p.Nodes[n.Index] != n || n.Outlasts(t, at) {
		return false
	}
	_, suits := slices.BinarySearch(p.nodesFor(t), n.Index)
	return suits
}
