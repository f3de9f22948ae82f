// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// SystemCritical gives pods the priority class of system components. Their Priority is a separate option.
func SystemCritical() PodOption {
	return Mutate(func(p *v1.Pod) { p.Spec.PriorityClassName = "system-cluster-critical" })
}

// StaticPod makes pods mirror pods of static pods.
func StaticPod() PodOption { return Annotation(v1.MirrorPodAnnotationKey, "by the kubelet") }

// OfDaemonSet makes a DaemonSet the controller of pods.
func OfDaemonSet() PodOption {
	return Mutate(func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent", Controller: ptr.To(true),
		}}
	})
}
