// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

const (
	// completionIndex is the label by which pods differ in segments if the subgroup names none.
	completionIndex = "batch.kubernetes.io/job-completion-index"
	// jobName is the label of pods of a Job.
	jobName = "batch.kubernetes.io/job-name"
)

// indexLabels returns the labels that number the pods of a controller. The first one that a pod has counts.
func indexLabels() [3]string {
	return [...]string{completionIndex, "apps.kubernetes.io/pod-index", "training.kubeflow.org/replica-index"}
}

// numbersPods reports whether a label numbers the pods, so that its value divided by the size of a segment is the number of
// the segment.
func numbersPods(label string) bool {
	labels := indexLabels()
	return slices.Contains(labels[:], label)
}

// ordinalOf returns what TaskInfo.Ordinal is for a pod.
func ordinalOf(pod *v1.Pod) uint32 { return indexOf(pod.Labels) }

// indexOf returns one more than the index that the first label has which numbers pods; 0 if there is none.
func indexOf(set labels.Set) uint32 {
	for _, label := range indexLabels() {
		if value, labelled := set[label]; labelled {
			index, err := strconv.ParseUint(value, 10, 31)
			if err != nil {
				return 0
			}
			return uint32(index) + 1
		}
	}
	return 0
}

// specOf returns the topology constraint and the subgroups of a job: those of its group, else what its pods declare.
func specOf(j *api.JobInfo) (*v1alpha1.TopologyConstraint, []v1alpha1.SubGroup) {
	switch {
	case j.Group != nil:
		return j.Group.Spec.TopologyConstraint, j.Group.Spec.SubGroups
	case j.Tracking.Topology == api.DeclaredTopology{}:
		return nil, nil
	}
	slices, _ := j.Tracking.Topology.SubGroups(j.Tracking.SlicedFor)
	return j.Tracking.Topology.Constraint(), slices
}

// readSubGroups builds the tree of the subgroups that the group of a job specifies, and counts the members in it.
func readSubGroups(j *api.JobInfo) {
	_, specs := specOf(j)
	if len(specs) == 0 && j.SubGroups == nil {
		return // as for most jobs
	}
	for _, t := range j.Tasks {
		t.Tracking.SubGroup, t.Tracking.Class = nil, nil
	}
	j.SubGroups, j.Tracking.InvalidSubGroups = nil, ""
	if len(specs) == 0 {
		return
	}
	root, err := newSubGroups(j.Group, specs)
	if err != nil {
		j.Tracking.InvalidSubGroups = err.Error()
		return
	}
	root.MinMember = j.MinMember
	j.SubGroups, j.MinMember = root, root.Need()
	for _, t := range j.Tasks {
		t.Tracking.SubGroup = subGroupOf(j, t.Pod)
		for s := t.SubGroup(); s != nil; s = s.Parent {
			s.Add(t, +1)
		}
	}
}

// joinSubGroup moves t, which must be detached, into its subgroup in its job.
func joinSubGroup(t *api.TaskInfo) {
	before := t.SubGroup()
	if t.Job == nil || t.Job.SubGroups == nil {
		t.Tracking.SubGroup = nil
	} else {
		t.Tracking.SubGroup = subGroupOf(t.Job, t.Pod)
	}
	if before == t.SubGroup() {
		return
	}
	t.Tracking.Class = nil
	if before != nil {
		before.Prune()
	}
}

// subGroupOf returns the subgroup of a pod in a job: the one that it names, else the first whose selector matches, else the
// root. In a tree of groups it is that of the PodGroup that the pod names. If the subgroup is divided into segments, it
// returns the segment, which it adds if there is none.
func subGroupOf(j *api.JobInfo, pod *v1.Pod) *api.SubGroup {
	root := j.SubGroups
	if j.Source == api.SourceComposite {
		_, name, _ := strings.Cut(api.NativeGroupOf(pod), "/")
		if part := j.Group.Parts()[name]; part == nil || part.Source == api.SourceComposite {
			return root
		}
		return root.Named(name)
	}
	set := labels.Set(pod.Labels)
	if value := pod.Annotations[api.VolcanoTaskSpec]; value != "" && !set.Has(api.VolcanoTaskSpec) {
		set = maps.Clone(set)
		if set == nil {
			set = labels.Set{}
		}
		set[api.VolcanoTaskSpec] = value
	}
	leaf := root.Select(set[v1alpha1.LabelSubGroup], set)
	switch {
	case leaf == nil:
		return root
	case leaf.SegmentSize == 0:
		return leaf
	}
	number, name, ok := segmentOf(leaf, set)
	if !ok {
		return root
	}
	return leaf.Segment(number, name)
}

// segmentOf returns the number of the segment of a pod with these labels, which orders the segments, and its name.
func segmentOf(leaf *api.SubGroup, set labels.Set) (number int64, name string, ok bool) {
	if leaf.SegmentBy == api.SliceIndex {
		return sliceOf(leaf, set)
	}
	value := set[leaf.SegmentBy]
	if value == "" {
		return 0, "", false
	}
	number, err := strconv.ParseInt(value, 10, 64)
	if numbersPods(leaf.SegmentBy) {
		number /= int64(leaf.SegmentSize)
		return number, strconv.FormatInt(number, 10), err == nil && number >= 0
	}
	if err != nil {
		number = math.MaxInt64
	}
	return number, value, true
}

// sliceOf is segmentOf for pods with any of the labels that number pods. Each Job numbers its pods from 0 on, so that those of
// different Jobs, as in a JobSet, are in different slices.
func sliceOf(leaf *api.SubGroup, set labels.Set) (number int64, name string, ok bool) {
	index := indexOf(set)
	if index == 0 {
		return 0, "", false
	}
	number = int64(index-1) / int64(leaf.SegmentSize)
	name = strconv.FormatInt(number, 10)
	if job := set[jobName]; job != "" {
		name = job + "/" + name
	}
	return number, name, true
}

// newSubGroups builds the tree. The group is nil for pods without one. An error describes what users must correct.
func newSubGroups(g *api.Group, specs []v1alpha1.SubGroup) (*api.SubGroup, error) {
	if len(specs) > v1alpha1.MaxSubGroups {
		return nil, fmt.Errorf("%d subgroups are too many; at most %d are allowed", len(specs), v1alpha1.MaxSubGroups)
	}
	root := &api.SubGroup{}
	byName := map[string]*api.SubGroup{"": root}
	for i := range specs {
		s := &specs[i]
		if byName[s.Name] != nil {
			return nil, fmt.Errorf("two subgroups have the name %q", s.Name)
		}
		byName[s.Name] = &api.SubGroup{Name: s.Name, Whole: g.Parts()[s.Name].IsWhole()}
	}
	for i := range specs {
		parent := byName[specs[i].Parent]
		if parent == nil {
			return nil, fmt.Errorf("the parent %q of subgroup %q does not exist", specs[i].Parent, specs[i].Name)
		}
		s := byName[specs[i].Name]
		s.Parent, parent.Children = parent, append(parent.Children, s)
	}
	for i := range specs {
		s := byName[specs[i].Name]
		if g != nil && g.Source == api.SourceComposite && specs[i].MinSubGroup != nil {
			s.MinSubGroup = *specs[i].MinSubGroup // the children are other objects, which may be created later
			continue
		}
		if err := readSubGroup(s, &specs[i]); err != nil {
			return nil, fmt.Errorf("subgroup %q: %w", specs[i].Name, err)
		}
	}
	root.MinSubGroup = int32(len(root.Children))
	return root, nil
}

// readSubGroup reads the fields of a subgroup, whose parent and children are known.
func readSubGroup(s *api.SubGroup, spec *v1alpha1.SubGroup) (err error) {
	level := 0
	for at := s; at.Parent != nil; at = at.Parent {
		if level++; level > v1alpha1.MaxSubGroupLevels {
			return fmt.Errorf("its parents form a cycle, or more than %d levels", v1alpha1.MaxSubGroupLevels)
		}
	}
	switch {
	case len(s.Children) > 0:
		if spec.Selector != nil || spec.MinMember != nil || spec.SegmentSize > 0 {
			return fmt.Errorf("it has other subgroups, so it cannot have selector, minMember or segmentSize")
		}
		s.MinSubGroup = ptr.Deref(spec.MinSubGroup, int32(len(s.Children)))
		if int(s.MinSubGroup) > len(s.Children) {
			return fmt.Errorf("minSubGroup is %d, but it has %d subgroups", s.MinSubGroup, len(s.Children))
		}
		return nil
	case spec.SegmentSize > 0:
		if spec.MinMember != nil {
			return fmt.Errorf("it has segments, so it has minSubGroup instead of minMember")
		}
		s.MinSubGroup, s.SegmentSize = ptr.Deref(spec.MinSubGroup, 1), spec.SegmentSize
		s.SegmentBy = cmp.Or(spec.SegmentBy, completionIndex)
	case spec.MinSubGroup != nil:
		return fmt.Errorf("it has neither segments nor other subgroups, so it has minMember instead of minSubGroup")
	default:
		s.MinMember = ptr.Deref(spec.MinMember, 1)
	}
	if spec.Selector == nil {
		return nil
	}
	if s.Selector, err = metav1.LabelSelectorAsSelector(spec.Selector); err != nil {
		return fmt.Errorf("selector: %w", err)
	}
	return nil
}
