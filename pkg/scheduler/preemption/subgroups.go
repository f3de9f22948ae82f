// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// placeSubGroup places those tasks of a claim that are in a subgroup, the children that require a topology level in one of
// its domains each. For each of these it takes the first domain for which it finds a plan, in the order of their bounds;
// a later one does not change the domain of an earlier one.
func placeSubGroup(a *attempt, s *api.SubGroup, tasks []*api.TaskInfo) bool {
	if !s.Constrained || s.TopologyLevel != nil && len(s.Children) == 0 {
		return a.placeTasks(tasks)
	}
	for _, c := range s.Children {
		inside, rest := split(tasks, c)
		tasks = rest
		if len(inside) > 0 && !placeChild(a, c, inside) {
			return false
		}
	}
	return a.placeTasks(tasks)
}

// split returns the tasks that are in a subgroup, and the others.
func split(tasks []*api.TaskInfo, s *api.SubGroup) (inside, rest []*api.TaskInfo) {
	for _, t := range tasks {
		if t.SubGroup().Within(s) {
			inside = append(inside, t)
		} else {
			rest = append(rest, t)
		}
	}
	return inside, rest
}

// placeChild places the tasks of a subgroup, in one domain if it requires a level.
func placeChild(a *attempt, s *api.SubGroup, tasks []*api.TaskInfo) bool {
	if s.TopologyLevel == nil {
		return placeSubGroup(a, s, tasks)
	}
	outer := a.domain
	defer enter(a, outer)
	candidates := place.SubGroupDomains(a.ssn, a.claim.Job, s, tasks, outer)
	for _, d := range cheapestDomains(a.Planner, candidates, tasks, a.rules) {
		mark, evicted := a.stmt.Mark(), len(a.evicted)
		enter(a, d)
		if placeSubGroup(a, s, tasks) {
			return true
		}
		a.stmt.RollbackTo(mark)
		a.evicted = a.evicted[:evicted]
	}
	return false
}

// enter makes a domain the one of the tasks that follow. The candidates are those of one domain.
func enter(a *attempt, d *place.Domain) {
	a.domain = d
	clear(a.candidates)
}
