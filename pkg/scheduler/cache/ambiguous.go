// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// reportAmbiguous records an event on a pod that waits and names several gangs, when the pod is new or names others than
// before.
func reportAmbiguous(c *Cache, schedulerNames []string, before, after *v1.Pod) {
	if before == after || after.Spec.NodeName != "" || ended(after) || !slices.Contains(schedulerNames, after.Spec.SchedulerName) {
		return
	}
	named := api.NamedGangsOf(after)
	if named == (api.NamedGangs{}) || before != nil && named == api.NamedGangsOf(before) {
		return
	}
	first, other := named.Several(after.Namespace, api.MembershipRule{Sources: c.groupSources, Groups: model.GroupsOf(c.model)})
	if other != "" {
		c.recorder.AmbiguousGroup(after, first, other)
	}
}
