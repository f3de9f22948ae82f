// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// readPod updates t from its pod, except for status, node and job.
func readPod(t *api.TaskInfo, pod *v1.Pod, signature *api.Signature) {
	t.Pod = pod
	t.Signature = signature
	t.Tracking.Class = nil
	t.Request, t.ShareRequest = signature.Request, signature.ShareRequest
	t.Priority = 0
	if pod.Spec.Priority != nil {
		t.Priority = *pod.Spec.Priority
	}
	t.Gated = len(pod.Spec.SchedulingGates) > 0 && pod.Spec.NodeName == ""
	t.Ordinal = ordinalOf(pod)
	t.Created = pod.CreationTimestamp.UnixNano()
	owner := metav1.GetControllerOfNoCopy(pod)
	t.Tracking.NodeBound = belongsToNode(pod, owner)
	t.Tracking.Controlled = owner != nil
	t.Tracking.Disrupted = api.Disrupted(pod)
	t.Tracking.MaximumRun = api.MaximumRunOf(pod)
	t.Tracking.Topology = api.TopologyOf(pod.Annotations)
}

// belongsToNode reports whether an evicted pod would only return to its node: mirror pods
// represent what the kubelet runs by itself, and a DaemonSet runs one pod on each node.
func belongsToNode(pod *v1.Pod, owner *metav1.OwnerReference) bool {
	_, static := pod.Annotations[v1.MirrorPodAnnotationKey]
	return static || owner != nil && owner.Kind == "DaemonSet"
}

// observedStatus is the status that the API server shows, or will show once it has carried out an
// eviction.
func observedStatus(t *api.TaskInfo) api.TaskStatus {
	if t.Tracking.Evicting {
		return api.Releasing
	}
	return api.StatusOf(t.Pod)
}
