// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// reportEnd sets the condition of a PodGroup that has ended without minMember pods in phase Succeeded. The condition
// does not change if no pods are left that show why.
func reportEnd(j *api.JobInfo, g *api.PodGroupReport) {
	switch {
	case len(j.Tasks) == 0:
	case g.Phase == v1alpha1.PodGroupFinished:
		g.Scheduled, g.Reason = true, v1alpha1.ReasonScheduled
		g.Message = fmt.Sprintf("the PodGroup has ended: %d succeeded, and no pod is pending or running", g.Succeeded)
	default:
		g.Reason = v1alpha1.ReasonFailed
		g.Message = fmt.Sprintf("no pod is pending or running: %d succeeded, %d failed; %s", g.Succeeded, j.Failures(), failureOf(j))
	}
}

// failureOf returns what the first pod, by name, that has failed by itself reports. Kubelets state a reason only if they
// ended the pod, such as DeadlineExceeded.
func failureOf(j *api.JobInfo) string {
	var first *v1.Pod
	for _, t := range j.Tasks {
		if t.FailedByItself() && (first == nil || t.Pod.Name < first.Name) {
			first = t.Pod
		}
	}
	text := "see the logs of pod " + first.Name
	if first.Status.Reason != "" {
		text = fmt.Sprintf("pod %s: %s", first.Name, first.Status.Reason)
	}
	if first.Status.Message != "" {
		text += ": " + first.Status.Message
	}
	return text
}
