// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// TestWorklistAgainstScan places jobs of random clusters in the order of a worklist, and compares each choice with a scan
// of all jobs that are left.
func TestWorklistAgainstScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &randomCluster{t: t}
		registry := BuiltIn(t)
		if err := registry.AddAction(scanned{t}); err != nil {
			t.Fatal(err)
		}
		policy := strings.Replace(conf.DefaultYAML(), `"allocate, backfill"`, `"scanned"`, 1)
		c := New(t, registry, r.rows(), WithConfig(policy))
		for range r.upTo(5, "more groups") {
			c.Add(r.group())
		}
		c.Cycle()
	})
}

// scanned is an action like allocate.
type scanned struct{ t *rapid.T }

func (scanned) Name() string { return "scanned" }

func (a scanned) Execute(_ context.Context, ssn *framework.Session) error {
	list, left, allocator := worklist.New(ssn, ssn.Jobs()), slices.Clone(ssn.Jobs()), place.NewAllocator(ssn)
	for {
		want, got := scan(ssn, left), list.Next()
		if got != want {
			a.t.Fatalf("the list returns %v, and %v is first", got, want)
		}
		if got == nil {
			ssn.ActivateReservation(nil)
			return nil
		}
		ssn.ActivateReservation(got)
		if claim := allocator.Claim(got); claim != nil && allocator.Allocate(claim) {
			list.Return(got)
		} else {
			left = slices.DeleteFunc(left, func(j *api.JobInfo) bool { return j == got })
		}
	}
}

// scan returns the first job of the first queue.
func scan(ssn *framework.Session, jobs []*api.JobInfo) *api.JobInfo {
	firsts := map[*api.QueueInfo]*api.JobInfo{}
	for _, j := range jobs {
		if first := firsts[j.Queue]; first == nil || ssn.CompareJobs(j, first) < 0 {
			firsts[j.Queue] = j
		}
	}
	var best *api.JobInfo
	for _, q := range ssn.Cluster().SortedQueues() { // by age
		j := firsts[q]
		if j == nil {
			continue
		}
		if best == nil {
			best = j
			continue
		}
		n := ssn.CompareQueues(q, best.Queue)
		if n < 0 || n == 0 && j.Created < best.Created {
			best = j
		}
	}
	return best
}
