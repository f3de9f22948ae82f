// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"

// evictionTable indexes the pods that are being deleted, and those that must not be evicted.
type evictionTable struct {
	releasing map[*api.TaskInfo]struct{} // on nodes
	blocked   map[*api.TaskInfo]struct{}
}

func newEvictionTable() evictionTable {
	return evictionTable{releasing: map[*api.TaskInfo]struct{}{}, blocked: map[*api.TaskInfo]struct{}{}}
}

func (et *evictionTable) trackReleasing(t *api.TaskInfo, is bool) {
	if is {
		et.releasing[t] = struct{}{}
	} else {
		delete(et.releasing, t)
	}
}

func (et *evictionTable) setBlocked(t *api.TaskInfo, blocked bool) {
	t.Tracking.EvictionBlocked = blocked
	if blocked {
		et.blocked[t] = struct{}{}
	} else {
		delete(et.blocked, t)
	}
}

// allow unblocks the pods that a budget selects.
func (et *evictionTable) allow(namespace string, b *Budget) {
	for t := range et.blocked {
		if t.Pod.Namespace == namespace && b.selects(t) {
			et.setBlocked(t, false)
		}
	}
}
