// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// rack declares nodes of one rack of a block: rack("b1", "r1", 4, "1cpu") has the nodes b1r1n1 to b1r1n4.
func rack(block, name string, nodes int, allocatable string) Row {
	return Nodes(nodes, block+name+"n", allocatable, Label("block", block), Label("rack", name))
}

// racks declares a queue, a topology of blocks and racks, and more rows.
func racks(rows ...Row) []Row {
	return append(Given(Topology("default", "block", "rack"), Queue("q", 1)), rows...)
}

// each declares count groups of one running pod, each on a node of its own: prefix1, prefix2, ….
func each(name string, count int, node string, options ...PodOption) Row {
	return func(s *Scenario) {
		for i := range count {
			on := fmt.Sprintf("%s%d", node, i+1)
			parts := []Part{Running(1, "1cpu", on)}
			for _, o := range options {
				parts = append(parts, o)
			}
			Group(fmt.Sprintf("%s%d", name, i+1), 1, parts...)(s)
		}
	}
}

// on lists running pods of 1 cpu, one on each node.
func on(nodes ...string) []Part {
	var parts []Part
	for _, node := range nodes {
		parts = append(parts, Running(1, "1cpu", node))
	}
	return parts
}

// TestTopologyPlaces asserts where gangs with a required level start. The numbers are those of the acceptance list.
func TestTopologyPlaces(t *testing.T) {
	Cases{
		"TO1: a gang takes the smallest rack that holds it, and leaves others whole": {
			Given: racks(
				rack("b", "r1", 4, "1cpu"), rack("b", "r2", 4, "1cpu"), rack("b", "r3", 2, "1cpu"),
				Group("q/four", 4, Within("rack"), Pending(4, "1cpu")),
				Group("q/two", 2, Within("rack"), Pending(2, "1cpu")),
			),
			Want: `bind q/four-0 br1n1
			       bind q/four-1 br1n2
			       bind q/four-2 br1n3
			       bind q/four-3 br1n4
			       bind q/two-0 br3n1
			       bind q/two-1 br3n2`,
		},
		"a gang that no rack holds says nothing about an equal one that needs a block": {
			Given: racks(
				rack("b", "r1", 1, "1cpu"), rack("b", "r2", 1, "1cpu"),
				Group("q/a", 2, Within("rack"), Pending(2, "1cpu")), Group("q/b", 2, Within("rack"), Pending(2, "1cpu")),
				Group("q/c", 2, Within("block"), Pending(2, "1cpu")),
			),
			Want: `bind q/c-0 br1n1
			       bind q/c-1 br2n1`,
		},
		"a rack that is in use comes before a whole one of the same size": {
			Given: racks(
				rack("b", "r1", 3, "1cpu"), rack("b", "r2", 4, "1cpu"),
				Group("q/old", 1, Running(1, "1cpu", "br2n1")),
				Group("q/gang", 3, Within("rack"), Pending(3, "1cpu")),
			),
			Want: `bind q/gang-0 br2n2
			       bind q/gang-1 br2n3
			       bind q/gang-2 br2n4`,
		},
		"a rack of a block that is in use comes before one of a whole block": {
			Given: racks(
				rack("b1", "r1", 2, "1cpu"), rack("b2", "r1", 2, "1cpu"), rack("b2", "r2", 1, "1cpu"),
				Group("q/old", 1, Running(1, "1cpu", "b2r2n1")),
				Group("q/gang", 2, Within("rack"), Pending(2, "1cpu")),
			),
			Want: `bind q/gang-0 b2r1n1
			       bind q/gang-1 b2r1n2`,
		},
		"TO13: surplus pods start in the rack of the gang, which is one for as many of them as possible": {
			Given: racks(
				rack("b", "r1", 4, "1cpu"), rack("b", "r2", 6, "1cpu"), rack("b", "r3", 5, "1cpu"),
				Group("q/gang", 4, Within("rack"), Pending(8, "1cpu")),
			),
			Want: `bind q/gang-0 br2n1
			       bind q/gang-1 br2n2
			       bind q/gang-2 br2n3
			       bind q/gang-3 br2n4
			       bind q/gang-4 br2n5
			       bind q/gang-5 br2n6`,
		},
		"pods without requests stay in the rack too": {
			Given: racks(
				rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"),
				Group("q/gang", 2, append(on("br2n1", "br2n2"), Within("rack"), BestEffort(2))...),
			),
			Want: `bind q/gang-2 br2n1
			       bind q/gang-3 br2n1`,
		},
		"a gang of several kinds of pods is in one rack": {
			Given: racks(
				rack("b", "r1", 2, "2cpu"), rack("b", "r2", 3, "2cpu"),
				Group("q/gang", 4, Within("rack"), Pending(2, "2cpu"), Pending(2, "1cpu")),
			),
			Want: `bind q/gang-0 br2n1
			       bind q/gang-1 br2n2
			       bind q/gang-2 br2n3
			       bind q/gang-3 br2n3`,
		},
		"a node without the label of a wider level is in no rack": {
			Given: racks(
				Nodes(2, "stray", "1cpu", Label("rack", "r1")), Node("bare", "1cpu"), rack("b", "r1", 2, "1cpu"),
				Group("q/gang", 3, Within("rack"), Pending(3, "1cpu")),
				Group("q/free", 3, Pending(3, "1cpu")),
			),
			Want: `bind q/free-0 bare
			       bind q/free-1 br1n1
			       bind q/free-2 br1n2`,
		},
		"a gang without a constraint in the same queue is not restricted": {
			Given: racks(
				rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"),
				Group("q/tied", 3, Within("rack"), Pending(3, "1cpu")),
				Group("q/free", 3, Pending(3, "1cpu")),
			),
			Want: `bind q/free-0 br1n1
			       bind q/free-1 br1n2
			       bind q/free-2 br2n1`,
		},
	}.TestTranscripts(t)
}

// TestTopologyPlans asserts for which domain pods are evicted.
func TestTopologyPlans(t *testing.T) {
	Cases{
		"TO7: a plan that needs one victim in one domain has no victims in two": { // Volcano #4533
			Given: racks(
				rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"),
				Group("q/low1", 1, Running(1, "1cpu", "br1n2")), Group("q/low2", 1, Running(1, "1cpu", "br2n1")),
				Group("q/high", 2, Within("rack"), Priority(10), Pending(2, "1cpu")),
			),
			Want: `evict q/low2-0 for q/high
			       hold q/high-0 br2n2
			       pipeline q/high-1 br2n1`,
		},
		"TO9: the domain of the victims with the lowest priority is freed": {
			Given: racks(
				rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"),
				each("q/ten", 2, "br1n", Priority(10)), each("q/five", 2, "br2n", Priority(5)),
				Group("q/high", 2, Within("rack"), Priority(20), Pending(2, "1cpu")),
			),
			Want: `evict q/five1-0 for q/high
			       evict q/five2-0 for q/high
			       pipeline q/high-0 br2n2
			       pipeline q/high-1 br2n1`,
		},
	}.TestTranscripts(t, WithConfig(AllActions))
}

// TestTopologyOfFullRack is TO8: a rack that is fully held by lower priorities can be freed, although nothing is idle there
// (KAI #1591).
func TestTopologyOfFullRack(t *testing.T) {
	s := New(t, BuiltIn(t), racks(
		rack("b", "a", 17, "4cpu"), rack("b", "b", 3, "1cpu"),
		Group("q/usedb", 1, on("bbn1", "bbn2", "bbn3")...),
	), WithConfig(AllActions))
	for i := range 68 {
		s.Add(Group(fmt.Sprintf("q/low%d", i), 1, Running(1, "1cpu", fmt.Sprintf("ban%d", i%17+1))))
	}
	s.Add(Group("q/high", 11, Within("rack"), Priority(10), Pending(11, "1cpu")))
	decisions := s.Cycle()
	if got := strings.Count(decisions, "evict q/low"); got != 11 || strings.Contains(decisions, "usedb") {
		t.Errorf("%d victims in the rack, want 11 and none elsewhere:\n%s", got, decisions)
	}
	s.FinishEvictions()
	if got := strings.Count(s.Cycle(), "bind q/high-"); got != 11 {
		t.Errorf("%d pods of the gang start, want 11", got)
	}
}

// TestTopologyWaits asserts the reasons of gangs whose level has no domain for them.
func TestTopologyWaits(t *testing.T) {
	cases := map[string]struct {
		given []Row
		want  string
	}{
		"TO5: racks of one name in two blocks are two racks": {
			racks(rack("b1", "r1", 2, "1cpu"), rack("b2", "r1", 2, "1cpu"), Group("q/gang", 4, Within("rack"), Pending(4, "1cpu"))),
			`waits q/gang ExceedsClusterCapacity: needs 4 more pods of 1 cpu in one rack; rack b1/r1 has resources for 2 of 4 pods; 4/4 nodes are available; would not fit any empty rack (at most 2 of 4 pods)`,
		},
		"TO15: a level that does not exist": {
			racks(rack("b", "r1", 2, "1cpu"), Group("q/gang", 2, Within("rak"), Pending(2, "1cpu"))),
			`waits q/gang TopologyNotFound: no level "rak" in topology default: block, rack; did you mean "rack"?`,
		},
		"a topology that does not exist": {
			racks(rack("b", "r1", 2, "1cpu"), Group("q/gang", 2, Within("defalt rack"), Pending(2, "1cpu"))),
			`waits q/gang TopologyNotFound: no topology "defalt": default; did you mean "default"?`,
		},
		"several topologies": {
			racks(Topology("other", "rack"), rack("b", "r1", 2, "1cpu"), Group("q/gang", 2, Within("rack"), Pending(2, "1cpu"))),
			`waits q/gang TopologyNotFound: no topology is named, and there are several: default, other`,
		},
		"no topology": {
			Given(Queue("q", 1), rack("b", "r1", 2, "1cpu"), Group("q/gang", 2, Within("rack"), Pending(2, "1cpu"))),
			`waits q/gang TopologyNotFound: no topology exists`,
		},
		"no node has the labels": {
			racks(Nodes(2, "n", "1cpu"), Group("q/gang", 2, Within("rack"), Pending(2, "1cpu"))),
			`waits q/gang Unschedulable: needs 2 more pods of 1 cpu; 0/2 nodes are available: 2 node(s) were not in any rack`,
		},
		"all racks are in use": {
			racks(rack("b", "r1", 3, "1cpu"), rack("b", "r2", 3, "1cpu"),
				Group("q/old", 1, on("br1n1", "br1n2", "br2n1")...), Group("q/gang", 3, Within("rack"), Pending(3, "1cpu"))),
			`waits q/gang NotEnoughResources: needs 3 more pods of 1 cpu in one rack; rack b/r2 has resources for 2 of 3 pods; 3/6 nodes are available: 3 Insufficient cpu`,
		},
		"TO13: surplus": {
			racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 1, "1cpu"), Group("q/gang", 2, append(on("br1n1", "br1n2"), Within("rack"), Pending(2, "1cpu"))...)),
			`waits q/gang-2 NotEnoughResources: needs 2 more pods of 1 cpu in one rack; rack b/r1 has resources for 0 of 2 pods; 0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were not in rack b/r1`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := New(t, BuiltIn(t), tc.given)
			if decisions := s.Cycle(); decisions != "" {
				t.Errorf("decides:\n%s", decisions)
			}
			CompareTranscripts(t, tc.want, s.Waits())
		})
	}
}

// TestTopologyAsksNoShare asserts that a gang whose level does not exist takes no share from another queue (TO15).
func TestTopologyAsksNoShare(t *testing.T) {
	s := New(t, BuiltIn(t), racks(
		Queue("p", 1), rack("b", "r1", 4, "1cpu"),
		Group("q/gang", 4, Within("rak"), Pending(4, "1cpu")), Group("p/all", 1, Pending(4, "1cpu"))))
	if got := FormatCounts(CountBinds(s.Cycle())); got != "all 4" {
		t.Errorf("binds %s, want all pods of p/all", got)
	}
}

// TestTopologyReplacements asserts the first half of TO12: pods that replace lost members start in the domain of the others,
// and wait if it is full.
func TestTopologyReplacements(t *testing.T) {
	s := New(t, BuiltIn(t), racks(
		rack("b", "r1", 5, "1cpu"), rack("b", "r2", 8, "1cpu"),
		Group("q/gang", 4, append(on("br1n1", "br1n2", "br1n3", "br1n4"), Within("rack"))...)))
	s.Cycle()
	s.DeleteNode("br1n1")
	s.DeleteNode("br1n2")
	s.Delete("q/gang-0", "q/gang-1")
	s.CreateAgain("q/gang-0", "q/gang-1")
	CompareTranscripts(t, ``, s.Cycle())
	CompareTranscripts(t, `waits q/gang ExceedsClusterCapacity: needs 2 more pods of 1 cpu in one rack; rack b/r1 has resources for 1 of 2 pods; 1/11 nodes are available: 8 node(s) were not in rack b/r1, 2 Insufficient cpu; would not fit rack b/r1, where its other pods run, if that were empty (at most 3 of 4 pods)`, s.Waits())
	s.Add(Node("extra", "1cpu", Label("block", "b"), Label("rack", "r1")))
	CompareTranscripts(t, `bind q/gang-0 br1n5
		bind q/gang-1 extra`, s.Cycle())
}

// TestTopologyFollowsChanges asserts that a gang is tried again when the labels of nodes or the levels of its topology change.
func TestTopologyFollowsChanges(t *testing.T) {
	s := New(t, BuiltIn(t), racks(
		rack("b", "r1", 1, "1cpu"), rack("b", "r2", 1, "1cpu"), Group("q/gang", 2, Within("rack"), Pending(2, "1cpu"))))
	CompareTranscripts(t, ``, s.Cycle())
	s.EditNode("br2n1", func(n *v1.Node) { n.Labels["rack"] = "r1" })
	CompareTranscripts(t, `bind q/gang-0 br1n1
		bind q/gang-1 br2n1`, s.Cycle())
	s.ConfirmBinds(s.InFlight()...)
	s.Add(rack("b", "r3", 1, "1cpu"), rack("c", "r3", 1, "1cpu"), Group("q/next", 2, Within("rack"), Pending(2, "1cpu")))
	CompareTranscripts(t, ``, s.Cycle())
	s.Add(Topology("default", "rack"))
	CompareTranscripts(t, `bind q/next-0 br3n1
		bind q/next-1 cr3n1`, s.Cycle())
	s.ConfirmBinds(s.InFlight()...)
	s.Add(MissingTopology("default"), rack("d", "r4", 2, "1cpu"), Group("q/last", 2, Within("rack"), Pending(2, "1cpu")))
	CompareTranscripts(t, ``, s.Cycle())
	s.Add(Topology("default", "rack"))
	CompareTranscripts(t, `bind q/last-0 dr4n1
		bind q/last-1 dr4n2`, s.Cycle())
}
