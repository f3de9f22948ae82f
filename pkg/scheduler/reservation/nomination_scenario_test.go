// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// A pod of another scheduler takes the resources of each victim as soon as it is gone. Evictions become
// rarer, and a job that waits for victims does not lose their resources to jobs whose nominations were lost.
func TestLostNominationsSlowEvictionsDown(t *testing.T) {
	c := New(t, BuiltIn(t), Given(Node("n1", "16cpu"), Queue("q1", 1), Queue("q2", 1),
		Group("q1/web", 1, Running(16, "1cpu", "n1")),
		Group("q2/a", 2, Pending(2, "1cpu")), Group("q2/b", 2, Pending(2, "1cpu"))), WithConfig(AllActions))
	var evicted []int // by cycle
	for i := range 24 {
		evicted = append(evicted, strings.Count(c.Cycle(), "evict "))
		if victims := c.EvictionsInFlight(); len(victims) > 0 {
			c.FinishEvictions(victims[0])
			c.Add(Foreign(fmt.Sprint("foreign-", i), Running(1, "1cpu", "n1")))
		}
	}
	want := []int{4, 0, 2, 0, 2, 0, 0, 1, 1, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if diff := cmp.Diff(want, evicted); diff != "" {
		t.Errorf("pods evicted by cycle (-want +got):\n%s", diff)
	}
}

// A job that waits because of disruption budgets has an explanation that says so, in later cycles too.
func TestProtectionIsExplained(t *testing.T) {
	c := New(t, BuiltIn(t), Given(Node("n1", "2cpu"), Queue("q", 1), Budget("b", 0, "app", "x"),
		Group("q/low", 1, Running(2, "1cpu", "n1", Priority(1), Label("app", "x"))),
		Group("q/high", 1, Pending(1, "1cpu", Priority(9)))), WithConfig(AllActions))
	want := "waits q/high NotEnoughResources: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 Insufficient cpu; " +
		"2 pods that could be evicted are protected by PodDisruptionBudgets"
	for range 2 {
		if got := c.Cycle() + c.Waits(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
}

// A gang holds no resources to wait for a pod that outstays its deletion.
func TestOverduePodsAreNotWaitedFor(t *testing.T) {
	c := New(t, BuiltIn(t), Given(Node("n1", "4cpu"), Node("n2", "4cpu"), Queue("q", 1), Foreign("slow", Running(1, "4cpu", "n1")),
		Group("q/gang", 2, Pending(2, "4cpu")), Group("q/single", 1, Pending(1, "4cpu"))))
	c.Ending(10*time.Second, "slow-0")
	CompareTranscripts(t, `hold q/gang-0 n2
	         pipeline q/gang-1 n1`, c.Cycle())
	c.Wait(40 * time.Second)
	CompareTranscripts(t, `bind q/single-0 n2`, c.Cycle())
}

// What becomes of resources that pods were evicted for.
func TestNominations(t *testing.T) {
	// Surplus of low priority, and a job of high priority for which one pod of it has to go.
	given := Given(Node("n1", "8cpu"), Queue("q", 1),
		Group("q/low", 1, Running(4, "2cpu", "n1", Priority(1))),
		Group("q/high", 1, Pending(1, "2cpu", Priority(9))))
	type step struct {
		happens func(*Scenario)
		want    string // decisions, and then why jobs wait
	}
	const evicted = `evict q/low-3 for q/high
		pipeline q/high-0 n1
		waits q/high Preempting: waiting for 1 evicted pod to terminate: ns/low-3`
	for name, steps := range map[string][]step{
		"the preemptor gets them": {
			{want: evicted},
			{happens: func(c *Scenario) { c.FinishEvictions(); c.Add(Group("q/other", 1, Pending(1, "2cpu", Priority(9)))) },
				want: `bind q/high-0 n1
				       evict q/low-2 for q/other
				       pipeline q/other-0 n1
				       waits q/other Preempting: waiting for 1 evicted pod to terminate: ns/low-2`},
		},
		"the explanation states until when": {
			{want: evicted},
			{happens: func(c *Scenario) { c.Ending(20*time.Second, "q/low-3") },
				want: `pipeline q/high-0 n1
				       waits q/high Preempting: waiting for 1 evicted pod to terminate, expected by 2026-01-01T00:00:30Z: ns/low-3`},
		},
		"the nomination ends when the victim is overdue": {
			{want: evicted},
			{happens: func(c *Scenario) { c.Ending(20*time.Second, "q/low-3") },
				want: `pipeline q/high-0 n1
				       waits q/high Preempting: waiting for 1 evicted pod to terminate, expected by 2026-01-01T00:00:30Z: ns/low-3`},
			{happens: func(c *Scenario) { c.Wait(50 * time.Second) },
				want: `waits q/high NotEnoughResources: needs 1 more pod of 2 cpu; 0/1 nodes are available: 1 Insufficient cpu`},
			{happens: func(c *Scenario) { c.Wait(time.Second) },
				want: `evict q/low-2 for q/high
				       pipeline q/high-0 n1
				       waits q/high Preempting: waiting for 1 evicted pod to terminate: ns/low-2`},
		},
		"a job of higher priority uses them without another eviction": {
			{want: evicted},
			{happens: func(c *Scenario) { c.Add(Group("q/higher", 1, Pending(1, "2cpu", Priority(10)))) },
				want: `pipeline q/higher-0 n1
				       waits q/high NotEnoughResources: needs 1 more pod of 2 cpu; 0/1 nodes are available: 1 Insufficient cpu
				       waits q/higher Preempting: all required pods have nodes; 1 of them wait for terminating pods there`},
		},
		"a job that lost them to a pod of another scheduler has a backoff before it evicts again": {
			{want: evicted},
			{happens: func(c *Scenario) { c.FinishEvictions(); c.Add(Foreign("foreign", Running(1, "2cpu", "n1"))) },
				want: `waits q/high NotEnoughResources: needs 1 more pod of 2 cpu; 0/1 nodes are available: 1 Insufficient cpu because of pods of other schedulers`},
			{want: `evict q/low-2 for q/high
			        pipeline q/high-0 n1
			        waits q/high Preempting: waiting for 1 evicted pod to terminate: ns/low-2`},
			{happens: func(c *Scenario) { c.FinishEvictions(); c.Add(Foreign("another", Running(1, "2cpu", "n1"))) },
				want: `waits q/high NotEnoughResources: needs 1 more pod of 2 cpu; 0/1 nodes are available: 1 Insufficient cpu because of pods of other schedulers`},
			{want: `waits q/high NotEnoughResources: needs 1 more pod of 2 cpu; 0/1 nodes are available: 1 Insufficient cpu because of pods of other schedulers`},
			{want: `evict q/low-1 for q/high
			        pipeline q/high-0 n1
			        waits q/high Preempting: waiting for 1 evicted pod to terminate: ns/low-1`},
		},
		"the nomination ends when a node is lost": {
			{want: evicted},
			{happens: func(c *Scenario) {
				c.EditNode("n1", func(n *v1.Node) {
					n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown}}
				})
			},
				want: `waits q/high Unschedulable: needs 1 more pod of 2 cpu; 0/1 nodes are available: 1 node(s) were not ready`},
		},
		"the nomination ends when evictions are refused": {
			{want: evicted},
			{happens: func(c *Scenario) { c.FailEvictions() }, want: evicted},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), given, WithConfig(AllActions))
			for i, step := range steps {
				if step.happens != nil {
					step.happens(c)
				}
				got := FormatTranscript(c.Cycle() + "\n" + c.Waits())
				if diff := cmp.Diff(FormatTranscript(step.want), got); diff != "" {
					t.Errorf("cycle %d (-want +got):\n%s", i+1, diff)
				}
			}
		})
	}
}

// TestNominationsKeepIdleResources has two preemptors, one of whose victims has ended, so that a part of what it waits for is
// idle; another pod on that node is deleted meanwhile. The other preemptor does not take what is idle, although as much is
// being released there: the first would have to wait for that pod.
func TestNominationsKeepIdleResources(t *testing.T) {
	c := New(t, BuiltIn(t), Given(
		Node("n0", "1cpu"), Node("n1", "4cpu"), Queue("q", 1),
		Group("q/old-1", 1, Running(1, "1cpu", "n1")), Group("q/old-2", 1, Running(1, "1cpu", "n1")),
		Group("q/busy", 2, Running(2, "1cpu", "n1", Priority(5))), Group("q/young", 1, Running(1, "1cpu", "n0")),
		Group("q/one", 1, Pending(1, "1cpu", Priority(1))), Group("q/two", 1, Pending(1, "2cpu", Priority(1))),
	), WithConfig(AllActions))
	want := cycles(t, c)
	want("both evict", "evict q/old-1-0 for q/two\nevict q/old-2-0 for q/two\nevict q/young-0 for q/one\npipeline q/one-0 n0\npipeline q/two-0 n1")
	c.FinishEvictions("q/old-1-0")
	c.Release("q/busy-0")
	want("a victim has ended", "pipeline q/one-0 n0\npipeline q/two-0 n1")
	c.FinishEvictions()
	want("all victims have ended", "bind q/one-0 n0\nbind q/two-0 n1")
}
