// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// topologyTable holds the topologies, and the jobs with a constraint.
type topologyTable struct {
	byName      map[string][]*api.TopologyLevel // the levels of each, the widest first
	uids        map[string]types.UID
	labels      map[string]*api.TopologyLevel // node labels that are levels by themselves
	constrained map[api.JobID]*api.JobInfo
	wanted      bool // by a plugin
	unread      bool // not all topologies that exist may be here yet
}

func newTopologyTable(unread bool) topologyTable {
	return topologyTable{
		byName: map[string][]*api.TopologyLevel{}, uids: map[string]types.UID{}, labels: map[string]*api.TopologyLevel{},
		constrained: map[api.JobID]*api.JobInfo{}, unread: unread,
	}
}

// list returns the topologies by name; nil without topologies.
func (tt *topologyTable) list() []api.Topology {
	if len(tt.byName) == 0 {
		return nil
	}
	list := make([]api.Topology, 0, len(tt.byName))
	for _, name := range slices.Sorted(maps.Keys(tt.byName)) {
		list = append(list, api.Topology{Name: name, UID: tt.uids[name], Levels: tt.byName[name]})
	}
	return list
}

// Topologies are the events about topologies.
type Topologies struct{ c *Cluster }

// TopologiesOf returns the functions that apply what the API server shows of topologies.
func TopologiesOf(c *Cluster) Topologies { return Topologies{c} }

// Set adds or updates a topology. Gangs that run stay where they are.
func (t Topologies) Set(topology *v1alpha1.Topology) {
	jobs := &t.c.jobs
	jobs.topologies.uids[topology.Name] = topology.UID
	before, now := jobs.topologies.byName[topology.Name], levelsOf(topology)
	if before != nil && slices.EqualFunc(before, now, equalLevels) {
		return
	}
	for i, level := range now { // a level that has not changed stays the same object, and so do the classes of its tasks
		if at := slices.IndexFunc(before, func(old *api.TopologyLevel) bool { return equalLevels(old, level) }); at >= 0 {
			now[i] = before[at]
		}
	}
	jobs.topologies.byName[topology.Name] = now
	t.changed()
}

// Delete deletes a topology. Gangs that wait for a domain of it wait until it exists again.
func (t Topologies) Delete(name string) {
	jobs := &t.c.jobs
	if _, known := jobs.topologies.byName[name]; known {
		delete(jobs.topologies.byName, name)
		delete(jobs.topologies.uids, name)
		t.changed()
	}
}

// Complete tells the model that all topologies that exist have been set, if Options.TopologiesUnread was set.
func (t Topologies) Complete() {
	if t.c.jobs.topologies.unread {
		t.c.jobs.topologies.unread = false
		t.changed()
	}
}

// Needed reports whether a job has a constraint, or Levels was called.
func (t Topologies) Needed() bool {
	return t.c.jobs.topologies.wanted || len(t.c.jobs.topologies.constrained) > 0
}

// Levels returns the levels of a topology, the widest first, or of the only one if the name is empty; or why there are none.
// The topologies are read from the first call on, so they may be missing until the next session.
func (t Topologies) Levels(name string) (levels []*api.TopologyLevel, unknown string) {
	tt := &t.c.jobs.topologies
	tt.wanted = true
	_, levels, unknown = tt.topology(name)
	return levels, unknown
}

// Unknown returns why the levels of a constraint do not exist; empty if they do.
func (t Topologies) Unknown(constraint *v1alpha1.TopologyConstraint) string {
	_, _, unknown := t.c.jobs.topologies.find(constraint, api.SourceOwn)
	return unknown
}

// changed reads all constraints again.
func (t Topologies) changed() {
	jobs := &t.c.jobs
	if len(jobs.topologies.constrained) == 0 {
		return
	}
	t.c.Events().changed()
	for _, j := range jobs.topologies.constrained {
		jobs.topologies.read(j)
		jobs.markChanged(j)
	}
}

func levelsOf(topology *v1alpha1.Topology) []*api.TopologyLevel {
	var levels []*api.TopologyLevel
	var labels []string
	for _, l := range topology.Spec.Levels {
		labels = append(labels, l.NodeLabel)
		name := l.Name
		if name == "" {
			name = l.NodeLabel
		}
		levels = append(levels, &api.TopologyLevel{Topology: topology.Name, Name: name, Labels: slices.Clone(labels)})
	}
	return levels
}

func equalLevels(a, b *api.TopologyLevel) bool {
	return a.Name == b.Name && slices.Equal(a.Labels, b.Labels)
}

// read finds the levels that the group of a job requires and prefers.
func (tt *topologyTable) read(j *api.JobInfo) {
	constraint, subGroups := specOf(j)
	if !api.Constrained(constraint, subGroups) {
		tt.forget(j)
		return
	}
	tt.constrained[j.ID] = j
	j.PreferredLevel, j.PreferredWait = nil, 0
	var required *api.TopologyLevel
	unknown := ""
	if constraint != nil {
		required, j.PreferredLevel, unknown = tt.find(constraint, j.Source)
		if j.PreferredLevel != nil && constraint.PreferredWait != nil {
			j.PreferredWait = constraint.PreferredWait.Duration
		}
	}
	if unknown == "" {
		unknown = tt.readSubGroups(j, subGroups, required)
	}
	j.Tracking.UnknownTopology = unknown
	setLevel(j, required)
}

// forget removes a job, or its constraint.
func (tt *topologyTable) forget(j *api.JobInfo) {
	delete(tt.constrained, j.ID)
	if len(tt.constrained) == 0 {
		clear(tt.labels)
	}
	j.Tracking.UnknownTopology, j.PreferredLevel, j.PreferredWait = "", nil, 0
	setLevel(j, nil)
}

func setLevel(j *api.JobInfo, level *api.TopologyLevel) {
	if j.TopologyLevel == level {
		return
	}
	j.TopologyLevel = level
	for _, t := range j.Tasks {
		t.Tracking.Class = nil
	}
}

// topology returns the levels of a topology, or of the only one if the name is empty.
func (tt *topologyTable) topology(name string) (found string, levels []*api.TopologyLevel, unknown string) {
	names := slices.Sorted(maps.Keys(tt.byName))
	if name == "" {
		switch len(names) {
		case 0:
			return "", nil, "no topology exists"
		case 1:
			name = names[0]
		default:
			return "", nil, "no topology is named, and there are several: " + strings.Join(names, ", ")
		}
	}
	levels, known := tt.byName[name]
	if !known {
		return "", nil, fmt.Sprintf("no topology %q", name) + suggest(name, names)
	}
	return name, levels, ""
}

// requiredLevel returns the level that the job of a task requires; nil if there is none.
func requiredLevel(t *api.TaskInfo) *api.TopologyLevel {
	if t.Job == nil {
		return nil
	}
	return t.Job.TopologyLevel
}
