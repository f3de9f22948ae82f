// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// TestWaitingJobsAgainstSort compares the kept list with a sort of all waiting jobs, after random changes.
func TestWaitingJobsAgainstSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, waits := newWaitingJobs(), map[*api.JobInfo]bool{}
		jobs := make([]*api.JobInfo, 8)
		for i := range jobs {
			jobs[i] = &api.JobInfo{ID: api.JobID(fmt.Sprint(i))}
		}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			j := rapid.SampledFrom(jobs).Draw(t, "job")
			j.Created = rapid.Int64Range(0, 3).Draw(t, "created")
			waits[j] = rapid.Bool().Draw(t, "waits")
			w.set(j, waits[j])
			if rapid.Bool().Draw(t, "more changes") {
				continue
			}
			want := slices.DeleteFunc(slices.Clone(jobs), func(j *api.JobInfo) bool { return !waits[j] })
			slices.SortFunc(want, api.CompareJobAge)
			if got := w.sorted(); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", ids(got), ids(want))
			}
		}
	})
}

func ids(jobs []*api.JobInfo) (list []api.JobID) {
	for _, j := range jobs {
		list = append(list, j.ID)
	}
	return list
}
