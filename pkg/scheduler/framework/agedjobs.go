// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// agedJobs is a list of jobs, oldest first. Changes take effect with the next update.
type agedJobs struct {
	list     []*api.JobInfo
	added    []*api.JobInfo
	dropped  bool // of list, some jobs
	unsorted bool // the age of a job has changed
	version  uint64
}

// changed reports whether update has something to do.
func (l *agedJobs) changed() bool { return len(l.added) > 0 || l.dropped || l.unsorted }

// update applies the changes; has reports whether a job is still in the list.
func (l *agedJobs) update(has func(*api.JobInfo) bool) {
	if !l.changed() {
		return
	}
	if l.dropped {
		l.list = slices.DeleteFunc(l.list, func(j *api.JobInfo) bool { return !has(j) })
	}
	if first := len(l.list); len(l.added) > 0 {
		slices.SortFunc(l.added, api.CompareJobAge)
		l.list = append(l.list, l.added...)
		l.unsorted = l.unsorted || first > 0 && api.CompareJobAge(l.list[first-1], l.list[first]) > 0
	}
	if l.unsorted {
		slices.SortFunc(l.list, api.CompareJobAge)
	}
	l.added, l.dropped, l.unsorted = l.added[:0], false, false
	l.version++
}
