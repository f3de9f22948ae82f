// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestOrdersAreTotal opens a session over random jobs, many of them alike, and compares each pair of jobs and tasks: no
// two are equal, and sorting them from any order gives the same result.
func TestOrdersAreTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ssn := RandomSession(t, BuiltIn(t), defaultTiers(t))
		jobs := slices.Clone(ssn.Jobs())
		checkOrder(t, jobs, ssn.CompareJobs, func(j *api.JobInfo) string { return string(j.ID) })
		var tasks []*api.TaskInfo
		for _, j := range jobs {
			tasks = append(tasks, ssn.WaitingTasks(j)...)
		}
		checkOrder(t, tasks, ssn.CompareTasks, func(t *api.TaskInfo) string { return t.Key })
	})
}

func checkOrder[T any](t *rapid.T, items []T, compare func(a, b T) int, name func(T) string) {
	names := func(items []T) []string {
		var list []string
		for _, item := range items {
			list = append(list, name(item))
		}
		return list
	}
	for i, a := range items {
		for j, b := range items {
			if n := compare(a, b); (n == 0) != (i == j) || (n < 0) != (compare(b, a) > 0) {
				t.Fatalf("%s against %s: %d, the other way round %d", name(a), name(b), n, compare(b, a))
			}
		}
	}
	forward, backward := slices.Clone(items), slices.Clone(items)
	slices.Reverse(backward)
	slices.SortFunc(forward, compare)
	slices.SortFunc(backward, compare)
	if !slices.Equal(names(forward), names(backward)) {
		t.Fatalf("sorted %v, and from the other end %v", names(forward), names(backward))
	}
}

func defaultTiers(t *rapid.T) []conf.Tier {
	config, err := conf.Default(BuiltIn(t).Catalog())
	if err != nil {
		t.Fatal(err)
	}
	return config.Tiers
}
