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

// Kubernetes 1.37 serves two versions of its PodGroups with the same fields: v1beta1, and v1alpha3 with the same feature gate
// as CompositePodGroups. It serves no v1alpha2.

func nativeV1beta1() *API { return native137("v1beta1") }

func nativeV1alpha3() *API { return native137("v1alpha3") }

// initiallyScheduled is the condition of a PodGroup, which is never taken back.
const initiallyScheduled = "PodGroupInitiallyScheduled"

func native137(version string) *API {
	return &API{
		Source:            api.SourceNative,
		Resource:          schema.GroupVersionResource{Group: schedulingv1alpha2.GroupName, Version: version, Resource: "podgroups"},
		Kind:              "PodGroup",
		StatusSubresource: true,
		read:              readNative137,
		shown:             nativeShown(initiallyScheduled),
		status:            nativeStatus(initiallyScheduled, nativeReason),
		disruption:        nativeDisruption,
	}
}

// podGroup137 has the fields of a PodGroup that the scheduler reads. Those that it cannot honour are not decoded: it matters
// only whether they are there.
type podGroup137 struct {
	Spec struct {
		spec137          `json:",inline"`
		SchedulingPolicy struct {
			Basic *struct{} `json:"basic"`
			Gang  *struct {
				MinCount int32 `json:"minCount"`
			} `json:"gang"`
		} `json:"schedulingPolicy"`
		ResourceClaims []struct{} `json:"resourceClaims"`
	} `json:"spec"`
}

// spec137 has the fields that PodGroups and CompositePodGroups share.
type spec137 struct {
	Parent                string `json:"parentCompositePodGroupName"`
	SchedulingConstraints struct {
		Topology []struct {
			Key string `json:"key"`
		} `json:"topology"`
	} `json:"schedulingConstraints"`
	DisruptionMode *struct {
		Single *struct{} `json:"single"`
		All    *struct{} `json:"all"`
	} `json:"disruptionMode"`
	PriorityClassName string `json:"priorityClassName"`
	Priority          *int32 `json:"priority"`
	PreemptionPolicy  string `json:"preemptionPolicy"`
}

// group returns a group with the shared fields, and the first of them that the scheduler cannot honour.
func (s *spec137) group() *api.Group {
	g := &api.Group{
		PodGroup: &v1alpha1.PodGroup{Spec: v1alpha1.PodGroupSpec{MinMember: 1, PriorityClassName: s.PriorityClassName}},
		Priority: s.Priority, Parent: s.Parent,
		Whole:         s.DisruptionMode != nil && s.DisruptionMode.All != nil,
		NeverPreempts: s.PreemptionPolicy == preemptNever,
	}
	if len(s.SchedulingConstraints.Topology) == 1 {
		g.Spec.TopologyConstraint = nodeLabelConstraint(s.SchedulingConstraints.Topology[0].Key)
	}
	switch {
	case len(s.SchedulingConstraints.Topology) > 1:
		g.NotSupported = severalTopologies
	case s.DisruptionMode != nil && (s.DisruptionMode.All != nil) == (s.DisruptionMode.Single != nil):
		g.NotSupported = "spec.disruptionMode, which is neither single nor all"
	case s.PreemptionPolicy != "" && s.PreemptionPolicy != preemptNever && s.PreemptionPolicy != preemptLowerPriority:
		g.NotSupported = "spec.preemptionPolicy " + s.PreemptionPolicy
	}
	return g
}

// Preemption policies.
const (
	preemptNever         = "Never"
	preemptLowerPriority = "PreemptLowerPriority"
)

func readNative137(u *unstructured.Unstructured) (*api.Group, error) {
	object, err := decode[podGroup137](u)
	if err != nil {
		return nil, err
	}
	spec := &object.Spec
	g, policy := spec.group(), &spec.SchedulingPolicy
	switch {
	case g.NotSupported != "":
	case (policy.Basic == nil) == (policy.Gang == nil):
		g.NotSupported = "spec.schedulingPolicy, which is neither basic nor gang"
	case len(spec.ResourceClaims) > 0:
		g.NotSupported = "spec.resourceClaims"
	}
	switch {
	case policy.Gang != nil:
		g.Spec.MinMember = policy.Gang.MinCount
	case g.Parent != "":
		g.Spec.MinMember = 0 // a part that starts pod by pod
	case policy.Basic != nil:
		// Pods that start one by one can be evicted as a whole, and be in one domain.
		g.Basic = g.NotSupported == "" && !g.Whole && g.Spec.TopologyConstraint == nil
	}
	return g, nil
}
