// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

const (
	// compositeScheduled is the condition of a CompositePodGroup, which is never taken back.
	compositeScheduled = "CompositePodGroupInitiallyScheduled"
	// compositeInvalid is its reason if the tree of groups contradicts itself.
	compositeInvalid = "Invalid"
)

// compositeV1alpha3 returns the groups of groups of scheduling.k8s.io/v1alpha3 (KEP-6012), which Kubernetes 1.37 serves with
// the feature gate CompositePodGroup.
func compositeV1alpha3() *API {
	return &API{
		Source:            api.SourceComposite,
		Resource:          schema.GroupVersionResource{Group: schedulingv1alpha2.GroupName, Version: "v1alpha3", Resource: "compositepodgroups"},
		Kind:              "CompositePodGroup",
		StatusSubresource: true,
		read:              readComposite,
		shown:             nativeShown(compositeScheduled),
		status:            nativeStatus(compositeScheduled, compositeReason),
		disruption:        nativeDisruption,
	}
}

func compositeReason(reason string) string {
	switch reason {
	case v1alpha1.ReasonInvalidSubGroups, v1alpha1.ReasonGroupConflict, v1alpha1.ReasonQueueConflict:
		return compositeInvalid
	}
	return nativeReason(reason)
}

// compositePodGroup has the fields of a CompositePodGroup that the scheduler reads. It does not read spec.workloadRef: the
// names of the parents are the tree.
type compositePodGroup struct {
	Spec struct {
		spec137          `json:",inline"`
		SchedulingPolicy struct {
			Basic *struct{} `json:"basic"`
			Gang  *struct {
				MinGroupCount int32 `json:"minGroupCount"`
			} `json:"gang"`
		} `json:"schedulingPolicy"`
	} `json:"spec"`
}

func readComposite(u *unstructured.Unstructured) (*api.Group, error) {
	object, err := decode[compositePodGroup](u)
	if err != nil {
		return nil, err
	}
	g, policy := object.Spec.group(), &object.Spec.SchedulingPolicy
	if policy.Gang != nil {
		g.MinGroups = policy.Gang.MinGroupCount
	}
	if g.NotSupported == "" && (policy.Basic == nil) == (policy.Gang == nil) {
		g.NotSupported = "spec.schedulingPolicy, which is neither basic nor gang"
	}
	return g, nil
}
