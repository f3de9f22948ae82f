// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package worklist

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// A heap gives out what a sorted list would.
func TestHeapAgainstSortedList(t *testing.T) {
	oldest := func(a, b *api.JobInfo) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	}
	rapid.Check(t, func(t *rapid.T) {
		h := heap[*api.JobInfo]{compare: oldest}
		var twin, got, want []*api.JobInfo
		for _, created := range rapid.SliceOf(rapid.Int64Range(-3, 9)).Draw(t, "jobs, and takings where negative") {
			if created >= 0 {
				j := &api.JobInfo{Created: created, ID: api.JobID(rune('a' + len(twin)))}
				h.push(j)
				twin = append(twin, j)
				slices.SortFunc(twin, oldest)
			} else if len(twin) > 0 {
				got, want = append(got, h.first()), append(want, twin[0])
				h.pop()
				twin = twin[1:]
			}
		}
		for !h.empty() {
			got = append(got, h.first())
			h.pop()
		}
		if diff := gocmp.Diff(names(append(want, twin...)), names(got)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func names(jobs []*api.JobInfo) []string {
	var list []string
	for _, j := range jobs {
		list = append(list, string(j.ID))
	}
	return list
}
