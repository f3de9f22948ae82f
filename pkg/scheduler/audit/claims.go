// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// borneBy sums the devices of the claims that count for a task.
func borneBy(a *audit, t *api.TaskInfo) (required, counted api.Resource) {
	for _, key := range model.ClaimsOf(t.Pod) {
		claim := a.i.DeviceClaims[key]
		if claim == nil {
			continue
		}
		var users []*api.TaskInfo
		for _, id := range sortedKeys(a.c.Tasks()) {
			if user := a.c.Tasks()[id]; slices.Contains(model.ClaimsOf(user.Pod), key) {
				users = append(users, user)
			}
		}
		if model.Bearer(users, claim.Consumers) == t {
			required.Add(a.c.Dims().Vector(claim.Required))
			counted.Add(a.c.Dims().Vector(claim.Counted))
		}
	}
	return required, counted
}

// auditDeviceClaims checks that the devices of each claim count once in all queues, or not at all if no pod uses them.
func auditDeviceClaims(a *audit) {
	var want, got api.Resource
	for _, key := range sortedKeys(a.i.DeviceClaims) {
		used := false
		for _, t := range a.c.Tasks() {
			used = used || !api.StatusOf(t.Pod).Ended() && slices.Contains(model.ClaimsOf(t.Pod), key)
		}
		if used {
			want.Add(a.c.Dims().Vector(a.i.DeviceClaims[key].Counted))
		}
	}
	for _, t := range a.c.Tasks() {
		got.Add(t.ShareRequest)
		got.Sub(t.Signature.PodRequest)
	}
	a.expectResource("devices of all claims", got, want)
}
