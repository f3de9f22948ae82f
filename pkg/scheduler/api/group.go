// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// GroupSource is an API whose PodGroups the scheduler reads. The zero value is that of the scheduler itself.
type GroupSource string

// The sources, by their names in the policy.
const (
	SourceOwn              GroupSource = "" // named own
	SourceNative           GroupSource = "native"
	SourceSchedulerPlugins GroupSource = "scheduler-plugins"
	SourceVolcano          GroupSource = "volcano"
	SourceKAI              GroupSource = "kai"

	// SourceComposite are the composite groups of Kubernetes, which are trees of native groups. It is a part of SourceNative: in
	// the policy it has no name of its own, and both are enabled together.
	SourceComposite GroupSource = "composite"
)

// String returns the name of the source in the policy.
func (s GroupSource) String() string {
	if s == SourceOwn {
		return "own"
	}
	return string(s)
}

// ShowsPhase reports whether the status of the groups of the source has a phase and counts of pods.
func (s GroupSource) ShowsPhase() bool {
	return s != SourceNative && s != SourceComposite && s != SourceKAI
}

// GroupSources are the sources that are enabled besides SourceOwn, which always is.
type GroupSources struct{ Native, SchedulerPlugins, Volcano, KAI bool }

// AllGroupSources returns all of them, for clients that do not know the policy.
func AllGroupSources() GroupSources {
	return GroupSources{Native: true, SchedulerPlugins: true, Volcano: true, KAI: true}
}

// Has reports whether a source is enabled.
func (s GroupSources) Has(source GroupSource) bool {
	switch source {
	case SourceNative, SourceComposite:
		return s.Native
	case SourceSchedulerPlugins:
		return s.SchedulerPlugins
	case SourceVolcano:
		return s.Volcano
	case SourceKAI:
		return s.KAI
	}
	return source == SourceOwn
}

// Any reports whether another source than SourceOwn is enabled.
func (s GroupSources) Any() bool { return s != GroupSources{} }

// Group is a PodGroup of any source, in the terms of the PodGroups of this scheduler. It is never modified.
type Group struct {
	*v1alpha1.PodGroup
	Source GroupSource

	// NotSupported names a field that the scheduler cannot honour, and why; then no pod of the group starts. Empty if there
	// is none.
	NotSupported string
	// Priority is a number that the group itself has; nil if its priority is that of its class or of its pods.
	Priority *int32
	// RunTime is what the group declares. InvalidRunTime says what of it cannot be read, and why; empty if all can.
	RunTime        RunTime
	InvalidRunTime string
	// Basic groups are no gangs: their pods count as if they named no group.
	Basic bool
	// Whole groups lose all of their pods or none: no pod is evicted as surplus.
	Whole bool
	// NeverPreempts: no pod is evicted for the group.
	NeverPreempts bool
	// NonPreemptable groups are never victims.
	NonPreemptable bool
	// NonPreemptableFrom is the priority from which the group is never a victim; nil if there is none.
	NonPreemptableFrom *int32

	// Parent is the composite group of the same namespace that the group is a part of; empty if there is none. MinGroups is how
	// many of its parts a composite group needs.
	Parent    string
	MinGroups int32
	// Tree is what the group is in its tree of groups; nil if it is in none. Package grouptree derives it.
	Tree *GroupTree
}

// GroupTree is what a tree of groups means for one of them. The root has the job of all pods of the tree.
type GroupTree struct {
	// Root is the namespace/name of the root; empty for the root itself, and for groups that have none.
	Root string
	// Refusal is why no pod of the tree starts; nil if there is no reason.
	Refusal *Verdict
	// Parts are the other groups of the tree, by their subgroups in the root; nil unless the group is the root.
	Parts map[string]*Group
}

// IsPart reports whether the group, which may be nil, is in a tree of groups.
func (g *Group) IsPart() bool { return g != nil && (g.Source == SourceComposite || g.Parent != "") }

// HasJob reports whether the group, which may be nil, has a job. Pods of others count as if they named no group, or in the
// job of the root of the tree.
func (g *Group) HasJob() bool { return g != nil && !g.Basic && g.root() == "" }

func (g *Group) root() string {
	if g == nil || g.Tree == nil {
		return ""
	}
	return g.Tree.Root
}

// Parts returns the other groups of the tree, by their subgroups, if the group, which may be nil, is the root of a tree.
func (g *Group) Parts() map[string]*Group {
	if g == nil || g.Tree == nil {
		return nil
	}
	return g.Tree.Parts
}

// IsWhole reports whether the group, which may be nil, loses all of its pods or none.
func (g *Group) IsWhole() bool { return g != nil && g.Whole }

// IsNonPreemptable reports whether the group, which may be nil, is never a victim with a priority.
func (g *Group) IsNonPreemptable(priority int32) bool {
	return g != nil && (g.NonPreemptable || g.NonPreemptableFrom != nil && priority >= *g.NonPreemptableFrom)
}

// OwnGroup returns a PodGroup of this scheduler as a Group.
func OwnGroup(g *v1alpha1.PodGroup) *Group {
	own := &Group{PodGroup: g}
	own.ReadRunTime(g.Annotations, g.Labels)
	own.ReadTopology(g.Annotations)
	return own
}

// EqualGroups reports whether two versions of a group mean the same for scheduling.
func EqualGroups(a, b *Group) bool {
	return a.NotSupported == b.NotSupported && a.Basic == b.Basic && a.Whole == b.Whole && a.NonPreemptable == b.NonPreemptable &&
		ptr.Equal(a.Priority, b.Priority) && ptr.Equal(a.NonPreemptableFrom, b.NonPreemptableFrom) && a.NeverPreempts == b.NeverPreempts &&
		a.Parent == b.Parent && a.MinGroups == b.MinGroups && equalTrees(a.Tree, b.Tree) &&
		a.RunTime == b.RunTime && a.InvalidRunTime == b.InvalidRunTime && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func equalTrees(a, b *GroupTree) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case a.Refusal == nil || b.Refusal == nil:
		if a.Refusal != b.Refusal {
			return false
		}
	case a.Refusal.Reason != b.Refusal.Reason || a.Refusal.Detail != b.Refusal.Detail:
		return false
	}
	return a.Root == b.Root && maps.EqualFunc(a.Parts, b.Parts, func(x, y *Group) bool { return x.UID == y.UID && x.Whole == y.Whole })
}

// GroupKey names a group: groups of different sources may have the same namespace and name.
type GroupKey struct {
	Source GroupSource
	Name   string // namespace/name
}

// Key returns the key of the group.
func (g *Group) Key() GroupKey { return GroupKey{g.Source, g.Namespace + "/" + g.Name} }

// JobID returns the id of the job of a group.
func (k GroupKey) JobID() JobID {
	if k.Source == SourceOwn {
		return GroupJobID(k.Name)
	}
	return JobID(string(k.Source) + "/" + k.Name)
}

// APIVersion returns an apiVersion of the objects of a source. That of a group is in its TypeMeta.
func (s GroupSource) APIVersion() string {
	switch s {
	case SourceNative:
		return "scheduling.k8s.io/v1alpha2"
	case SourceComposite:
		return "scheduling.k8s.io/v1alpha3"
	case SourceSchedulerPlugins:
		return "scheduling.x-k8s.io/v1alpha1"
	case SourceVolcano:
		return "scheduling.volcano.sh/v1beta1"
	case SourceKAI:
		return "scheduling.run.ai/v2alpha2"
	}
	return v1alpha1.SchemeGroupVersion.String()
}
