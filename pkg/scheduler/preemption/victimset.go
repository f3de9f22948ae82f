// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// victimSet collects units of a node whose eviction makes a task fit there.
type victimSet struct {
	task      *api.TaskInfo
	node      *api.NodeInfo
	available api.Resource // for the task, without the units
	units     []api.Unit
	held      []api.Resource // what each unit holds on the node

	gone []*api.TaskInfo // of surplusUnit
}

func (s *victimSet) reset(t *api.TaskInfo, node *api.NodeInfo) {
	s.task, s.node = t, node
	s.available = node.Available(t.Priority, api.Future)
	s.units, s.held = s.units[:0], s.held[:0]
}

// sufficient reports whether the task fits without the units.
func (s *victimSet) sufficient() bool { return s.task.Request.InsufficientDimension(s.available) < 0 }

// reducesShortfall reports whether v holds a dimension that is still insufficient.
func (s *victimSet) reducesShortfall(v *api.TaskInfo) bool {
	for d, n := range s.task.Request {
		if n > s.available.At(d) && v.Request.At(d) > 0 {
			return true
		}
	}
	return false
}

// add adds a unit, which replaces those that it contains.
func (s *victimSet) add(u api.Unit, held api.Resource) {
	for i := len(s.units) - 1; i >= 0 && len(u.Tasks) > 1; i-- {
		if s.units[i].Job == u.Job && slices.Contains(u.Tasks, s.units[i].Tasks[0]) {
			s.remove(i)
		}
	}
	s.units, s.held = append(s.units, u), append(s.held, held)
	s.available.Add(held)
}

func (s *victimSet) remove(i int) {
	s.available.Sub(s.held[i])
	s.units, s.held = slices.Delete(s.units, i, i+1), slices.Delete(s.held, i, i+1)
}

// surplusUnit returns the unit of surplus in which v may be evicted besides the units of the set, some of which it may
// contain, and whether there is one.
func (s *victimSet) surplusUnit(v *api.TaskInfo) (api.Unit, bool) {
	if v.Job.Surplus() == 0 { // as of most jobs
		return api.Unit{}, false
	}
	s.gone = s.gone[:0]
	for i := range s.units {
		if s.units[i].Job == v.Job && !s.units[i].Whole {
			s.gone = append(s.gone, s.units[i].Tasks...)
		}
	}
	if v.Job.SubGroups != nil && slices.Contains(s.gone, v) {
		return api.Unit{}, false // with its part
	}
	return api.SurplusUnit(v, s.gone...)
}

func (s *victimSet) hasGang(j *api.JobInfo) bool {
	return slices.ContainsFunc(s.units, func(u api.Unit) bool { return u.Job == j && u.Whole })
}

// reprieve removes units without which the set is still sufficient, in reverse order. The last unit is needed: before it
// was added, the set was not sufficient.
func (s *victimSet) reprieve() {
	for i := len(s.units) - 2; i >= 0; i-- {
		if s.task.Request.InsufficientDimension(s.available.Minus(s.held[i])) < 0 {
			s.remove(i)
		}
	}
}
