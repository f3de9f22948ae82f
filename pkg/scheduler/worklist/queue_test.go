// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package worklist

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// TestFirstJobsAgainstSortedList compares the first jobs of a queue, whose jobs are in several parts, with a sorted list of
// all jobs.
func TestFirstJobsAgainstSortedList(t *testing.T) {
	highest := func(a, b *api.JobInfo) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	}
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue(&api.QueueInfo{}, highest)
		var twin []*api.JobInfo
		parts := make([]Part, rapid.IntRange(1, 5).Draw(t, "parts"))
		n := rapid.IntRange(0, 150).Draw(t, "jobs")
		for i, priority := range rapid.SliceOfN(rapid.Int32Range(0, 9), n, n).Draw(t, "priorities") {
			j := &api.JobInfo{ID: api.JobID(fmt.Sprint(i)), Priority: priority}
			p := &parts[rapid.IntRange(0, len(parts)-1).Draw(t, "part")]
			p.Jobs = append(p.Jobs, j)
			twin = append(twin, j)
		}
		for i := range parts {
			if len(parts[i].Jobs) > 0 {
				slices.SortFunc(parts[i].Jobs, highest)
				q.add(&parts[i])
			}
		}
		slices.SortFunc(twin, highest)
		most := rapid.IntRange(0, 60).Draw(t, "most")
		twin = twin[:min(len(twin), most)]
		if diff := gocmp.Diff(names(twin), names(q.takeFirst(most))); diff != "" {
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
