// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// TaskStatus is the state of a task between its creation and its end.
type TaskStatus int8

const (
	Pending   TaskStatus = iota // has no node
	Allocated                   // placed on idle resources by a statement of this session
	Pipelined                   // placed on resources that are still being released
	Binding                     // decided, the API server has not shown it yet
	Bound                       // has its node, not yet running
	Running
	Releasing // being deleted; its resources are available in the Future
	Succeeded
	Failed
	Unknown // the kubelet does not report it; it still counts on its node
	NumStatus
)

var statusNames = [NumStatus]string{"Pending", "Allocated", "Pipelined", "Binding", "Bound", "Running", "Releasing", "Succeeded", "Failed", "Unknown"}

func (s TaskStatus) String() string { return statusNames[s] }

// Holding reports whether a task in this status holds resources and is not being deleted: Allocated, Binding,
// Bound or Running.
func (s TaskStatus) Holding() bool {
	return s == Allocated || s == Binding || s == Bound || s == Running
}

// Ended reports whether the pod will never run again.
func (s TaskStatus) Ended() bool { return s == Succeeded || s == Failed }

// StatusOf returns the status that the API server shows.
func StatusOf(pod *v1.Pod) TaskStatus {
	switch {
	case pod.Status.Phase == v1.PodSucceeded:
		return Succeeded
	case pod.Status.Phase == v1.PodFailed:
		return Failed
	case pod.DeletionTimestamp != nil:
		return Releasing
	case pod.Spec.NodeName == "":
		return Pending
	case pod.Status.Phase == v1.PodRunning:
		return Running
	case pod.Status.Phase == v1.PodUnknown:
		return Unknown
	}
	return Bound
}

// Disrupted reports whether a pod has failed because it was evicted or deleted: a kubelet writes the phase Failed before
// it removes a pod.
func Disrupted(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodFailed && (pod.DeletionTimestamp != nil || slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue
	}))
}
