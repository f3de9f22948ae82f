// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"context"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// TestWorklistAgainstScan places jobs of random clusters in the order of a worklist, and compares each choice with a scan
// of all jobs that are left. The list skips some of the jobs, as if it were known that they cannot be placed; the scan
// finds them and does not place them. After some job they can be placed, and a queue is dropped.
func TestWorklistAgainstScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &randomCluster{t: t}
		registry := BuiltIn(t)
		if err := registry.AddAction(scanned{t, rapid.Uint32().Draw(t, "parts"), rapid.IntRange(1, 12).Draw(t, "revived"), rapid.IntRange(1, 12).Draw(t, "dropped")}); err != nil {
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
type scanned struct {
	t    *rapid.T
	seed uint32
	// revived and dropped are after how many jobs the others are revived, and those of the queue are dropped.
	revived, dropped int
}

func (scanned) Name() string { return "scanned" }

func (a scanned) Execute(_ context.Context, ssn *framework.Session) error {
	left, allocator := slices.Clone(ssn.Jobs()), place.NewAllocator(ssn)
	refused, late := map[*api.JobInfo]bool{}, map[*api.JobInfo]bool{}
	list := worklist.Of(ssn, a.parts(ssn, refused, late))
	list.SkipInOrder()
	var skipped, want []*api.JobInfo // in this order
	list.OnSkip(func(jobs []*api.JobInfo) { skipped = append(skipped, jobs...) })
	drop := func(job *api.JobInfo) {
		left = slices.DeleteFunc(left, func(j *api.JobInfo) bool { return j == job })
	}
	for n := 0; ; n++ {
		if n == a.revived {
			list.Revive()
			clear(refused)
		}
		first, got := scan(ssn, left), list.Next()
		for ; first != got && refused[first]; first = scan(ssn, left) {
			want = append(want, first)
			drop(first)
		}
		if got != first {
			a.t.Fatalf("the list returns %v, and %v is first", got, first)
		}
		if got == nil {
			ssn.ActivateReservation(nil)
			sameJobs(a.t, want, skipped)
			return nil
		}
		if n == a.dropped {
			list.Drop(got.Queue)
			left = slices.DeleteFunc(left, func(j *api.JobInfo) bool { return j.Queue == got.Queue })
			continue
		}
		if late[got] { // the others of its part are refused too
			list.Refuse()
			drop(got)
			for j := range late {
				refused[j] = true
			}
			continue
		}
		ssn.ActivateReservation(got)
		if claim := allocator.Claim(got); claim != nil && allocator.Allocate(claim) {
			list.Return(got)
		} else {
			drop(got)
		}
	}
}

// parts divides the jobs: some are refused from the beginning, and some of one queue when the list returns the first.
func (a scanned) parts(ssn *framework.Session, refused, late map[*api.JobInfo]bool) []*worklist.Part {
	var open, first, second, third []*api.JobInfo
	for _, j := range ssn.Jobs() {
		h := fnv.New32a()
		h.Write([]byte(j.Key)) // schedtest repeats the session with the objects in another order
		switch (h.Sum32() ^ a.seed) % 5 {
		case 0, 1:
			first = append(first, j)
		case 2:
			second = append(second, j)
		case 3:
			if len(third) == 0 || third[0].Queue == j.Queue {
				third = append(third, j)
				late[j] = true
				continue
			}
			fallthrough
		default:
			open = append(open, j)
		}
	}
	parts := worklist.Sorted(ssn, open)
	for _, jobs := range [][]*api.JobInfo{first, second} {
		for _, p := range worklist.Sorted(ssn, jobs) {
			p.Refused = true
			parts = append(parts, p)
			for _, j := range p.Jobs {
				refused[j] = true
			}
		}
	}
	for _, p := range worklist.Sorted(ssn, third) {
		p.Equal = true
		parts = append(parts, p)
	}
	return parts
}

// sameJobs asserts that the jobs of each queue were skipped in their order, each once.
func sameJobs(t *rapid.T, want, got []*api.JobInfo) {
	byQueue := func(jobs []*api.JobInfo) map[api.QueueID][]string {
		names := map[api.QueueID][]string{}
		for _, j := range jobs {
			names[j.Queue.ID] = append(names[j.Queue.ID], j.Key)
		}
		for _, list := range names {
			slices.Sort(list)
		}
		return names
	}
	if diff := cmp.Diff(byQueue(want), byQueue(got)); diff != "" {
		t.Fatalf("skipped (-want +got):\n%s", diff)
	}
}

// TestSkippedJobsKeepTheirPlaces asserts that a job that is skipped delays older jobs of its queue behind it as long as it
// would if it were tried.
func TestSkippedJobsKeepTheirPlaces(t *testing.T) {
	var got []string
	order := orderAction(func(ssn *framework.Session) {
		got = nil
		var skipped, others []*api.JobInfo
		for _, j := range ssn.Jobs() {
			if j.Priority > 0 {
				skipped = append(skipped, j)
			} else {
				others = append(others, j)
			}
		}
		parts := worklist.Sorted(ssn, skipped)
		parts[0].Refused = true
		list := worklist.Of(ssn, append(parts, worklist.Sorted(ssn, others)...))
		for job := list.Next(); job != nil; job = list.Next() {
			got = append(got, job.GetName())
		}
	})
	registry := BuiltIn(t)
	if err := registry.AddAction(order); err != nil {
		t.Fatal(err)
	}
	policy := strings.Replace(conf.DefaultYAML(), `"allocate, backfill"`, `"order"`, 1)
	New(t, registry, Given(
		Queue("a", 1), Queue("b", 1),
		Group("a/refused", 1, Pending(1, "1cpu", Priority(2))),
		Group("a/old", 1, Pending(1, "1cpu")),
		Group("b/young", 1, Pending(1, "1cpu")),
		Group("a/youngest", 1, Pending(1, "1cpu", Priority(1))),
	), WithConfig(policy)).Cycle()
	if want := []string{"young", "old"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

type orderAction func(*framework.Session)

func (orderAction) Name() string { return "order" }

func (a orderAction) Execute(_ context.Context, ssn *framework.Session) error {
	a(ssn)
	return nil
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
