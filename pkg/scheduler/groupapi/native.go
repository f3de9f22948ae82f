// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	"encoding/json"

	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// nativeV1alpha2 returns scheduling.k8s.io/v1alpha2, which Kubernetes 1.36 serves with the feature gate GenericWorkload.
func nativeV1alpha2() *API {
	return &API{
		Source:            api.SourceNative,
		Resource:          schema.GroupVersionResource{Group: schedulingv1alpha2.GroupName, Version: "v1alpha2", Resource: "podgroups"},
		Kind:              "PodGroup",
		StatusSubresource: true,
		read:              readNativeV1alpha2,
		shown:             nativeShown(schedulingv1alpha2.PodGroupScheduled),
		status:            nativeStatus(schedulingv1alpha2.PodGroupScheduled, nativeReason),
		disruption:        nativeDisruption,
	}
}

func readNativeV1alpha2(u *unstructured.Unstructured) (*api.Group, error) {
	object, err := decode[schedulingv1alpha2.PodGroup](u)
	if err != nil {
		return nil, err
	}
	spec := &object.Spec
	g := &api.Group{
		PodGroup: &v1alpha1.PodGroup{Spec: v1alpha1.PodGroupSpec{MinMember: 1, PriorityClassName: spec.PriorityClassName}},
		Priority: spec.Priority,
		Basic:    spec.SchedulingPolicy.Basic != nil,
	}
	if gang := spec.SchedulingPolicy.Gang; gang != nil {
		g.Spec.MinMember = gang.MinCount
	}
	if constraints := spec.SchedulingConstraints; constraints != nil && len(constraints.Topology) == 1 {
		g.Spec.TopologyConstraint = nodeLabelConstraint(constraints.Topology[0].Key)
	}
	g.NotSupported = nativeNotSupported(u, spec)
	g.Whole = spec.DisruptionMode != nil && *spec.DisruptionMode == schedulingv1alpha2.DisruptionModePodGroup
	// Pods that start one by one can be evicted as a whole, and be in one domain.
	g.Basic = g.Basic && g.NotSupported == "" && !g.Whole && g.Spec.TopologyConstraint == nil
	return g, nil
}

// nativeNotSupported returns the first field that the scheduler cannot honour.
func nativeNotSupported(u *unstructured.Unstructured, spec *schedulingv1alpha2.PodGroupSpec) string {
	parent, _, _ := unstructured.NestedString(u.Object, "spec", "parentCompositePodGroupName")
	switch {
	case spec.SchedulingPolicy.Basic == nil && spec.SchedulingPolicy.Gang == nil:
		return "spec.schedulingPolicy, which is neither basic nor gang"
	case spec.SchedulingConstraints != nil && len(spec.SchedulingConstraints.Topology) > 1:
		return severalTopologies
	case len(spec.ResourceClaims) > 0:
		return "spec.resourceClaims"
	case spec.DisruptionMode != nil && *spec.DisruptionMode != schedulingv1alpha2.DisruptionModePod && *spec.DisruptionMode != schedulingv1alpha2.DisruptionModePodGroup:
		return "spec.disruptionMode " + string(*spec.DisruptionMode)
	case parent != "":
		return "spec.parentCompositePodGroupName"
	}
	return ""
}

// severalTopologies are more constraints than Kubernetes allows until now.
const severalTopologies = "spec.schedulingConstraints.topology with several entries"

// nodeLabelConstraint returns the constraint that all pods are on nodes with one value of a label.
func nodeLabelConstraint(key string) *v1alpha1.TopologyConstraint {
	return &v1alpha1.TopologyConstraint{Topology: api.AnyTopology, RequiredTopologyLevel: key}
}

// nativeConditions is the part of the status that the scheduler writes.
type nativeConditions struct {
	Conditions []metav1.Condition `json:"conditions"`
}

// nativeReason returns the reason of the condition of a group that is not scheduled: kube-scheduler has one for all.
func nativeReason(string) string { return schedulingv1alpha2.PodGroupReasonUnschedulable }

// nativeStatus returns a function that writes a condition as kube-scheduler does: it is never taken back. reasonOf returns
// the reason of a group that is not scheduled.
func nativeStatus(kind string, reasonOf func(string) string) func([]byte, *api.PodGroupReport, metav1.Time) ([]byte, bool, error) {
	return func(shown []byte, want *api.PodGroupReport, now metav1.Time) (next []byte, urgent bool, err error) {
		var before nativeConditions
		if err = json.Unmarshal(shown, &before); err != nil {
			return nil, false, err
		}
		if want.Reason == "" || meta.IsStatusConditionTrue(before.Conditions, kind) {
			return nil, false, nil
		}
		if !want.Scheduled && want.Phase == v1alpha1.PodGroupFailed {
			return nil, false, nil // it is not pending any more
		}
		condition := metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: reasonOf(want.Reason),
			Message: want.Message, ObservedGeneration: want.Generation, LastTransitionTime: now,
		}
		if want.Scheduled {
			condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonScheduled
		}
		next, err = change(shown, func(s *nativeConditions) {
			old := meta.FindStatusCondition(s.Conditions, condition.Type)
			urgent = old == nil || old.Status != condition.Status
			meta.SetStatusCondition(&s.Conditions, condition)
		})
		return next, urgent, err
	}
}

// nativeDisruption returns the condition that the preemption of kube-scheduler sets.
func nativeDisruption(message string, now metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: schedulingv1alpha2.DisruptionTarget, Status: metav1.ConditionTrue, Reason: schedulingv1alpha2.PodGroupReasonPreemptionByScheduler,
		Message: message, LastTransitionTime: now,
	}
}

// nativeShown returns a function that reads the condition. The API has neither a phase nor counts.
func nativeShown(kind string) func([]byte) (v1alpha1.PodGroupStatus, error) {
	return func(status []byte) (v1alpha1.PodGroupStatus, error) {
		var s nativeConditions
		if err := json.Unmarshal(status, &s); err != nil {
			return v1alpha1.PodGroupStatus{}, err
		}
		var shown v1alpha1.PodGroupStatus
		if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
			condition := *c
			condition.Type = v1alpha1.ConditionPodGroupScheduled
			shown.Conditions = []metav1.Condition{condition}
		}
		return shown, nil
	}
}
