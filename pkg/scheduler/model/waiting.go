// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// waitingJobs are the jobs that wait, as of the last Recompute, oldest first. With thousands of them, a few change
// between two sessions: the list is kept, and only what has changed is sorted.
type waitingJobs struct {
	created map[*api.JobInfo]int64 // JobInfo.Created of each waiting job
	list    []*api.JobInfo         // sorted, without changed
	changed map[*api.JobInfo]bool  // whether the job waits; since the last call of sorted
}

func newWaitingJobs() waitingJobs {
	return waitingJobs{created: map[*api.JobInfo]int64{}, changed: map[*api.JobInfo]bool{}}
}

// set records whether a job waits.
func (w *waitingJobs) set(j *api.JobInfo, waits bool) {
	created, listed := w.created[j]
	if listed == waits && (!waits || created == j.Created) {
		return
	}
	w.changed[j] = waits
	if waits {
		w.created[j] = j.Created
	} else {
		delete(w.created, j)
	}
}

// sorted returns the waiting jobs. The slice does not change any more.
func (w *waitingJobs) sorted() []*api.JobInfo {
	if len(w.changed) == 0 {
		return w.list
	}
	added := make([]*api.JobInfo, 0, len(w.changed))
	for j, waits := range w.changed {
		if waits {
			added = append(added, j)
		}
	}
	slices.SortFunc(added, api.CompareJobAge)
	list := make([]*api.JobInfo, 0, len(w.created))
	for _, j := range w.list {
		if _, changed := w.changed[j]; changed {
			continue
		}
		for len(added) > 0 && api.CompareJobAge(added[0], j) < 0 {
			list, added = append(list, added[0]), added[1:]
		}
		list = append(list, j)
	}
	w.list = append(list, added...)
	clear(w.changed)
	return w.list
}
