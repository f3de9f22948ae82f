// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestTopologyEdges asserts where gangs start in unusual domains.
func TestTopologyEdges(t *testing.T) {
	inRack := func(name string, options ...NodeOption) Row {
		return Node(name, "1cpu", append(options, Label("block", "b"), Label("rack", name[1:3]))...)
	}
	testPlacements(t, map[string]placement{
		"only minMember of the pods fit any rack": {
			nodes: "b/r1 1 1, b/r2 1", given: Given(Group("q/gang", 2, Within("rack"), Pending(5, "1cpu"))), want: "br1 2",
		},
		"a taint on a part of a rack": {
			nodes: "b/r1 1 1 1 1, b/r2 1 1 1", given: Given(inRack("br1n1", Taint("k=v:NoSchedule")), inRack("br1n2", Taint("k=v:NoSchedule")), gangOf(3, "1cpu", Within("rack"))),
			want: "br2 3",
		},
		"all nodes of a rack are cordoned": {
			nodes: "b/r1 1 1, b/r2 1 1 1", given: Given(inRack("br1n1", Unschedulable()), inRack("br1n2", Unschedulable()), gangOf(2, "1cpu", Within("rack"))), want: "br2 2",
		},
		"all nodes of the only rack are cordoned": {
			nodes: "b/r1 1 1", given: Given(inRack("br1n1", Unschedulable()), inRack("br1n2", Unschedulable()), gangOf(2, "1cpu", Within("rack"))),
			waits: "2 node(s) were unschedulable",
		},
		"a node whose label is empty is in no rack": {
			nodes: "b/r1 1", given: Given(Node("br2n1", "1cpu", Label("block", "b"), Label("rack", "")), gangOf(2, "1cpu", Within("rack"))),
			waits: "1 node(s) were not in any rack",
		},
		"a node whose wider label is empty is in no rack": {
			nodes: "b/r1 1", given: Given(Node("br1n2", "1cpu", Label("block", ""), Label("rack", "r1")), gangOf(2, "1cpu", Within("rack"))),
			waits: "1 node(s) were not in any rack",
		},
		"pods of other schedulers use the rack": {
			nodes: "b/r1 1 1, b/r2 1 1 1", given: Given(Foreign("other", Running(1, "1cpu", "br1n1")), gangOf(2, "1cpu", Within("rack"))), want: "br2 2",
		},
		"a rack of one node holds a gang": {
			nodes: "b/r1 2, b/r2 1 1 1", given: Given(gangOf(2, "1cpu", Within("rack"))), want: "br1 2",
		},
	})
}

// TestTopologyOfManyDomains asserts that each of many domains of one node can be found.
func TestTopologyOfManyDomains(t *testing.T) {
	given := Given(Topology("default", "host"), Queue("q", 1))
	for i := range 300 {
		cpus := "1cpu"
		if i == 277 {
			cpus = "2cpu"
		}
		name := fmt.Sprintf("h%d", i)
		given = append(given, Node(name, cpus, Label("host", name)))
	}
	CompareTranscripts(t, `bind q/gang-0 h277
		bind q/gang-1 h277`, Run(t, BuiltIn(t), append(given, gangOf(2, "1cpu", Within("host")))))
}

// TestTopologyTriesALargeDomain asserts that a gang of two kinds of pods starts although each kind by itself fits into more
// domains than are tried: its workers need all nodes of 20 racks, and its leader one more.
func TestTopologyTriesALargeDomain(t *testing.T) {
	given := racks()
	for i := range 20 {
		given = append(given, rack("b", fmt.Sprintf("r%02d", i), 3, "1cpu"))
	}
	given = append(given, rack("b", "x", 5, "1cpu"))
	transcript := Run(t, BuiltIn(t), append(given, withLeader("0.5cpu", 3, "1cpu", Within("rack"))))
	if got, want := placedOn(transcript, ""), "bx 4"; got != want {
		t.Errorf("got %q, want %q\n%s", got, want, transcript)
	}
}

// TestTwoTopologies: a node is in domains of several topologies, and gangs require levels of each.
func TestTwoTopologies(t *testing.T) {
	node := func(name, rack, power string) Row {
		return Node(name, "1cpu", Label("rack", rack), Label("power", power))
	}
	CompareTranscripts(t, `bind q/byrack-0 n1
		bind q/byrack-1 n2
		bind q/bypower-0 n3
		bind q/bypower-1 n5`, Run(t, BuiltIn(t), Given(Topology("default", "rack"), Topology("feed", "power"), Queue("q", 1),
		node("n1", "r1", "p1"), node("n2", "r1", "p2"), node("n3", "r2", "p1"), node("n4", "r2", "p2"), node("n5", "r3", "p1"),
		Group("q/byrack", 2, Within("default rack"), Pending(2, "1cpu")), Group("q/bypower", 2, Within("feed power"), Pending(2, "1cpu")))))
}

// TestTopologyOfRunningGangs asserts that changes of labels and of topologies evict nothing, and where more pods start.
func TestTopologyOfRunningGangs(t *testing.T) {
	given := racks(rack("b", "r1", 4, "1cpu"), rack("b", "r2", 3, "1cpu"),
		Group("q/gang", 3, append(on("br1n1", "br1n2", "br1n3"), Within("rack"))...))
	more := More("q/gang", Pending(1, "1cpu"))
	t.Run("a node moves to another rack", func(t *testing.T) {
		s := New(t, BuiltIn(t), given, WithConfig(AllActions))
		s.EditNode("br1n1", func(n *v1.Node) { n.Labels["rack"] = "r2" })
		CompareTranscripts(t, ``, s.Cycle())
		s.Add(more)
		CompareTranscripts(t, `bind q/gang-3 br1n4`, s.Cycle())
	})
	t.Run("most nodes move to another rack", func(t *testing.T) {
		s := New(t, BuiltIn(t), given, WithConfig(AllActions))
		for _, node := range []string{"br1n1", "br1n2"} {
			s.EditNode(node, func(n *v1.Node) { n.Labels["rack"] = "r2" })
		}
		s.Add(more)
		CompareTranscripts(t, `bind q/gang-3 br2n1`, s.Cycle())
	})
	t.Run("the topology is deleted", func(t *testing.T) {
		s := New(t, BuiltIn(t), given, WithConfig(AllActions))
		s.Add(MissingTopology("default"), more)
		CompareTranscripts(t, ``, s.Cycle())
		CompareTranscripts(t, `waits q/gang TopologyNotFound: no topology exists`, s.Waits())
		s.Add(Topology("default", "block", "rack"))
		CompareTranscripts(t, `bind q/gang-3 br1n4`, s.Cycle())
	})
	t.Run("a node is replaced under the same rack", func(t *testing.T) {
		s := New(t, BuiltIn(t), given, WithConfig(AllActions))
		s.DeleteNode("br1n4")
		s.Add(more, Node("new", "1cpu", Label("block", "b"), Label("rack", "r1")))
		CompareTranscripts(t, `bind q/gang-3 new`, s.Cycle())
	})
}

// TestTopologyEvictsNoPodsOfOthers: pods of other schedulers in a rack are never evicted.
func TestTopologyEvictsNoPodsOfOthers(t *testing.T) {
	s := New(t, BuiltIn(t), racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"),
		Foreign("other", Running(1, "1cpu", "br1n1")), Group("q/low", 1, Running(1, "1cpu", "br1n2")), each("q/mid", 2, "br2n", Priority(5)),
		Group("q/gang", 2, Priority(10), Within("rack"), Pending(2, "1cpu"))), WithConfig(AllActions))
	CompareTranscripts(t, `evict q/mid1-0 for q/gang
		evict q/mid2-0 for q/gang
		pipeline q/gang-0 br2n2
		pipeline q/gang-1 br2n1`, s.Cycle())
}

// TestTopologyBudget is TO10: a disruption budget covers the rack, and allows fewer evictions than are needed.
func TestTopologyBudget(t *testing.T) {
	s := New(t, BuiltIn(t), racks(rack("b", "a", 4, "1cpu"), rack("b", "b", 1, "1cpu"), Budget("train", 1, "app", "train"),
		each("q/low", 4, "ban", Label("app", "train")),
		Group("q/gang", 2, Priority(10), Within("rack"), Pending(2, "1cpu"))), WithConfig(AllActions))
	CompareTranscripts(t, ``, s.Cycle())
	if got := s.Waits(); !strings.Contains(got, "3 pods that could be evicted are protected by PodDisruptionBudgets") {
		t.Errorf("waits because of %s", got)
	}
}

// TestTopologyKeepsThePlan is TO11: while the victims of a plan end, another rack becomes free. The gang may start there, the
// resources of victims that have not ended are not free, and no further pod is evicted.
func TestTopologyKeepsThePlan(t *testing.T) {
	given := racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"), rack("b", "r3", 2, "1cpu"),
		each("q/low", 2, "br1n"), each("q/mid", 2, "br2n", Priority(50)), each("q/other", 2, "br3n", Priority(5)),
		Group("q/gang", 2, Priority(10), Within("rack"), Pending(2, "1cpu")))
	plan := `evict q/low1-0 for q/gang
		evict q/low2-0 for q/gang
		pipeline q/gang-0 br1n2
		pipeline q/gang-1 br1n1`
	t.Run("nothing becomes free", func(t *testing.T) {
		s := New(t, BuiltIn(t), given, WithConfig(AllActions))
		CompareTranscripts(t, plan, s.Cycle())
		s.Ending(20*time.Second, "q/low1-0", "q/low2-0")
		s.Wait(10 * time.Second)
		CompareTranscripts(t, `pipeline q/gang-0 br1n2
			pipeline q/gang-1 br1n1`, s.Cycle())
		s.FinishEvictions()
		CompareTranscripts(t, `bind q/gang-0 br1n1
			bind q/gang-1 br1n2`, s.Cycle())
	})
	t.Run("another rack becomes free", func(t *testing.T) {
		s := New(t, BuiltIn(t), given, WithConfig(AllActions))
		CompareTranscripts(t, plan, s.Cycle())
		s.Ending(20*time.Second, "q/low1-0", "q/low2-0")
		s.Delete("q/mid1-0", "q/mid2-0")
		CompareTranscripts(t, `bind q/gang-0 br2n1
			bind q/gang-1 br2n2`, s.Cycle())
		s.ConfirmBinds(s.InFlight()...)
		s.Add(Group("q/next", 2, Priority(10), Within("rack"), Pending(2, "1cpu"))) // waits for those that end
		CompareTranscripts(t, `pipeline q/next-0 br1n1
			pipeline q/next-1 br1n2`, s.Cycle())
	})
	t.Run("half of another rack becomes free", func(t *testing.T) {
		s := New(t, BuiltIn(t), given, WithConfig(AllActions))
		CompareTranscripts(t, plan, s.Cycle())
		s.Ending(20*time.Second, "q/low1-0", "q/low2-0")
		s.Delete("q/other1-0")
		CompareTranscripts(t, `pipeline q/gang-0 br1n2
			pipeline q/gang-1 br1n1`, s.Cycle())
	})
}

// TestTopologyReservation is TO18: resources that become free in one rack are kept for a gang that has waited long, and those
// of other racks are not. A second gang gets another rack.
func TestTopologyReservation(t *testing.T) {
	const policy = AllActions + "starvationAfter: 1m\n"
	s := New(t, BuiltIn(t), racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"),
		Group("q/old1", 1, on("br1n1", "br1n2")...), Group("q/old2", 1, on("br2n1", "br2n2")...),
		gangOf(2, "1cpu", Within("rack"))), WithConfig(policy))
	CompareTranscripts(t, ``, s.Cycle())
	s.Wait(2 * time.Minute)
	CompareTranscripts(t, ``, s.Cycle())
	if got, want := waitsOf(s, "q/gang"), "; reserved: 2 nodes of rack b/r1, because it has been pending for more than 1m0s"; !strings.Contains(got, want) {
		t.Errorf("want %q in %q", want, got)
	}
	s.Add(Plain("small", OfQueue("q"), Pending(3, "1cpu")))
	s.Delete("q/old1-0", "q/old2-0")
	taken := s.Cycle()
	if n := strings.Count(taken, "bind small"); n != 1 {
		t.Errorf("%d small pods start, want 1: the node of the other rack\n%s\n%s", n, taken, s.Waits())
	}
}

// TestTopologyAndShares is TO19: nothing is evicted if the share permits it and the domains do not, or the other way around.
func TestTopologyAndShares(t *testing.T) {
	for name, tc := range map[string]struct {
		given []Row
		want  string
	}{
		"the share of the queue permits the gang, and no rack can be freed": {
			given: racks(Queue("q", 9), Queue("p", 1), rack("b", "r1", 3, "1cpu"), rack("b", "r2", 3, "1cpu"),
				Group("q/own1", 1, on("br1n1")...), Group("q/own2", 1, on("br2n1")...),
				Group("p/other1", 1, on("br1n2", "br1n3")...), Group("p/other2", 1, on("br2n2", "br2n3")...),
				gangOf(3, "1cpu", Within("rack"))),
		},
		"a rack could be freed, and the share of the queue does not permit the gang": {
			given: racks(Queue("p", 1), rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"), rack("b", "r3", 2, "1cpu"),
				Group("p/other1", 2, on("br1n1", "br1n2")...), Group("q/own", 2, on("br2n1", "br2n2")...), Group("p/other2", 2, on("br3n1", "br3n2")...),
				gangOf(2, "1cpu", Within("rack"))),
		},
		"both permit the gang": {
			given: racks(Queue("q", 9), Queue("p", 1), rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"), rack("b", "r3", 2, "1cpu"),
				Group("p/other1", 2, on("br1n1", "br1n2")...), Group("q/own", 2, on("br2n1", "br2n2")...), Group("p/other2", 2, on("br3n1", "br3n2")...),
				gangOf(2, "1cpu", Within("rack"))),
			want: `evict p/other2-0 for q/gang
				evict p/other2-1 for q/gang
				pipeline q/gang-0 br3n1
				pipeline q/gang-1 br3n2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			CompareTranscripts(t, tc.want, Run(t, BuiltIn(t), tc.given, WithConfig(AllActions)))
		})
	}
}

// TestTopologyWinner is TO20: of two gangs that need the last rack, the same one gets it, whatever the order in which objects
// are seen, and the message of the other one names the rack.
func TestTopologyWinner(t *testing.T) {
	for seed := range 10 {
		s := New(t, BuiltIn(t), racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 1, "1cpu"),
			Group("q/first", 2, Within("rack"), Pending(2, "1cpu")), Group("q/second", 2, Within("rack"), Pending(2, "1cpu"))),
			WithShuffleSeed(int64(seed)))
		CompareTranscripts(t, `bind q/first-0 br1n1
			bind q/first-1 br1n2`, s.Cycle())
		s.ConfirmBinds(s.InFlight()...)
		CompareTranscripts(t, ``, s.Cycle())
		CompareTranscripts(t, `waits q/second NotEnoughResources: needs 2 more pods of 1 cpu in one rack; rack b/r2 has resources for 1 of 2 pods; 1/3 nodes are available: 2 Insufficient cpu`, s.Waits())
	}
}

// TestTopologyMoves is TO12: a gang that its rack cannot hold any more after nodes were lost goes to another rack as a whole,
// once it is degraded.
func TestTopologyMoves(t *testing.T) {
	for name, tc := range map[string]struct {
		given []Row
		want  string // after the grace
		then  string // after the pods were created again
	}{
		"another rack holds the gang": {
			given: Given(rack("b", "r2", 4, "1cpu")),
			want: `evict q/gang-2 for q/gang
				evict q/gang-3 for q/gang`,
			then: `bind q/gang-0 br2n1
				bind q/gang-1 br2n2
				bind q/gang-2 br2n3
				bind q/gang-3 br2n4`,
		},
		"no other rack holds the gang":               {given: Given(rack("b", "r2", 3, "1cpu"))},
		"another rack would hold it if it were free": {given: Given(rack("b", "r2", 4, "1cpu"), Group("q/old", 1, on("br2n1")...))},
		"a disruption budget protects the gang":      {given: Given(rack("b", "r2", 4, "1cpu"), Budget("gang", 0, "app", "gang"))},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t, BuiltIn(t), append(racks(rack("b", "r1", 4, "1cpu"),
				Group("q/gang", 4, append(on("br1n1", "br1n2", "br1n3", "br1n4"), Within("rack"), Label("app", "gang"))...)), tc.given...), WithConfig(AllActions))
			s.Cycle()
			s.DeleteNode("br1n1")
			s.DeleteNode("br1n2")
			s.Recreate("q/gang-0", "q/gang-1")
			CompareTranscripts(t, ``, s.Cycle())
			s.Wait(2 * time.Minute)
			CompareTranscripts(t, tc.want, s.Cycle())
			if tc.then == "" {
				return
			}
			FinishEvictionsAndRecreate(s)
			CompareTranscripts(t, tc.then, s.Cycle())
		})
	}
}
