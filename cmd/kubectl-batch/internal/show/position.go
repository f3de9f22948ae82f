// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Position returns where a PodGroup is in the order of its queue, and the job ahead of it; empty if the PodGroup has
// started or the scheduler does not try it. The queue lists only the first jobs of a long order.
func Position(g *v1alpha1.PodGroup, q *v1alpha1.Queue) string {
	if q == nil || q.Status.Order == nil || !waits(g) {
		return ""
	}
	order := q.Status.Order
	at := slices.IndexFunc(order.First, func(j v1alpha1.QueuedJob) bool {
		return j.Namespace == g.Namespace && j.Name == g.Name && !j.WithoutPodGroup
	})
	switch {
	case at == 0:
		return fmt.Sprintf("1 of %d in the order of queue %s", order.Length, q.Name)
	case at > 0:
		return fmt.Sprintf("%d of %d in the order of queue %s, after %s", at+1, order.Length, q.Name, jobName(order.First[at-1]))
	case len(order.First) > 0 && int(order.Length) > len(order.First):
		return fmt.Sprintf("after the first %d of %d in the order of queue %s", len(order.First), order.Length, q.Name)
	}
	return ""
}

// waits reports whether the scheduler may try the PodGroup. It does not try one whose pods do not exist, and has none
// of its own in the order of a queue.
func waits(g *v1alpha1.PodGroup) bool {
	c := scheduledCondition(g)
	if c == nil || c.Status == metav1.ConditionTrue {
		return false
	}
	return c.Reason != v1alpha1.ReasonNotEnoughPods && c.Reason != v1alpha1.ReasonQueueNotFound
}

func jobName(j v1alpha1.QueuedJob) string {
	name := j.Namespace + "/" + j.Name
	if j.WithoutPodGroup {
		return "pods of " + name + " without a PodGroup"
	}
	return name
}
