// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// EqualNodes reports whether two versions of a node are equal in everything that influences scheduling; heartbeats
// make no difference.
func EqualNodes(a, b *v1.Node) bool {
	if a.UID != b.UID || a.Spec.Unschedulable != b.Spec.Unschedulable ||
		!maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Annotations, b.Annotations) ||
		!slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, func(x, y v1.Taint) bool {
			return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect
		}) {
		return false
	}
	sameCondition := func(x, y v1.NodeCondition) bool { return x.Type == y.Type && x.Status == y.Status }
	return slices.EqualFunc(a.Status.Conditions, b.Status.Conditions, sameCondition) &&
		equality.Semantic.DeepEqual(a.Status.Allocatable, b.Status.Allocatable) &&
		slices.EqualFunc(a.Status.Images, b.Status.Images, func(x, y v1.ContainerImage) bool {
			return x.SizeBytes == y.SizeBytes && slices.Equal(x.Names, y.Names)
		})
}

// EqualPods reports whether two versions of a pod are equal in everything that influences scheduling; conditions
// (except those of a failed pod), container states and addresses make no difference.
func EqualPods(a, b *v1.Pod) bool {
	return a.UID == b.UID &&
		a.Spec.NodeName == b.Spec.NodeName &&
		a.Status.Phase == b.Status.Phase &&
		a.Status.NominatedNodeName == b.Status.NominatedNodeName &&
		a.DeletionTimestamp.Equal(b.DeletionTimestamp) &&
		Disrupted(a) == Disrupted(b) &&
		EqualRequests(a, b) && equalResize(a, b)
}

// EqualRequests reports whether two versions of a pod request the same: equal in spec, labels,
// annotations, controller and the claims that were made for them, independent of their state.
func EqualRequests(a, b *v1.Pod) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		equalControllers(a, b) && equalSpecs(a, b) && equalClaims(a, b)
}

// equalClaims compares which resource claims were made for the pods.
func equalClaims(a, b *v1.Pod) bool {
	return slices.EqualFunc(a.Status.ResourceClaimStatuses, b.Status.ResourceClaimStatuses, func(x, y v1.PodResourceClaimStatus) bool {
		return x.Name == y.Name && ptr.Equal(x.ResourceClaimName, y.ResourceClaimName)
	})
}

func equalControllers(a, b *v1.Pod) bool {
	x, y := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	return x == y || x != nil && y != nil && x.UID == y.UID && x.Name == y.Name
}

// equalSpecs trusts metadata.generation where the API server counts it (it counts every change of
// a pod's spec but that of nodeName), because comparing specs costs a hundred times as much.
func equalSpecs(a, b *v1.Pod) bool {
	if a.Generation != 0 && a.Generation == b.Generation {
		return len(a.Spec.SchedulingGates) == len(b.Spec.SchedulingGates)
	}
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// equalResize compares what the status says about requests that are being changed in place.
func equalResize(a, b *v1.Pod) bool {
	sameContainer := func(x, y v1.ContainerStatus) bool {
		return x.Name == y.Name && equality.Semantic.DeepEqual(x.Resources, y.Resources) &&
			equality.Semantic.DeepEqual(x.AllocatedResources, y.AllocatedResources)
	}
	return slices.EqualFunc(a.Status.ContainerStatuses, b.Status.ContainerStatuses, sameContainer) &&
		slices.EqualFunc(a.Status.InitContainerStatuses, b.Status.InitContainerStatuses, sameContainer) &&
		equality.Semantic.DeepEqual(a.Status.Resources, b.Status.Resources) &&
		equality.Semantic.DeepEqual(a.Status.AllocatedResources, b.Status.AllocatedResources) &&
		resizeState(a) == resizeState(b)
}

// resizeState is why a resize of the pod is not under way yet; empty if none waits.
func resizeState(pod *v1.Pod) string {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodResizePending && c.Status == v1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}
