package actions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

const hostname = "kubernetes.io/hostname"

// whatever says that a case is not about who waits.
const whatever = "…"

// rep is the number of 1-cpu slots of threeNodes.
const rep = 12

func threeNodes(options ...NodeOption) Row {
	return Rows(Nodes(3, "n", "4cpu 16Gi", options...), Queue("default", 1))
}

// summary says how many pods of each row are bound, and on request where.
func summary(transcript string, nodes bool) map[string]int {
	counts := map[string]int{}
	for line := range strings.Lines(transcript) {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		row, _, _ := strings.Cut(words[1][:strings.LastIndex(words[1], "-")], ".")
		key := words[0] + " " + row
		if nodes {
			key += " " + words[2]
		}
		counts[key]++
	}
	return counts
}

// The A rows of the acceptance list that one cycle decides, as sessions see them.
func TestAcceptanceInOneCycle(t *testing.T) {
	cases := map[string]struct {
		given []Row
		nodes bool // whether want says where
		want  map[string]int
		waits string
	}{
		"A1: one group, as many pods as slots": {
			given: Given(threeNodes(), Group("default/a", 2, Pending(rep, "1cpu"))),
			want:  map[string]int{"bind default/a": rep},
		},
		"A2: three groups": {
			given: Given(threeNodes(),
				Group("default/a", 2, Pending(rep/3, "1cpu")),
				Group("default/b", 2, Pending(rep/3, "1cpu")),
				Group("default/c", 2, Pending(rep/3, "1cpu")),
			),
			want: map[string]int{"bind default/a": rep / 3, "bind default/b": rep / 3, "bind default/c": rep / 3},
		},
		"A4: a gang of equal priority waits": {
			given: Given(threeNodes(),
				Group("default/a", rep, Running(4, "1cpu", "n1"), Running(4, "1cpu", "n2"), Running(4, "1cpu", "n3")),
				Group("default/b", rep, Pending(rep, "1cpu")),
			),
			want:  map[string]int{},
			waits: `waits default/b NotEnoughResources: needs 12 more pods of 1 cpu; 0/3 nodes are available: 3 Insufficient cpu`,
		},
		"A7: best-effort members within and beyond the gang": {
			given: Given(threeNodes(),
				Group("default/a", 4, Pending(2, "1cpu"), BestEffort(2)),
				Group("default/b", 1, Pending(2, "1cpu"), BestEffort(2)),
			),
			want: map[string]int{"bind default/a": 4, "bind default/b": 4},
		},
		"A7: a gang of best-effort members alone": {
			given: Given(threeNodes(), Group("default/a", 3, BestEffort(3))),
			want:  map[string]int{"bind default/a": 3},
		},
		"A7: best-effort members that suit no node": {
			given: Given(threeNodes(),
				Group("default/a", 1, Pending(1, "1cpu"), BestEffort(2, NodeSelector("disk", "ssd"))),
			),
			want:  map[string]int{"bind default/a": 1},
			waits: `waits default/a-1 Unschedulable: needs 2 more pods of no resources; 0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector (node selector disk=ssd)`,
		},
		"A8: the master of high priority and as many workers as fit": {
			given: Given(threeNodes(),
				ReplicaSet("web", Running(2, "1cpu", "n1"), Running(2, "1cpu", "n2"), Running(2, "1cpu", "n3")),
				Group("default/workers", rep/2, Pending(rep, "1cpu", Priority(-50)), Pending(1, "1cpu", Priority(50))),
			),
			want:  map[string]int{"bind default/workers": rep / 2},
			waits: `waits default/workers-5 NotEnoughResources: needs 7 more pods of 1 cpu; 0/3 nodes are available: 3 Insufficient cpu`,
		},
		"A9: the small pod runs, the big one waits with its reason": {
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
			waits: whatever,
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
				Group("default/a", 4, Label("app", "mpi"), Near(hostname, "app=mpi"), Pending(4, "1cpu")),
			),
			nodes: true,
			want:  map[string]int{"bind default/a n3": 4},
		},
		"A15: a gang that must be on one node, and fits on none": {
			given: Given(threeNodes(),
				Group("default/a", 5, Label("app", "mpi"), Near(hostname, "app=mpi"), Pending(5, "1cpu")),
				Group("default/b", 1, Pending(rep, "1cpu")),
			),
			want:  map[string]int{"bind default/b": rep},
			waits: `waits default/a NotEnoughResources: needs 5 more pods of 1 cpu, 4 of them could start now; 3/3 nodes are available`,
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
				Group("default/a", 1, Pending(1, "1cpu", PreferNear(100, hostname, "app=web")))),
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
			c := New(t, builtIn(t), tc.given)
			transcript := c.Cycle()
			if diff := cmp.Diff(tc.want, summary(transcript, tc.nodes)); diff != "" {
				t.Errorf("bound (-want +got):\n%s\n%s", diff, transcript)
			}
			if diff := cmp.Diff(tc.waits, c.Waits()); diff != "" && tc.waits != whatever {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

// manyJobs declares groups name.0, name.1, … of one pod each.
func manyJobs(name string, count int) Row {
	return func(c *Cluster) {
		for i := range count {
			Group(fmt.Sprintf("%s.%d", name, i), 1, Pending(1, "1cpu"))(c)
		}
	}
}

// A8 again: it is the master that must be among those that run.
func TestMasterOfHighPriorityRuns(t *testing.T) {
	transcript := Run(t, builtIn(t), Given(
		Node("n1", "2cpu"), Queue("q", 1),
		Group("q/job", 2, Pending(4, "1cpu", Priority(-50)), Pending(1, "1cpu", Priority(50))),
	))
	same(t, `bind q/job-0 n1
	         bind q/job-4 n1`, transcript)
}

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
		do    func(*Cluster) // nil for nothing
		want  map[string]int
		waits string
	}
	cases := map[string]struct {
		given []Row
		steps []step
	}{
		"A3: a gang waits for the whole room": {
			given: Given(threeNodes(),
				ReplicaSet("web", Running(4, "1cpu", "n1"), Running(3, "1cpu", "n2")),
				Group("default/gang", rep/2+1, Pending(rep/2+1, "1cpu")),
			),
			steps: []step{
				{
					want:  map[string]int{},
					waits: `waits default/gang NotEnoughResources: needs 7 more pods of 1 cpu, 5 of them could start now; 2/3 nodes are available: 1 Insufficient cpu`,
				},
				{
					do:   func(c *Cluster) { c.Delete(podsOf("web", rep/2+1)...) },
					want: map[string]int{"bind default/gang": rep/2 + 1},
				},
			},
		},
		"A10: the job of high priority goes first": {
			given: Given(threeNodes(), full("web"),
				Group("default/low", rep/2+1, Pending(rep/2+1, "1cpu", Priority(1))),
				Group("default/high", rep/2+1, Pending(rep/2+1, "1cpu", Priority(100))),
			),
			steps: []step{
				{
					want: map[string]int{},
					waits: `waits default/high NotEnoughResources: needs 7 more pods of 1 cpu; 0/3 nodes are available: 3 Insufficient cpu
waits default/low NotEnoughResources: needs 7 more pods of 1 cpu; 0/3 nodes are available: 3 Insufficient cpu`,
				},
				{
					do:    func(c *Cluster) { c.Delete(podsOf("web", rep)...) },
					want:  map[string]int{"bind default/high": rep/2 + 1},
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
					do: func(c *Cluster) {
						for _, name := range []string{"n1", "n2", "n3"} {
							c.EditNode(name, func(n *v1.Node) { n.Spec.Taints = nil })
						}
					},
					want: map[string]int{"bind default/a": 2},
				},
			},
		},
		"a gang left short by a refused bind goes first": {
			given: Given(Node("n1", "2cpu"), Queue("default", 1),
				Group("default/gang", 2, Pending(2, "1cpu")),
			),
			steps: []step{
				{want: map[string]int{"bind default/gang": 2}},
				{
					do: func(c *Cluster) {
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
			c := New(t, builtIn(t), tc.given)
			for i, s := range tc.steps {
				if s.do != nil {
					s.do(c)
				}
				transcript := c.Cycle()
				if diff := cmp.Diff(s.want, summary(transcript, false)); diff != "" {
					t.Errorf("cycle %d, bound (-want +got):\n%s\n%s", i+1, diff, transcript)
				}
				if diff := cmp.Diff(s.waits, c.Waits()); diff != "" {
					t.Errorf("cycle %d, waits (-want +got):\n%s", i+1, diff)
				}
			}
		})
	}
}

// S17: 512 members in three classes that fill the nodes to the last slot. Task order has the
// small ones first, which takes the large nodes from the large ones; largest first fits.
func TestLargeGangWhereOnlyOneOrderFits(t *testing.T) {
	transcript := Run(t, builtIn(t), Given(
		Nodes(16, "large", "16cpu"),
		Nodes(196, "small", "4cpu"),
		Queue("q", 1),
		Group("q/gang", 512,
			Pending(400, "1cpu", Priority(3)),
			Pending(96, "4cpu", Priority(2)),
			Pending(16, "16cpu", Priority(1)),
		),
	))
	if diff := cmp.Diff(map[string]int{"bind q/gang": 512}, summary(transcript, false)); diff != "" {
		t.Error(diff)
	}
}

// S15: the same input twice, and with its rows shuffled, gives the same output. Every cycle of
// every test checks this for one order; here it is more of them, where much could tip.
func TestSameInputSameOutput(t *testing.T) {
	given := Given(
		Nodes(4, "n", "4cpu 8Gi"), Nodes(2, "g", "4cpu 8Gi 2gpu", Label("zone", "b")),
		Queue("q1", 1), Queue("q2", 1), Queue("q3", 2, Capability("5cpu")),
		Foreign("web", Running(2, "1cpu", "n1", Away(hostname, "app=x")), Running(1, "1cpu 1Gi", "g1")),
		Group("q1/a", 4, Pending(6, "1cpu"), Label("app", "x")),
		Group("q1/b", 3, Pending(3, "1cpu 2Gi"), BestEffort(2)),
		Group("q2/c", 4, Pending(4, "1cpu 1gpu")),
		Group("q2/d", 2, Pending(3, "2cpu"), Label("app", "y"), Near(hostname, "app=y")),
		Group("q3/e", 1, Pending(9, "1cpu"), Label("app", "z"), Spread(1, hostname, "app=z")),
		ReplicaSet("r", OfQueue("q1"), Pending(3, "0.5cpu", HostPort(80))),
		Plain("p", OfQueue("q2"), Pending(3, "1Gi")),
	)
	want := Run(t, builtIn(t), given)
	for seed := range int64(20) {
		if diff := cmp.Diff(want, Run(t, builtIn(t), given, WithShuffleSeed(seed))); diff != "" {
			t.Fatalf("seed %d:\n%s", seed, diff)
		}
	}
}
