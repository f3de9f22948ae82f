// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// readSubGroups finds the levels that the subgroups of a job require, which itself requires a level or none. It returns why
// there are none; empty if all exist.
func (tt *topologyTable) readSubGroups(j *api.JobInfo, specs []v1alpha1.SubGroup, required *api.TopologyLevel) (unknown string) {
	root := j.SubGroups
	if root == nil {
		return ""
	}
	for i := range specs {
		s := root.Named(specs[i].Name)
		levels := [2]*api.TopologyLevel{}
		for k, constraint := range []*v1alpha1.RequiredTopology{specs[i].TopologyConstraint, specs[i].SegmentTopologyConstraint} {
			if constraint == nil || unknown != "" {
				continue
			}
			levels[k], _, unknown = tt.find(&v1alpha1.TopologyConstraint{Topology: constraint.Topology, RequiredTopologyLevel: constraint.RequiredTopologyLevel}, j.Source)
			if unknown != "" {
				unknown = fmt.Sprintf("subgroup %q: %s", s.Name, unknown)
			}
		}
		s.TopologyLevel, s.SegmentLevel = levels[0], levels[1]
	}
	if unknown == "" {
		unknown = checkLevels(root, required)
	}
	if unknown != "" {
		for i := range specs {
			s := root.Named(specs[i].Name)
			s.TopologyLevel, s.SegmentLevel = nil, nil
		}
	}
	deriveLevels(root)
	for _, t := range j.Tasks {
		t.Tracking.Class = nil
	}
	return unknown
}

// checkLevels returns why the levels of a subgroup and its children contradict the level that is required around it; empty if
// they do not: their domains are inside those of that level.
func checkLevels(s *api.SubGroup, outer *api.TopologyLevel) string {
	for _, level := range []*api.TopologyLevel{s.TopologyLevel, s.SegmentLevel} {
		switch {
		case level == nil:
			continue
		case outer != nil && !level.Within(outer):
			return fmt.Sprintf("subgroup %q requires level %s of topology %s, whose domains are not inside those of level %s of topology %s, which is required around it",
				s.Name, level.Name, level.Topology, outer.Name, outer.Topology)
		}
		outer = level
	}
	for _, c := range s.Children {
		if s.SegmentSize > 0 {
			break // segments have the level of their subgroup
		}
		if why := checkLevels(c, outer); why != "" {
			return why
		}
	}
	return ""
}

// deriveLevels sets the levels of the segments that exist, and which subgroups have levels below them.
func deriveLevels(s *api.SubGroup) {
	s.Constrained = s.TopologyLevel != nil || s.SegmentLevel != nil
	for _, c := range s.Children {
		if s.SegmentSize > 0 {
			c.TopologyLevel = s.SegmentLevel
		}
		deriveLevels(c)
		s.Constrained = s.Constrained || c.Constrained
	}
}
