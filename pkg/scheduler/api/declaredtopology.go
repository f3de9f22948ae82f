// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// What is in a topology constraint that users of other APIs state, and in no PodGroup of this scheduler.
const (
	// AnyTopology is in place of the name of a topology: the level is that of the topology that has it, or else the node label
	// alone.
	AnyTopology = "*"
	// SliceIndex is in place of the label by which segments differ: the index of the pod, whichever label has it.
	SliceIndex = "*"
	// tier is in place of the name of a level: its number, from the narrowest on. No level has a name with a space.
	tier = "tier "
)

// TierLevel returns the name of the level with a number: 1 is the narrowest one.
func TierLevel(n int64) string { return tier + strconv.FormatInt(n, 10) }

// TierOf returns the number of a level that TierLevel has named.
func TierOf(level string) (n int64, ok bool) {
	number, found := strings.CutPrefix(level, tier)
	n, err := strconv.ParseInt(number, 10, 64)
	return n, found && err == nil
}

// Annotations of Kueue and KAI Scheduler about the topology.
const (
	annotationKueueRequired    = "kueue.x-k8s.io/podset-required-topology"
	annotationKueuePreferred   = "kueue.x-k8s.io/podset-preferred-topology"
	annotationKueueSlice       = "kueue.x-k8s.io/podset-slice-required-topology"
	annotationKueueSliceSize   = "kueue.x-k8s.io/podset-slice-size"
	annotationKueueSliceLayers = "kueue.x-k8s.io/podset-slice-required-topology-constraints"

	annotationKAITopology  = "kai.scheduler/topology"
	annotationKAIRequired  = "kai.scheduler/topology-required-placement"
	annotationKAIPreferred = "kai.scheduler/topology-preferred-placement"
)

// TopologyAnnotations returns the annotations that declare where the pods of a gang run.
func TopologyAnnotations() []string {
	return []string{
		v1alpha1.AnnotationTopology, v1alpha1.AnnotationTopologyRequired, v1alpha1.AnnotationTopologyPreferred,
		annotationKAITopology, annotationKAIRequired, annotationKAIPreferred,
		annotationKueueRequired, annotationKueuePreferred, annotationKueueSlice, annotationKueueSliceSize, annotationKueueSliceLayers,
	}
}

// DeclaredTopology is what annotations say about the domains where the pods of a gang run. The zero value says nothing.
type DeclaredTopology struct {
	Topology            string // AnyTopology if none is named
	Required, Preferred string // levels: names or node labels; empty if there is none
	// Slice is the level of which each slice of SliceSize pods shares a domain.
	Slice     string
	SliceSize int32
	// NotSupported names an annotation that cannot be honoured, and why; empty if there is none.
	NotSupported string
}

// TopologyOf returns what annotations declare; nil if they say nothing. Of the annotations of this scheduler, of KAI Scheduler
// and of Kueue, the first that are there count.
func TopologyOf(annotations map[string]string) *DeclaredTopology {
	if len(annotations) == 0 {
		return nil // as most pods
	}
	d := DeclaredTopology{Topology: annotations[v1alpha1.AnnotationTopology]}
	for _, of := range [...]struct{ topology, required, preferred string }{
		{v1alpha1.AnnotationTopology, v1alpha1.AnnotationTopologyRequired, v1alpha1.AnnotationTopologyPreferred},
		{annotationKAITopology, annotationKAIRequired, annotationKAIPreferred},
		{v1alpha1.AnnotationTopology, annotationKueueRequired, annotationKueuePreferred},
	} {
		if d.Required, d.Preferred = annotations[of.required], annotations[of.preferred]; d.Required != "" || d.Preferred != "" {
			if d.Topology == "" {
				d.Topology = annotations[of.topology]
			}
			if of.required != annotationKueueRequired {
				return d.named()
			}
			break
		}
	}
	d.readSlices(annotations)
	if d == (DeclaredTopology{Topology: d.Topology}) {
		return nil
	}
	return d.named()
}

// named returns d with AnyTopology if it names none.
func (d DeclaredTopology) named() *DeclaredTopology {
	if d.Topology == "" {
		d.Topology = AnyTopology
	}
	return &d
}

// readSlices reads the annotations of Kueue about parts of a pod set.
func (d *DeclaredTopology) readSlices(annotations map[string]string) {
	size, sized := annotations[annotationKueueSliceSize]
	d.Slice = annotations[annotationKueueSlice]
	n, err := strconv.ParseInt(size, 10, 32)
	switch {
	case annotations[annotationKueueSliceLayers] != "":
		d.NotSupported = annotation(annotationKueueSliceLayers)
	case d.Slice == "" && !sized:
	case d.Slice == "":
		d.NotSupported = annotation(annotationKueueSliceSize) + " without " + annotationKueueSlice
	case !sized:
		d.NotSupported = annotation(annotationKueueSlice) + " without " + annotationKueueSliceSize
	case err != nil || n < 1:
		d.NotSupported = fmt.Sprintf("annotation %s is %q, not a positive number", annotationKueueSliceSize, size)
	default:
		d.SliceSize = int32(n)
	}
}

func annotation(key string) string { return "annotation " + key }

// Constraint returns the constraint of the whole gang; nil if there is none.
func (d *DeclaredTopology) Constraint() *v1alpha1.TopologyConstraint {
	if d.Required == "" && d.Preferred == "" {
		return nil
	}
	return &v1alpha1.TopologyConstraint{Topology: d.Topology, RequiredTopologyLevel: d.Required, PreferredTopologyLevel: d.Preferred}
}

// sliceGroup is the name of the subgroup whose segments are the slices.
const sliceGroup = "slices"

// SubGroups returns the slices of a gang of minMember pods as the segments of a subgroup of all its pods; nil without slices.
// Pods that are no gang start by whole slices. It returns what cannot be honoured, and why.
func (d *DeclaredTopology) SubGroups(minMember int32) (list []v1alpha1.SubGroup, notSupported string) {
	switch {
	case d.SliceSize == 0:
		return nil, ""
	case minMember > 1 && minMember%d.SliceSize != 0:
		return nil, fmt.Sprintf("annotation %s is %d, but %d pods start together, which are no whole slices", annotationKueueSliceSize, d.SliceSize, minMember)
	}
	return []v1alpha1.SubGroup{{
		Name: sliceGroup, Selector: &metav1.LabelSelector{}, SegmentSize: d.SliceSize, SegmentBy: SliceIndex,
		MinSubGroup:               ptr.To(max(minMember/d.SliceSize, 1)),
		SegmentTopologyConstraint: &v1alpha1.RequiredTopology{Topology: d.Topology, RequiredTopologyLevel: d.Slice},
	}}, ""
}

// ReadTopology adds what annotations of the group declare about its topology. What its spec says takes precedence; then only the
// name of the topology is added.
func (g *Group) ReadTopology(annotations map[string]string) {
	d := TopologyOf(annotations)
	if g.HasTopologyConstraint() {
		if name := annotations[v1alpha1.AnnotationTopology]; name != "" && g.Source != SourceOwn {
			g.nameTopology(name)
		}
		return
	}
	if d == nil || g.NotSupported != "" {
		return
	}
	g.Basic = false // its pods start one by one, but in one domain
	spec := g.Spec.DeepCopy()
	slices, notSupported := d.SubGroups(spec.MinMember)
	switch {
	case d.NotSupported != "":
		notSupported = d.NotSupported
	case len(slices) > 0 && (len(spec.SubGroups) > 0 || g.IsPart()):
		notSupported = annotation(annotationKueueSlice) + " of a group with subgroups"
	case g.Parent != "" && d.Preferred != "":
		notSupported = "a preferred topology level of a part of a tree of groups"
	}
	g.NotSupported = notSupported
	if notSupported != "" {
		return
	}
	spec.TopologyConstraint = d.Constraint()
	spec.SubGroups = append(spec.SubGroups, slices...)
	read := *g.PodGroup // belongs to an informer
	read.Spec = *spec
	g.PodGroup = &read
}

// HasTopologyConstraint reports whether the group, or one of its subgroups, has a topology constraint.
func (g *Group) HasTopologyConstraint() bool {
	return Constrained(g.Spec.TopologyConstraint, g.Spec.SubGroups)
}

// Constrained reports whether a gang with this constraint, or one of its subgroups, must be in a topology domain or prefers one.
func Constrained(constraint *v1alpha1.TopologyConstraint, subGroups []v1alpha1.SubGroup) bool {
	return constraint != nil || slices.ContainsFunc(subGroups, func(s v1alpha1.SubGroup) bool {
		return s.TopologyConstraint != nil || s.SegmentTopologyConstraint != nil
	})
}

// nameTopology sets the topology of constraints that name none. The spec belongs to the group: it was converted from another
// API.
func (g *Group) nameTopology(name string) {
	set := func(of *string) {
		if *of == "" || *of == AnyTopology {
			*of = name
		}
	}
	if g.Spec.TopologyConstraint != nil {
		set(&g.Spec.TopologyConstraint.Topology)
	}
	for i := range g.Spec.SubGroups {
		for _, constraint := range []*v1alpha1.RequiredTopology{g.Spec.SubGroups[i].TopologyConstraint, g.Spec.SubGroups[i].SegmentTopologyConstraint} {
			if constraint != nil {
				set(&constraint.Topology)
			}
		}
	}
}

// DeclaredTopologyOf returns what the pods of a gang without PodGroup declare, except for pods that have ended. The pods
// must agree, and have an index if they are divided into slices.
func DeclaredTopologyOf(tasks []*TaskInfo) DeclaredTopology {
	var first, other, unnumbered *TaskInfo // by name
	declared := false
	for _, t := range tasks {
		if t.Status.Ended() {
			continue
		}
		declared = declared || t.Tracking.Topology != nil
		if first == nil || t.Key < first.Key {
			first = t
		}
	}
	if !declared {
		return DeclaredTopology{}
	}
	for _, t := range tasks {
		switch {
		case t.Status.Ended():
		case !ptr.Equal(t.Tracking.Topology, first.Tracking.Topology):
			if other == nil || t.Key < other.Key {
				other = t
			}
		case t.Tracking.Topology != nil && t.Tracking.Topology.SliceSize > 0 && t.Ordinal == 0:
			if unnumbered == nil || t.Key < unnumbered.Key {
				unnumbered = t
			}
		}
	}
	switch {
	case other != nil:
		return DeclaredTopology{NotSupported: fmt.Sprintf(
			"different topology annotations of the pods of one gang, such as %s and %s; create a PodGroup with a subgroup for each kind of pods", first.Key, other.Key)}
	case unnumbered != nil:
		return DeclaredTopology{NotSupported: fmt.Sprintf(
			"annotation %s of pods without an index, such as %s; create an indexed Job, or a PodGroup with subgroups", annotationKueueSlice, unnumbered.Key)}
	}
	return *first.Tracking.Topology
}
