// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// volcanoSubGroupPolicy divides the pods that a selector matches into subgroups of subGroupSize pods, by the values of
// labels, of which minSubGroups must start.
type volcanoSubGroupPolicy struct {
	Name            string                `json:"name"`
	LabelSelector   *metav1.LabelSelector `json:"labelSelector"`
	MatchLabelKeys  []string              `json:"matchLabelKeys"`
	SubGroupSize    *int32                `json:"subGroupSize"`
	MinSubGroups    *int32                `json:"minSubGroups"`
	NetworkTopology *volcanoTopology      `json:"networkTopology"`
}

// volcanoSubGroups returns the subgroups of a PodGroup of Volcano: one for each task with a minimum, and one with segments for
// each policy. It returns the name of a field instead that it cannot translate.
func volcanoSubGroups(minTaskMember map[string]int32, policies []volcanoSubGroupPolicy) (list []v1alpha1.SubGroup, notSupported string) {
	if len(minTaskMember) > 0 && len(policies) > 0 {
		return nil, "spec.subGroupPolicy with spec.minTaskMember"
	}
	for _, task := range slices.Sorted(maps.Keys(minTaskMember)) {
		list = append(list, v1alpha1.SubGroup{
			Name:      task,
			MinMember: ptr.To(max(minTaskMember[task], 0)),
			Selector:  &metav1.LabelSelector{MatchLabels: map[string]string{api.VolcanoTaskSpec: task}},
		})
	}
	for _, p := range policies {
		segmentTopology, notSupported := p.NetworkTopology.required()
		switch {
		case notSupported != "":
			return nil, "subGroupPolicy: " + notSupported
		case len(p.MatchLabelKeys) != 1:
			return nil, "spec.subGroupPolicy without exactly one label in matchLabelKeys"
		}
		selector := p.LabelSelector
		if selector == nil {
			selector = &metav1.LabelSelector{} // all pods
		}
		list = append(list, v1alpha1.SubGroup{
			Name: p.Name, Selector: selector, SegmentBy: p.MatchLabelKeys[0],
			SegmentSize: max(ptr.Deref(p.SubGroupSize, 1), 1), MinSubGroup: ptr.To(max(ptr.Deref(p.MinSubGroups, 0), 0)),
			SegmentTopologyConstraint: segmentTopology,
		})
	}
	return list, ""
}
