// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// find returns the levels that a constraint of a group of this source names, or why there are none.
func (tt *topologyTable) find(constraint *v1alpha1.TopologyConstraint, source api.GroupSource) (required, preferred *api.TopologyLevel, unknown string) {
	required, unknown = tt.level(constraint.Topology, constraint.RequiredTopologyLevel)
	if unknown == "" {
		preferred, unknown = tt.level(constraint.Topology, constraint.PreferredTopologyLevel)
	}
	if unknown == "" && required != nil && preferred != nil && !preferred.Within(required) {
		if source == api.SourceKAI && preferred.Topology == required.Topology {
			return required, nil, "" // it has no effect there
		}
		unknown = fmt.Sprintf("preferredTopologyLevel %s is wider than requiredTopologyLevel %s", describeLevel(preferred), describeLevel(required))
	}
	if unknown != "" {
		if source == api.SourceKAI && constraint.Topology != api.AnyTopology && tt.byName[constraint.Topology] == nil {
			unknown += "; create a Topology of " + v1alpha1.GroupName + " with the name and the levels of that of KAI Scheduler"
		}
		return nil, nil, unknown
	}
	return required, preferred, ""
}

// level returns the level with a name or node label in a topology, or why there is none; nil for an empty name.
func (tt *topologyTable) level(topology, wanted string) (level *api.TopologyLevel, unknown string) {
	if wanted == "" {
		return nil, ""
	}
	if topology == api.AnyTopology {
		if _, isTier := api.TierOf(wanted); !isTier {
			return tt.anyLevel(wanted)
		}
		topology = ""
	}
	name, levels, unknown := tt.topology(topology)
	if unknown != "" {
		return nil, unknown
	}
	return levelOf(name, levels, wanted)
}

// anyLevel returns the level with a name or node label of the only topology that has it; else, if it is the key of a node
// label with a prefix, a level of its own. A name without a prefix is more often misspelt than a label.
func (tt *topologyTable) anyLevel(wanted string) (level *api.TopologyLevel, unknown string) {
	names := slices.Sorted(maps.Keys(tt.byName))
	var with []string // the topologies that have it
	for _, name := range names {
		found, missing := levelOf(name, tt.byName[name], wanted)
		if missing != "" {
			continue
		}
		if level == nil || level.Key() != found.Key() {
			with = append(with, name)
		}
		if level == nil {
			level = found
		}
	}
	switch {
	case len(with) > 1:
		return nil, fmt.Sprintf("several topologies have a level %q: %s; name one with the annotation %s", wanted, strings.Join(with, ", "), v1alpha1.AnnotationTopology)
	case level != nil:
		return level, ""
	case tt.unread:
		return nil, "the topologies have not been read yet"
	case strings.Contains(wanted, "/"):
		if tt.labels[wanted] == nil {
			tt.labels[wanted] = api.LabelLevel(wanted)
		}
		return tt.labels[wanted], ""
	case len(names) == 1:
		return levelOf(names[0], tt.byName[names[0]], wanted)
	}
	return nil, fmt.Sprintf("no topology has a level %q, and it is no node label with a prefix, such as %s", wanted, v1.LabelTopologyZone)
}

func describeLevel(l *api.TopologyLevel) string {
	if l.Topology == l.Name { // a node label
		return l.Name
	}
	return l.Name + " of topology " + l.Topology
}

// levelOf returns the level with a name or node label; nil for an empty name.
func levelOf(topology string, levels []*api.TopologyLevel, wanted string) (level *api.TopologyLevel, unknown string) {
	if wanted == "" {
		return nil, ""
	}
	if number, isTier := api.TierOf(wanted); isTier {
		return tierOf(topology, levels, number)
	}
	for _, by := range []func(*api.TopologyLevel) string{nameOf, labelOf} {
		if at := slices.IndexFunc(levels, func(l *api.TopologyLevel) bool { return by(l) == wanted }); at >= 0 {
			return levels[at], ""
		}
	}
	existing := make([]string, len(levels))
	for i, l := range levels {
		existing[i] = l.Name
	}
	return nil, fmt.Sprintf("no level %q in topology %s", wanted, topology) + suggest(wanted, existing)
}

func nameOf(l *api.TopologyLevel) string { return l.Name }

func labelOf(l *api.TopologyLevel) string { return l.Labels[len(l.Labels)-1] }

// suggest lists the names that exist, and the one that is close to a missing name.
func suggest(missing string, names []string) string {
	if len(names) == 0 {
		return "; none exists"
	}
	text := ": " + strings.Join(names, ", ")
	if closest, ok := api.Closest(missing, slices.Clone(names)); ok {
		text += fmt.Sprintf("; did you mean %q?", closest)
	}
	return text
}

// tierOf returns the level with a number, from the narrowest on. Nodes are not counted: in Volcano they are no tier.
func tierOf(topology string, levels []*api.TopologyLevel, number int64) (level *api.TopologyLevel, unknown string) {
	if labelOf(levels[len(levels)-1]) == v1.LabelHostname {
		levels = levels[:len(levels)-1]
	}
	if number >= 1 && number <= int64(len(levels)) {
		return levels[int64(len(levels))-number], ""
	}
	tiers := make([]string, len(levels))
	for i, l := range levels {
		tiers[len(levels)-1-i] = fmt.Sprintf("%d is %s", len(levels)-i, l.Name)
	}
	return nil, fmt.Sprintf("no tier %d in topology %s (%s)", number, topology, strings.Join(tiers, ", "))
}
