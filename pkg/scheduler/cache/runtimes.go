// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// reportRunTime records an event on a pod that declares a run time that cannot be read, when the pod is new or declares
// another one than before.
func reportRunTime(c *Cache, schedulerNames []string, before, after *v1.Pod) {
	if before == after || ended(after) || !slices.Contains(schedulerNames, after.Spec.SchedulerName) {
		return
	}
	problem := api.RunTimeProblem(after)
	if problem != "" && (before == nil || problem != api.RunTimeProblem(before)) {
		c.recorder.InvalidRunTime(after, problem)
	}
}

// reportUnavailableFrom records an event on a node with a time that cannot be read, when the node is new or has another one
// than before.
func reportUnavailableFrom(c *Cache, before, after *v1.Node) {
	const annotation = v1alpha1.AnnotationUnavailableFrom
	if _, err := api.UnavailableFromOf(after); err != nil && (before == nil || before.Annotations[annotation] != after.Annotations[annotation]) {
		c.recorder.InvalidUnavailableFrom(after, err.Error())
	}
}
