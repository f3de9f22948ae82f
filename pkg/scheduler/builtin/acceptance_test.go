// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// anyWaits means that a case does not assert which jobs wait.
const anyWaits = "…"

// capacity is the number of pods with 1 cpu that fit threeNodes.
const capacity = 12

func threeNodes(options ...NodeOption) Row {
	return Rows(Nodes(3, "n", "4cpu 16Gi", options...), Queue("default", 1))
}

// TestAcceptanceInOneCycle runs the A cases of the acceptance list that one cycle decides.
func TestAcceptanceInOneCycle(t *testing.T) {
	cases := map[string]struct {
		given []Row
		nodes bool // want contains nodes
		want  map[string]int
		waits string
	}{
		"A1: one PodGroup with as many pods as the capacity": {
			given: Given(threeNodes(), Group("default/a", 2, Pending(capacity, "1cpu"))),
			want:  map[string]int{"bind default/a": capacity},
		},
		"A2: three PodGroups": {
			given: Given(threeNodes(),
				Group("default/a", 2, Pending(capacity/3, "1cpu")),
				Group("default/b", 2, Pending(capacity/3, "1cpu")),
				Group("default/c", 2, Pending(capacity/3, "1cpu")),
			),
			want: map[string]int{"bind default/a": capacity / 3, "bind default/b": capacity / 3, "bind default/c": capacity / 3},
		},
		"A4: a gang of equal priority waits": {
			given: Given(threeNodes(),
				Group("default/a", capacity, Running(4, "1cpu", "n1"), Running(4, "1cpu", "n2"), Running(4, "1cpu", "n3")),
				Group("default/b", capacity, Pending(capacity, "1cpu")),
			),
			want:  map[string]int{},
			waits: `waits default/b NotEnoughResources: needs 12 more pods of 1 cpu; 0/3 nodes are available: 3 Insufficient cpu`,
		},
		"A8: the master of high priority and as many workers as fit": {
			given: Given(threeNodes(),
				ReplicaSet("web", Running(2, "1cpu", "n1"), Running(2, "1cpu", "n2"), Running(2, "1cpu", "n3")),
				Group("default/workers", capacity/2, Pending(capacity, "1cpu", Priority(-50)), Pending(1, "1cpu", Priority(50))),
			),
			want:  map[string]int{"bind default/workers": capacity / 2},
			waits: `waits default/workers-5 NotEnoughResources: needs 7 more pods of 1 cpu; 0/3 nodes are available: 3 Insufficient cpu`,
		},
		"A9: the small pod runs, the large one waits with its reason": {
			given: Given(threeNodes(),
				ReplicaSet("web", Running(4, "1cpu", "n1"), Running(4, "1cpu", "n2"), Running(3, "1cpu", "n3")),
				Group("default/a", 1, Pending(1, "1.5cpu", Priority(100)), Pending(1, "0.5cpu")),
			),
			want:  map[string]int{"bind default/a": 1},
			waits: `waits default/a-0 NotEnoughResources: needs 1 more pod of 1500m cpu; 0/3 nodes are available: 3 Insufficient cpu`,
		},
		"A12: queues of weights 1 and 3": {
			given: Given(Nodes(3, "n", "4cpu"), Queue("q1", 1), Queue("q3", 3),
				manyJobs("q1/a", 12), manyJobs("q3/b", 12),
			),
			want:  map[string]int{"bind q1/a": 3, "bind q3/b": 9},
			waits: anyWaits,
		},
		"A13: required node affinity by name": {
			given: Given(threeNodes(), Group("default/a", 1, Pending(1, "1cpu", RequireNode("n2")))),
			nodes: true,
			want:  map[string]int{"bind default/a n2": 1},
		},
		"A14: one host port on each node": {
			given: Given(threeNodes(), Group("default/a", 3, Pending(6, "1cpu", HostPort(28080)))),
			nodes: true,
			want:  map[string]int{"bind default/a n1": 1, "bind default/a n2": 1, "bind default/a n3": 1},
			waits: `waits default/a-3 NotEnoughResources: needs 3 more pods of 1 cpu; 0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports`,
		},
		"A15: a gang that must be on one node": {
			given: Given(threeNodes(),
				ReplicaSet("web", Running(1, "1cpu", "n1"), Running(2, "1cpu", "n2")),
				Group("default/a", 4, Label("app", "mpi"), Near(v1.LabelHostname, "app=mpi"), Pending(4, "1cpu")),
			),
			nodes: true,
			want:  map[string]int{"bind default/a n3": 4},
		},
		"A15: a gang that must be on one node, and fits no node": {
			given: Given(threeNodes(),
				Group("default/a", 5, Label("app", "mpi"), Near(v1.LabelHostname, "app=mpi"), Pending(5, "1cpu")),
				Group("default/b", 1, Pending(capacity, "1cpu")),
			),
			want: map[string]int{"bind default/b": capacity},
			waits: `waits default/a ExceedsClusterCapacity: needs 5 more pods of 1 cpu in one topology domain; kubernetes.io/hostname n1 has resources for 4 of 5 pods; ` +
				`3/3 nodes are available; would not fit the empty nodes (at most 4 of 5 pods)`,
		},
		"A17: preferred node affinity": {
			given: Given(Node("n1", "4cpu 16Gi"), Node("n2", "4cpu 16Gi", Label("disk", "ssd")), Queue("default", 1),
				Group("default/a", 1, Pending(1, "1cpu", PreferNodes(100, "disk", "ssd")))),
			nodes: true,
			want:  map[string]int{"bind default/a n2": 1},
		},
		"A17: preferred pod affinity": {
			given: Given(threeNodes(),
				ReplicaSet("web", Label("app", "web"), Running(1, "0.1cpu", "n2")),
				Group("default/a", 1, Pending(1, "1cpu", PreferNear(100, v1.LabelHostname, "app=web")))),
			nodes: true,
			want:  map[string]int{"bind default/a n2": 1},
		},
		"A17: the least used node": {
			given: Given(threeNodes(),
				ReplicaSet("web", Running(1, "2cpu 8Gi", "n1"), Running(1, "1cpu 4Gi", "n2"), Running(1, "2cpu 8Gi", "n3")),
				Group("default/a", 1, Pending(1, "1cpu 4Gi"))),
			nodes: true,
			want:  map[string]int{"bind default/a n2": 1},
		},
		"A18: nine pods over three zones": {
			given: Given(
				Node("a1", "8cpu", Label("zone", "a")), Node("a2", "8cpu", Label("zone", "a")),
				Node("b1", "8cpu", Label("zone", "b")), Node("c1", "4cpu", Label("zone", "c")),
				Queue("default", 1),
				Group("default/a", 9, Label("app", "x"), Spread(1, "zone", "app=x"), Pending(9, "1cpu"))),
			nodes: true,
			want:  map[string]int{"bind default/a a1": 2, "bind default/a a2": 1, "bind default/a b1": 3, "bind default/a c1": 3},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), tc.given)
			transcript := c.Cycle()
			if diff := cmp.Diff(tc.want, CountDecisions(transcript, tc.nodes)); diff != "" {
				t.Errorf("bound (-want +got):\n%s\n%s", diff, transcript)
			}
			if diff := cmp.Diff(tc.waits, c.Waits()); diff != "" && tc.waits != anyWaits {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

// manyJobs declares PodGroups name.0, name.1, … of one pod each.
func manyJobs(name string, count int) Row {
	return func(c *Scenario) {
		for i := range count {
			Group(fmt.Sprintf("%s.%d", name, i), 1, Pending(1, "1cpu"))(c)
		}
	}
}

// TestMasterOfHighPriorityRuns asserts for A8 that the master is among the pods that run.
func TestMasterOfHighPriorityRuns(t *testing.T) {
	transcript := Run(t, BuiltIn(t), Given(
		Node("n1", "2cpu"), Queue("q", 1),
		Group("q/job", 2, Pending(4, "1cpu", Priority(-50)), Pending(1, "1cpu", Priority(50))),
	))
	CompareTranscripts(t, `bind q/job-0 n1
	         bind q/job-4 n1`, transcript)
}

// TestAcceptanceOverSeveralCycles runs the A cases of the acceptance list that take several cycles.
func TestAcceptanceOverSeveralCycles(t *testing.T) {
	full := func(name string) Row {
		return ReplicaSet(name, Running(4, "1cpu", "n1"), Running(4, "1cpu", "n2"), Running(4, "1cpu", "n3"))
	}
	podsOf := func(name string, count int) []string {
		var pods []string
		for i := range count {
			pods = append(pods, fmt.Sprintf("%s-%d", name, i))
		}
		return pods
	}
	type step struct {
		do    func(*Scenario) // nil for nothing
		want  map[string]int
		waits string
	}
	cases := map[string]struct {
		given []Row
		steps []step
	}{
		"A3: a gang waits for the resources of all members": {
			given: Given(threeNodes(),
				ReplicaSet("web", Running(4, "1cpu", "n1"), Running(3, "1cpu", "n2")),
				Group("default/gang", capacity/2+1, Pending(capacity/2+1, "1cpu")),
			),
			steps: []step{
				{
					want:  map[string]int{},
					waits: `waits default/gang NotEnoughResources: needs 7 more pods of 1 cpu, 5 of them could start now; 2/3 nodes are available: 1 Insufficient cpu`,
				},
				{
					do:   func(c *Scenario) { c.Delete(podsOf("web", capacity/2+1)...) },
					want: map[string]int{"bind default/gang": capacity/2 + 1},
				},
			},
		},
		"A10: the job of high priority is scheduled first": {
			given: Given(threeNodes(), full("web"),
				Group("default/low", capacity/2+1, Pending(capacity/2+1, "1cpu", Priority(1))),
				Group("default/high", capacity/2+1, Pending(capacity/2+1, "1cpu", Priority(100))),
			),
			steps: []step{
				{
					want: map[string]int{},
					waits: `waits default/high NotEnoughResources: needs 7 more pods of 1 cpu; 0/3 nodes are available: 3 Insufficient cpu
waits default/low NotEnoughResources: needs 7 more pods of 1 cpu; 0/3 nodes are available: 3 Insufficient cpu`,
				},
				{
					do:    func(c *Scenario) { c.Delete(podsOf("web", capacity)...) },
					want:  map[string]int{"bind default/high": capacity/2 + 1},
					waits: `waits default/low NotEnoughResources: needs 7 more pods of 1 cpu, 5 of them could start now; 3/3 nodes are available`,
				},
			},
		},
		"A16: a taint on all nodes, then removed": {
			given: Given(threeNodes(Taint("down=yes:NoSchedule")), Group("default/a", 2, Pending(2, "1cpu"))),
			steps: []step{
				{
					want:  map[string]int{},
					waits: `waits default/a Unschedulable: needs 2 more pods of 1 cpu; 0/3 nodes are available: 3 node(s) had untolerated taint {down=yes:NoSchedule}`,
				},
				{
					do: func(c *Scenario) {
						for _, name := range []string{"n1", "n2", "n3"} {
							c.EditNode(name, func(n *v1.Node) { n.Spec.Taints = nil })
						}
					},
					want: map[string]int{"bind default/a": 2},
				},
			},
		},
		"a gang that lost a member to a failed bind is scheduled first": {
			given: Given(Node("n1", "2cpu"), Queue("default", 1),
				Group("default/gang", 2, Pending(2, "1cpu")),
			),
			steps: []step{
				{want: map[string]int{"bind default/gang": 2}},
				{
					do: func(c *Scenario) {
						c.FailBinds("default/gang-1")
						c.ConfirmBinds()
						c.Add(Group("default/rival", 1, Pending(1, "1cpu", Priority(0))))
					},
					want:  map[string]int{"bind default/gang": 1},
					waits: `waits default/rival NotEnoughResources: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 Insufficient cpu`,
				},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), tc.given)
			for i, s := range tc.steps {
				if s.do != nil {
					s.do(c)
				}
				transcript := c.Cycle()
				if diff := cmp.Diff(s.want, CountDecisions(transcript, false)); diff != "" {
					t.Errorf("cycle %d, bound (-want +got):\n%s\n%s", i+1, diff, transcript)
				}
				if diff := cmp.Diff(s.waits, c.Waits()); diff != "" {
					t.Errorf("cycle %d, waits (-want +got):\n%s", i+1, diff)
				}
			}
		})
	}
}

// TestLargeGangWhereOnlyOneOrderFits has 512 members in three equivalence classes that fill the nodes completely (S17).
// In task order the small ones are first and use the large nodes; with the largest first, all fit.
func TestLargeGangWhereOnlyOneOrderFits(t *testing.T) {
	transcript := Run(t, BuiltIn(t), Given(
		Nodes(16, "large", "16cpu"),
		Nodes(196, "small", "4cpu"),
		Queue("q", 1),
		Group("q/gang", 512,
			Pending(400, "1cpu", Priority(3)),
			Pending(96, "4cpu", Priority(2)),
			Pending(16, "16cpu", Priority(1)),
		),
	))
	if diff := cmp.Diff(map[string]int{"bind q/gang": 512}, CountDecisions(transcript, false)); diff != "" {
		t.Error(diff)
	}
}

// TestSameInputSameOutput asserts that the same input in any order gives the same output (S15). Every cycle of every
// scenario checks this for one order; this test checks 20 orders of a cluster with many ties.
func TestSameInputSameOutput(t *testing.T) {
	given := Given(
		Nodes(4, "n", "4cpu 8Gi"), Nodes(2, "g", "4cpu 8Gi 2gpu", Label("zone", "b")),
		Queue("q1", 1), Queue("q2", 1), Queue("q3", 2, Capability("5cpu")),
		Foreign("web", Running(2, "1cpu", "n1", Away(v1.LabelHostname, "app=x")), Running(1, "1cpu 1Gi", "g1")),
		Group("q1/a", 4, Pending(6, "1cpu"), Label("app", "x")),
		Group("q1/b", 3, Pending(3, "1cpu 2Gi"), BestEffort(2)),
		Group("q2/c", 4, Pending(4, "1cpu 1gpu")),
		Group("q2/d", 2, Pending(3, "2cpu"), Label("app", "y"), Near(v1.LabelHostname, "app=y")),
		Group("q3/e", 1, Pending(9, "1cpu"), Label("app", "z"), Spread(1, v1.LabelHostname, "app=z")),
		ReplicaSet("r", OfQueue("q1"), Pending(3, "0.5cpu", HostPort(80))),
		Plain("p", OfQueue("q2"), Pending(3, "1Gi")),
	)
	want := Run(t, BuiltIn(t), given)
	for seed := range int64(20) {
		if diff := cmp.Diff(want, Run(t, BuiltIn(t), given, WithShuffleSeed(seed))); diff != "" {
			t.Fatalf("seed %d:\n%s", seed, diff)
		}
	}
}
