// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// occupiedDomains returns the domains of the levels that a job requires and prefers where the API server shows its tasks.
// Tasks that are being deleted are still there. Binds in flight do not count, so that a gang which starts is one write.
func occupiedDomains(j *api.JobInfo) api.OccupiedDomains {
	occupied := api.OccupiedDomains("")
	for i, level := range []*api.TopologyLevel{j.TopologyLevel, j.PreferredLevel} {
		if level == nil || i == 1 && level == j.TopologyLevel {
			continue
		}
		var paths []string
		for _, t := range j.Tasks {
			if !onNode(t) {
				continue
			}
			if path, ok := level.Path(t.Node.Node.Labels); ok {
				paths = append(paths, path)
			}
		}
		slices.Sort(paths)
		occupied = occupied.With(level, slices.Compact(paths))
	}
	return occupied
}

// onNode reports whether the API server shows a task on a node that exists.
func onNode(t *api.TaskInfo) bool {
	switch t.Status {
	case api.Bound, api.Running, api.Releasing, api.Unknown:
		return t.Node != nil && t.Node.Node != nil
	}
	return false
}
