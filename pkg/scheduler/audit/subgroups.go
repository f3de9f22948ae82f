// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// auditSubGroups checks in which subgroups the members of a job are, and the counts there.
func (a *audit) auditSubGroups(what string, j *api.JobInfo) {
	specified := j.Group != nil && len(j.Group.Spec.SubGroups) > 0 || j.Group == nil && j.Tracking.Topology.SliceSize > 0
	expect(a, what+" has subgroups", j.SubGroups != nil, specified && j.Tracking.InvalidSubGroups == "")
	counts := map[*api.SubGroup]*api.MemberCounts{}
	for _, t := range j.Tasks {
		if j.SubGroups == nil {
			expect(a, what+" has a member in a subgroup", t.SubGroup() != nil, false)
			continue
		}
		expect(a, what+" counts "+t.Key+" in subgroup", t.SubGroup().Name, subGroupName(j, t))
		for s := t.SubGroup(); s != nil; s = s.Parent {
			if counts[s] == nil {
				counts[s] = &api.MemberCounts{}
			}
			counts[s].Add(t, +1)
		}
	}
	if j.SubGroups != nil {
		a.auditSubGroup(what, j.SubGroups, counts)
	}
}

func (a *audit) auditSubGroup(what string, s *api.SubGroup, counts map[*api.SubGroup]*api.MemberCounts) {
	expected := api.MemberCounts{}
	if counts[s] != nil {
		expected = *counts[s]
	}
	expect(a, what+" counts of subgroup "+s.Name, s.MemberCounts, expected)
	for _, c := range s.Children {
		expect(a, what+" subgroup "+c.Name+" has its parent", c.Parent, s)
		expect(a, what+" segment "+c.Name+" is needed", s.SegmentSize == 0 || counts[c] != nil, true)
		a.auditSubGroup(what, c, counts)
	}
}

// subGroupName returns the name of the subgroup that a member belongs to, from the specification alone; empty if there
// is none.
func subGroupName(j *api.JobInfo, t *api.TaskInfo) string {
	if j.Group == nil {
		return sliceName("slices", j.Tracking.Topology.SliceSize, t.Pod.Labels)
	}
	specs := j.Group.Spec.SubGroups
	if j.Source == api.SourceComposite {
		return podGroupName(specs, t)
	}
	set := labels.Set{"volcano.sh/task-spec": t.Pod.Annotations["volcano.sh/task-spec"]}
	if set["volcano.sh/task-spec"] == "" {
		delete(set, "volcano.sh/task-spec")
	}
	for k, v := range t.Pod.Labels {
		set[k] = v
	}
	leaf := func(s v1alpha1.SubGroup) bool {
		return !slices.ContainsFunc(specs, func(c v1alpha1.SubGroup) bool { return c.Parent == s.Name })
	}
	for _, s := range specs {
		if leaf(s) && set[v1alpha1.LabelSubGroup] == s.Name {
			return segmentName(s, set)
		}
	}
	for _, s := range inTreeOrder(specs, "") {
		if !leaf(s) || s.Selector == nil {
			continue
		}
		if selector, err := metav1.LabelSelectorAsSelector(s.Selector); err == nil && selector.Matches(set) {
			return segmentName(s, set)
		}
	}
	return ""
}

// podGroupName returns the name of the PodGroup that a member of a tree of groups names; empty if it is not in the tree.
func podGroupName(specs []v1alpha1.SubGroup, t *api.TaskInfo) string {
	names := t.Pod.Spec.SchedulingGroup
	if names == nil || names.PodGroupName == nil {
		return ""
	}
	for _, s := range specs {
		if s.MinMember != nil && s.Name == *names.PodGroupName {
			return s.Name
		}
	}
	return ""
}

// inTreeOrder returns the subgroups with each parent before its children.
func inTreeOrder(specs []v1alpha1.SubGroup, parent string) []v1alpha1.SubGroup {
	var list []v1alpha1.SubGroup
	for _, s := range specs {
		if s.Parent == parent {
			list = append(append(list, s), inTreeOrder(specs, s.Name)...)
		}
	}
	return list
}

// sliceName returns the name of the segment of a pod that has one of the labels with an index.
func sliceName(of string, size int32, set labels.Set) string {
	for _, label := range []string{"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index", "training.kubeflow.org/replica-index"} {
		value, labelled := set[label]
		if !labelled {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil {
			return ""
		}
		if job := set["batch.kubernetes.io/job-name"]; job != "" {
			of += "/" + job
		}
		return of + "/" + strconv.Itoa(int(n)/int(size))
	}
	return ""
}

func segmentName(s v1alpha1.SubGroup, set labels.Set) string {
	if s.SegmentSize == 0 {
		return s.Name
	}
	label := s.SegmentBy
	if label == "*" {
		return sliceName(s.Name, s.SegmentSize, set)
	}
	if label == "" {
		label = "batch.kubernetes.io/job-completion-index"
	}
	value := set[label]
	if strings.HasSuffix(label, "-index") && strings.Contains("batch.kubernetes.io apps.kubernetes.io training.kubeflow.org", strings.Split(label, "/")[0]) {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return ""
		}
		value = strconv.Itoa(n / int(s.SegmentSize))
	}
	if value == "" {
		return ""
	}
	return s.Name + "/" + value
}
