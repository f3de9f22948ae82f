// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hostAddress is the address of every node.
const hostAddress = "127.0.0.1"

// rejected is the status of a pod that its kubelet did not admit. The pod keeps it until it is deleted.
func rejected(now metav1.Time, v Verdict) corev1.PodStatus {
	return corev1.PodStatus{
		Phase:     corev1.PodFailed,
		Reason:    v.Reason,
		Message:   "Pod was rejected: " + v.Message,
		StartTime: &now,
	}
}

// running is the status of a pod whose containers have just started.
func running(pod *corev1.Pod, now metav1.Time, b behaviour) corev1.PodStatus {
	status := corev1.PodStatus{
		Phase:     corev1.PodRunning,
		StartTime: &now,
		HostIP:    hostAddress,
		HostIPs:   []corev1.HostIP{{IP: hostAddress}},
		PodIP:     address(pod.UID),
	}
	if pod.Spec.HostNetwork {
		status.PodIP = hostAddress
	}
	status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}

	for _, kind := range conditionTypes(pod) {
		status.Conditions = append(status.Conditions, condition(kind, corev1.ConditionTrue, "", now))
	}
	if b.ends {
		end := condition(runsUntil, corev1.ConditionTrue, "RunFor", now)
		end.Message = now.Add(b.runFor).UTC().Format(time.RFC3339Nano)
		status.Conditions = append(status.Conditions, end)
	}

	started := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	for _, c := range pod.Spec.InitContainers {
		if sidecar(c) {
			status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(c, started, true))
		} else {
			status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(c, terminated(now, now, 0), true))
		}
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(c, started, true))
	}
	return status
}

// finished is the status of a pod whose containers have ended with the given code. Sidecars are stopped then and
// always exit with 0.
func finished(pod *corev1.Pod, now metav1.Time, exitCode int32) corev1.PodStatus {
	status := corev1.PodStatus{Phase: corev1.PodSucceeded}
	if exitCode != 0 {
		status.Phase = corev1.PodFailed
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		status.Conditions = append(status.Conditions, condition(kind, corev1.ConditionFalse, "PodCompleted", now))
	}
	start := now
	if pod.Status.StartTime != nil {
		start = *pod.Status.StartTime
	}
	for _, c := range pod.Spec.InitContainers {
		if sidecar(c) {
			status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(c, terminated(start, now, 0), false))
		} else {
			status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(c, terminated(start, start, 0), true))
		}
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(c, terminated(start, now, exitCode), false))
	}
	return status
}

// exceeded is the status of a pod that the kubelet ends because of its activeDeadlineSeconds.
func exceeded(pod *corev1.Pod, now metav1.Time) corev1.PodStatus {
	status := finished(pod, now, terminatedBySIGTERM)
	status.Reason, status.Message = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
	return status
}

// conditionTypes are the conditions of a pod that runs and is ready; readiness gates are always true.
func conditionTypes(pod *corev1.Pod) []corev1.PodConditionType {
	kinds := []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	}
	for _, gate := range pod.Spec.ReadinessGates {
		kinds = append(kinds, gate.ConditionType)
	}
	return kinds
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string, now metav1.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: now}
}

func containerStatus(c corev1.Container, state corev1.ContainerState, ready bool) corev1.ContainerStatus {
	started := state.Running != nil
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state, Ready: ready, Started: &started}
}

func terminated(start, end metav1.Time, exitCode int32) corev1.ContainerState {
	reason := "Completed"
	if exitCode != 0 {
		reason = "Error"
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: exitCode, Reason: reason, StartedAt: start, FinishedAt: end,
	}}
}

// sidecar reports whether an init container runs as long as the pod.
func sidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
