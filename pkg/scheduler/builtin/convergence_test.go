// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestRandomEvictions runs several cycles of random clusters in which evictions succeed, fail or stay in flight. The
// invariants of schedtest are asserted, see TestRandomClusters.
func TestRandomEvictions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &randomCluster{t: t}
		c := New(t, BuiltIn(t), r.rows(), WithConfig(AllActions), WithShuffleSeed(rapid.Int64().Draw(t, "seed")))
		for range rapid.IntRange(1, 5).Draw(t, "cycles") {
			c.Cycle()
			switch r.oneOf("evictions", "succeed", "succeed", "fail", "slow") {
			case "succeed":
				c.FinishEvictions()
			case "fail":
				c.FailEvictions()
			}
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				r.change(c)
			}
		}
		c.Cycle()
	})
}

// TestEvictionsEnd asserts that random clusters become idle (S18).
func TestEvictionsEnd(t *testing.T) {
	for name, generator := range generators() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				scenario := generator.scenario(t)
				if err := scenario.run(New(t, BuiltIn(t), scenario.given, scenario.config())); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestReclaimCooldowns runs clusters until they are idle. schedtest asserts that no job in cooldown borrows meanwhile.
func TestReclaimCooldowns(t *testing.T) {
	cases := map[string][]Row{
		"a cooldown begins with the eviction, for pods that wait in the same session too": {
			Node("n1", "6cpu"), Queue("g", 1), Queue("t", 1),
			Group("g/big", 1, Running(1, "6cpu", "n1"), Pending(1, "4cpu")),
			Group("t/one", 1, Pending(1, "1cpu")),
			Group("t/huge", 1, Pending(1, "6cpu")),
		},
		"a cooldown lasts while pods of the preemptor's queue are evicted and will be created again": {
			Node("n1", "6cpu 6Gi"), Queue("t", 1), Queue("g", 1),
			Group("g/gang", 4, Running(1, "3Gi", "n1", Priority(2)), Running(1, "3Gi", "n1"), Pending(4, "1cpu")),
			Group("t/one", 1, Pending(1, "1cpu 1Gi", Priority(2))),
			Group("t/two", 1, Pending(2, "3cpu", Priority(1))),
		},
		"a cooldown lasts while pods of the preemptor's queue have lost their resources to other pods of that queue": {
			Node("n1", "4cpu 4Gi"), Queue("g", 1), Queue("t", 1),
			Group("g/memory", 1, Running(1, "3Gi", "n1")),
			Group("t/three", 1, Running(1, "2cpu 1Gi", "n1"), Pending(2, "2cpu 1Gi")),
			Group("t/high", 1, Pending(1, "3cpu", Priority(1))),
		},
	}
	for name, given := range cases {
		t.Run(name, func(t *testing.T) {
			if err := (scenario{grace: 1, recreate: true}).run(New(t, BuiltIn(t), given, WithConfig(AllActions))); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNominationsPassToJobsAbove runs a cluster until it is idle in which a job with a higher priority takes the resources
// that pods were evicted for. In each session a job of the same queue that requests only memory, in which the queue may
// take more, comes before it.
func TestNominationsPassToJobsAbove(t *testing.T) {
	given := []Row{
		Node("n0", "4cpu 4Gi"), Node("n1", "3cpu 6Gi"), Queue("d", 1), Queue("q", 1), PriorityClass("high", 1),
		Group("d/preemptor", 1, Pending(1, "1cpu 2Gi"), Class("high")),
		Group("d/above", 1,
			Running(1, "1cpu 2Gi", "n0"), Running(1, "1cpu 2Gi", "n0"), Running(1, "1cpu 2Gi", "n1", Priority(2)), Running(1, "1cpu 2Gi", "n1"),
			Pending(1, "1cpu 2Gi")),
		Group("d/memory", 1, Pending(1, "1Gi")),
		Group("q/large", 2, Pending(2, "3cpu", Priority(2)), Class("high")),
	}
	if err := (scenario{grace: 1, recreate: true, noReservations: true, overtaking: true}).run(New(t, BuiltIn(t), given, WithConfig(AllActions))); err != nil {
		t.Error(err)
	}
}

// TestNominationsComeBeforeExpectedPods evicts a pod of a job that expects more pods. While a job above the preemptor is tried,
// which may use what was evicted for that one, it is not reserved for the pods that are expected: else the new pod would take
// it, and be evicted again.
func TestNominationsComeBeforeExpectedPods(t *testing.T) {
	given := []Row{
		Node("n0", "4cpu 4Gi"), Queue("d", 1), PriorityClass("high", 1),
		Group("d/above", 1, Running(1, "2Gi", "n0"), Pending(1, "2Gi"), Class("high")),
		Group("d/expects", 1, Running(2, "1Gi", "n0"), Pending(1, "2Gi"), MinResources("1cpu 2Gi")),
		Group("d/preemptor", 1, Pending(1, "1Gi")),
	}
	scenario := scenario{expect: 3, recreate: true}
	if err := scenario.run(New(t, BuiltIn(t), given, scenario.config())); err != nil {
		t.Error(err)
	}
}

// TestQueueDoesNotBorrowWhatAJobWaitsFor evicts for a job that must not borrow, while another job of its queue could borrow
// what is free. If that did so, the queue would hold too much for the first one, whose victims would have been evicted in
// vain.
func TestQueueDoesNotBorrowWhatAJobWaitsFor(t *testing.T) {
	c := New(t, BuiltIn(t), []Row{
		Node("n0", "4cpu"), Node("n1", "4cpu"), Queue("b", 1), Queue("r", 2),
		Group("b/returned", 1, Running(2, "2cpu", "n0"), Pending(1, "2cpu")),
		Group("b/ends", 4, Running(4, "1cpu", "n1")),
		Group("r/three", 1, Pending(1, "3cpu")),
	}, WithConfig(AllActions))
	steps := []struct {
		before func()
		want   []string
		waits  string
	}{
		{before: func() {}, want: []string{"evict b/returned-0 for r/three", "evict b/returned-1 for r/three", "pipeline r/three-0 n0"}},
		{
			before: func() {
				c.FinishEvictions()
				c.Delete("b/ends-0", "b/ends-1", "b/ends-2", "b/ends-3")
				c.Add(Group("r/four", 1, Running(4, "1cpu", "n1")), Group("b/small", 1, Pending(1, "1cpu")))
			},
			want: []string{"bind r/three-0 n0", "evict r/four-2 for b/returned", "evict r/four-3 for b/returned", "pipeline b/returned-2 n1"},
			waits: "waits b/small OverShare: queue b does not borrow while another of its gangs, which was evicted and may not borrow, " +
				"waits for terminating pods: deserved 2667m cpu, allocated 2, needs 1",
		},
		{before: func() { c.FinishEvictions() }, want: []string{"bind b/returned-2 n1", "bind b/small-0 n0"}},
	}
	for i, step := range steps {
		step.before()
		if diff := cmp.Diff(strings.Join(step.want, "\n"), c.Cycle()); diff != "" {
			t.Errorf("cycle %d:\n%s", i, diff)
		}
		if step.waits != "" && !strings.Contains(c.Waits(), step.waits) {
			t.Errorf("cycle %d: %s", i, c.Waits())
		}
		c.ConfirmBinds()
		c.Start()
	}
}

// TestQueueDoesNotBorrowWhatAHeldGangHas evicts for one pod of a gang that must not borrow, whose other pod has idle resources
// of another kind. Another job of the queue could borrow more of these.
func TestQueueDoesNotBorrowWhatAHeldGangHas(t *testing.T) {
	c := New(t, BuiltIn(t), []Row{
		Node("n0", "4cpu 8Gi"), Node("n1", "4cpu 8Gi"), Queue("b", 1), Queue("r", 2),
		Group("b/returned", 2, Running(2, "2cpu", "n0"), Pending(1, "2cpu"), Pending(1, "4Gi")),
		Group("b/ends", 4, Running(4, "1cpu", "n1")),
		Group("r/three", 1, Pending(1, "3cpu")),
		Group("r/large", 1, Pending(1, "4cpu 8Gi")),
	}, WithConfig(AllActions))
	c.Cycle()
	c.ConfirmBinds()
	c.Start()
	c.FinishEvictions()
	c.Delete("b/ends-0", "b/ends-1", "b/ends-2", "b/ends-3")
	c.Add(Group("r/four", 1, Running(4, "1cpu 1Gi", "n1")), Group("b/small", 1, Pending(1, "2Gi")))
	first := c.Cycle()
	if strings.Contains(first, "b/small") || !strings.Contains(first, "hold b/returned-3 n0\npipeline b/returned-2 n1") {
		t.Errorf("%s\n%s", first, c.Waits())
	}
	c.ConfirmBinds()
	c.Start()
	c.FinishEvictions()
	if diff := cmp.Diff("bind b/returned-2 n1\nbind b/returned-3 n1\nbind b/small-0 n1", c.Cycle()); diff != "" {
		t.Error(diff)
	}
}

// TestBlockedMembersKeepGangsWhole asserts that reclaim takes the surplus of a gang pod by pod, as far as its queue is above
// what it deserves, while a member of it must not be evicted: the others are not the whole gang.
func TestBlockedMembersKeepGangsWhole(t *testing.T) {
	c := New(t, BuiltIn(t), []Row{
		Node("n0", "4cpu 4Gi 2gpu"), Node("n1", "4cpu 4Gi 2gpu"), Queue("q", 1), Queue("r", 1),
		Group("q/large", 1, Pending(1, "1cpu 2gpu")),
		Group("r/gang", 1, Running(2, "1cpu 1gpu", "n0"), Running(1, "1cpu 1gpu", "n1")),
	}, WithConfig(AllActions))
	c.Cycle() // evicts r/gang-2
	c.FailEvictions("r/gang-2")
	c.BlockEviction("r/gang-2")
	if got := c.Cycle(); got != "" {
		t.Errorf("got\n%s\nwant nothing", got)
	}
}
