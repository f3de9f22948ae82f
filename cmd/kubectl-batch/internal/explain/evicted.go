// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// evicted describes the last eviction of the PodGroup; empty if there was none. It comes from the status, because the
// evicted pods do not exist for long, and events expire.
func evicted(g *v1alpha1.PodGroup) string {
	c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEvicted)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// isEvicted reports whether the gang does not run because it was evicted.
func isEvicted(g *v1alpha1.PodGroup) bool {
	return meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionEvicted)
}

// evictedAt returns when the gang was evicted, and the zero time if it was not.
func evictedAt(g *v1alpha1.PodGroup) time.Time {
	if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEvicted); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}
