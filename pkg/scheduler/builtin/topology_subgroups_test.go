// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// inOne makes a subgroup require one domain of a level.
func inOne(level string, s v1alpha1.SubGroup) v1alpha1.SubGroup {
	s.TopologyConstraint = &v1alpha1.RequiredTopology{RequiredTopologyLevel: level}
	return s
}

// eachInOne makes the segments of a subgroup require one domain each.
func eachInOne(level string, s v1alpha1.SubGroup) v1alpha1.SubGroup {
	s.SegmentTopologyConstraint = &v1alpha1.RequiredTopology{RequiredTopologyLevel: level}
	return s
}

// hosts declares nodes of a rack that are domains of the level host too, with the given numbers of cpus.
func hosts(block, rack string, cpus ...int) Row {
	return func(s *Scenario) {
		for i, n := range cpus {
			name := fmt.Sprintf("%s%sn%d", block, rack, i+1)
			Node(name, fmt.Sprintf("%dcpu", n), Label("block", block), Label("rack", rack), Label("host", name))(s)
		}
	}
}

// hostTopology declares a queue, a topology of blocks, racks and hosts, and more rows.
func hostTopology(rows ...Row) []Row {
	return append(Given(Topology("default", "block", "rack", "host"), Queue("q", 1)), rows...)
}

// manyRacks declares racks with two free nodes, each in a block of its own. Gangs prefer them to whole racks.
func manyRacks(count int) []Row {
	rows := racks()
	for i := range count {
		block := fmt.Sprintf("b%02d", i)
		rows = append(rows, rack(block, "r", 3, "1cpu"), Group("q/in-"+block, 1, on(block+"rn1")...))
	}
	return rows
}

// TestTopologyOfSubGroups asserts where subgroups and segments start that require a level.
func TestTopologyOfSubGroups(t *testing.T) {
	Cases{
		// The example of KEP-6012: block a has one rack for a subgroup, block b has two.
		"TO6: a group in one block with two subgroups in one rack each": {
			Given: racks(
				rack("a", "r1", 3, "1cpu"), rack("a", "r2", 5, "1cpu"), rack("b", "r1", 5, "1cpu"), rack("b", "r2", 5, "1cpu"),
				Group("q/gang", 1, Within("block"), SubGroups(inOne("rack", leaf("x", 5)), inOne("rack", leaf("y", 5))),
					role("x", 5, "1cpu"), role("y", 5, "1cpu")),
			),
			Want: `bind q/gang-0 br1n1
			       bind q/gang-1 br1n2
			       bind q/gang-2 br1n3
			       bind q/gang-3 br1n4
			       bind q/gang-4 br1n5
			       bind q/gang-5 br2n1
			       bind q/gang-6 br2n2
			       bind q/gang-7 br2n3
			       bind q/gang-8 br2n4
			       bind q/gang-9 br2n5`,
		},
		"the largest subgroup chooses its rack first": {
			Given: racks(
				rack("a", "r1", 2, "1cpu"), rack("a", "r2", 3, "1cpu"),
				Group("q/gang", 1, SubGroups(inOne("rack", leaf("x", 2)), inOne("rack", leaf("y", 3))), role("x", 2, "1cpu"), role("y", 3, "1cpu")),
			),
			Want: `bind q/gang-0 ar1n1
			       bind q/gang-1 ar1n2
			       bind q/gang-2 ar2n1
			       bind q/gang-3 ar2n2
			       bind q/gang-4 ar2n3`,
		},
		"TO4: segments of 2 on one host each, on as few hosts as possible": { // T-3
			Given: hostTopology(
				hosts("b", "r", 6, 5, 4, 3, 2),
				Group("q/gang", 1, append(replicas("w", 0, 6, 2, "1cpu"), SubGroups(eachInOne("host", segments("w", 2, 6))))...),
			),
			Want: `bind q/gang-0 brn1
			       bind q/gang-1 brn1
			       bind q/gang-10 brn5
			       bind q/gang-11 brn5
			       bind q/gang-2 brn1
			       bind q/gang-3 brn1
			       bind q/gang-4 brn1
			       bind q/gang-5 brn1
			       bind q/gang-6 brn3
			       bind q/gang-7 brn3
			       bind q/gang-8 brn3
			       bind q/gang-9 brn3`,
		},
		"a segment more than the racks hold does not start": {
			Given: racks(
				rack("a", "r1", 3, "1cpu"), rack("a", "r2", 3, "1cpu"),
				Group("q/gang", 1, append(replicas("w", 0, 3, 2, "1cpu"), SubGroups(eachInOne("rack", segments("w", 2, 2))))...),
			),
			Want: `bind q/gang-0 ar1n1
			       bind q/gang-1 ar1n2
			       bind q/gang-2 ar2n1
			       bind q/gang-3 ar2n2`,
		},
		"a gang with too many segments waits": {
			Given: racks(
				rack("a", "r1", 3, "1cpu"), rack("a", "r2", 3, "1cpu"),
				Group("q/gang", 1, append(replicas("w", 0, 3, 2, "1cpu"), SubGroups(eachInOne("rack", segments("w", 2, 3))))...),
			),
		},
		"a further segment starts in the rack that holds it": {
			Given: racks(
				rack("a", "r1", 3, "1cpu"), rack("a", "r2", 2, "1cpu"),
				Group("q/gang", 1, append(replicas("w", 1, 2, 2, "1cpu"), SubGroups(eachInOne("rack", segments("w", 2, 1))),
					Running(1, "1cpu", "ar1n1", Label("role", "w"), Label("replica", "0")), Running(1, "1cpu", "ar1n2", Label("role", "w"), Label("replica", "0")))...),
			),
			Want: `bind q/gang-0 ar2n1
			       bind q/gang-1 ar2n2`,
		},
		"a further segment starts in the block of the gang, however many racks are outside": {
			Given: append(manyRacks(20),
				rack("z", "r1", 2, "1cpu"), rack("z", "r2", 3, "1cpu"),
				Group("q/gang", 1, append(replicas("w", 1, 2, 2, "1cpu"), Within("block"), SubGroups(eachInOne("rack", segments("w", 2, 1))),
					Running(1, "1cpu", "zr1n1", Label("role", "w"), Label("replica", "0")), Running(1, "1cpu", "zr1n2", Label("role", "w"), Label("replica", "0")))...),
			),
			Want: `bind q/gang-0 zr2n1
			       bind q/gang-1 zr2n2`,
		},
		"a further segment starts in the block of its subgroup, however many racks are outside": {
			Given: append(manyRacks(20),
				rack("z", "r1", 2, "1cpu"), rack("z", "r2", 3, "1cpu"),
				Group("q/gang", 1, append(replicas("w", 1, 2, 2, "1cpu"), SubGroups(inOne("block", eachInOne("rack", segments("w", 2, 1)))),
					Running(1, "1cpu", "zr1n1", Label("role", "w"), Label("replica", "0")), Running(1, "1cpu", "zr1n2", Label("role", "w"), Label("replica", "0")))...),
			),
			Want: `bind q/gang-0 zr2n1
			       bind q/gang-1 zr2n2`,
		},
		"a replacement starts in the rack of its segment": {
			Given: racks(
				rack("a", "r1", 2, "2cpu"), rack("a", "r2", 2, "2cpu"),
				Group("q/gang", 1, append(replicas("w", 1, 2, 1, "1cpu"), SubGroups(eachInOne("rack", segments("w", 2, 2))),
					Running(1, "1cpu", "ar1n1", Label("role", "w"), Label("replica", "0")), Running(1, "1cpu", "ar1n1", Label("role", "w"), Label("replica", "0")),
					Running(1, "1cpu", "ar2n2", Label("role", "w"), Label("replica", "1")))...),
			),
			Want: `bind q/gang-0 ar2n1`,
		},
		"surplus of a subgroup stays in its rack": {
			Given: racks(
				rack("a", "r1", 3, "1cpu"), rack("a", "r2", 4, "1cpu"),
				Group("q/gang", 1, SubGroups(inOne("rack", leaf("x", 2))), role("x", 4, "1cpu"),
					Running(1, "1cpu", "ar1n1", Label("role", "x")), Running(1, "1cpu", "ar1n2", Label("role", "x"))),
			),
			Want: `bind q/gang-0 ar1n3`,
		},
		"a subgroup without a level is anywhere": {
			Given: racks(
				rack("a", "r1", 1, "1cpu"), rack("a", "r2", 2, "1cpu"),
				Group("q/gang", 1, SubGroups(leaf("x", 1), inOne("rack", leaf("y", 2))), role("x", 1, "1cpu"), role("y", 2, "1cpu")),
			),
			Want: `bind q/gang-0 ar1n1
			       bind q/gang-1 ar2n1
			       bind q/gang-2 ar2n2`,
		},
	}.TestTranscripts(t)
}

// TestTopologyOfNestedSegments asserts T-5: 64 pods in two blocks of 32 pods, and racks of 16, with 8 on each host.
func TestTopologyOfNestedSegments(t *testing.T) {
	given, parts := hostTopology(), []Part{SubGroups(
		inOne("block", eachInOne("rack", segments("x", 16, 2))), inOne("block", eachInOne("rack", segments("y", 16, 2))))}
	for _, block := range []string{"a", "b"} {
		given = append(given, hosts(block, "r1", 8, 8), hosts(block, "r2", 8, 8))
	}
	parts = append(parts, append(replicas("x", 0, 2, 16, "1cpu"), replicas("y", 0, 2, 16, "1cpu")...)...)
	s := New(t, BuiltIn(t), append(given, Group("q/gang", 1, parts...)))
	on := map[string]int{}
	for line := range strings.Lines(s.Cycle()) {
		on[strings.Fields(line)[2]]++
	}
	for _, node := range []string{"ar1n1", "ar1n2", "ar2n1", "ar2n2", "br1n1", "br1n2", "br2n1", "br2n2"} {
		if on[node] != 8 {
			t.Errorf("%d pods on %s, want 8", on[node], node)
		}
	}
}

// TestTopologyOfSubGroupsEvicts asserts that plans with evictions keep to the levels of subgroups.
func TestTopologyOfSubGroupsEvicts(t *testing.T) {
	given := racks(
		rack("a", "r1", 2, "1cpu"), rack("a", "r2", 2, "1cpu"), rack("a", "r3", 1, "1cpu"),
		each("q/old", 2, "ar1n"), each("q/older", 1, "ar2n"),
		Group("q/gang", 1, Priority(10), SubGroups(inOne("rack", leaf("x", 2)), leaf("y", 1)), role("x", 2, "1cpu"), role("y", 1, "1cpu")))
	s := New(t, BuiltIn(t), given, WithConfig(AllActions))
	CompareTranscripts(t, `evict q/older1-0 for q/gang
		hold q/gang-0 ar2n2
		hold q/gang-2 ar3n1
		pipeline q/gang-1 ar2n1`, s.Cycle())
}

// TestTopologyOfSubGroupsFreesARack asserts that the cheapest victim is not evicted if its rack would not hold the subgroup.
func TestTopologyOfSubGroupsFreesARack(t *testing.T) {
	s := New(t, BuiltIn(t), racks(
		rack("a", "r1", 2, "1cpu"), rack("a", "r2", 2, "1cpu"),
		Group("q/low", 1, Running(1, "1cpu", "ar1n1")), Group("q/high", 1, Running(1, "1cpu", "ar1n2", Priority(20))), each("q/old", 2, "ar2n", Priority(5)),
		Group("q/gang", 1, Priority(10), SubGroups(inOne("rack", leaf("x", 2))), role("x", 2, "1cpu"))), WithConfig(AllActions))
	CompareTranscripts(t, `evict q/old1-0 for q/gang
		evict q/old2-0 for q/gang
		pipeline q/gang-0 ar2n2
		pipeline q/gang-1 ar2n1`, s.Cycle())
}

// TestTopologyOfSubGroupsKeepsOthers asserts that a surplus pod evicts nothing outside of the rack of its subgroup.
func TestTopologyOfSubGroupsKeepsOthers(t *testing.T) {
	s := New(t, BuiltIn(t), racks(
		rack("a", "r1", 1, "1cpu"), rack("a", "r2", 2, "1cpu"), Group("q/low", 1, Running(1, "1cpu", "ar2n1")),
		Group("q/gang", 1, Priority(10), SubGroups(inOne("rack", leaf("x", 1))), role("x", 1, "1cpu"), Running(1, "1cpu", "ar1n1", Label("role", "x")))),
		WithConfig(AllActions))
	CompareTranscripts(t, ``, s.Cycle())
	CompareTranscripts(t, `waits q/gang-0 NotEnoughResources: needs 1 more pod of 1 cpu; 0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were not in rack a/r1`, s.Waits())
}

// TestTopologyOfSubGroupsWaits asserts what users read.
func TestTopologyOfSubGroupsWaits(t *testing.T) {
	s := New(t, BuiltIn(t), racks(
		rack("a", "r1", 2, "1cpu"), rack("a", "r2", 2, "1cpu"),
		Group("q/gang", 1, SubGroups(leaf("x", 1), inOne("rack", leaf("y", 3))), role("x", 1, "1cpu"), role("y", 3, "1cpu")),
		Group("q/old", 1, Running(1, "1cpu", "ar1n1")), Group("q/other", 1, Running(1, "1cpu", "ar2n1")),
		Group("q/full", 1, SubGroups(inOne("rack", leaf("y", 2))), role("y", 2, "1cpu")),
		Group("q/wider", 1, Within("rack"), SubGroups(inOne("block", leaf("x", 1))), role("x", 1, "1cpu")),
		Group("q/wrong", 1, SubGroups(inOne("rak", leaf("x", 1))), role("x", 1, "1cpu"))))
	CompareTranscripts(t, ``, s.Cycle())
	CompareTranscripts(t, `
		waits q/full NotEnoughResources: subgroup y: needs 2 more pods of 1 cpu in one rack; rack a/r1 has resources for 1 of 2 pods; 2/4 nodes are available: 2 Insufficient cpu
		waits q/gang ExceedsClusterCapacity: subgroup y: needs 3 more pods of 1 cpu in one rack; rack a/r1 has resources for 1 of 3 pods; 2/4 nodes are available: 2 Insufficient cpu; would not fit any empty rack (at most 3 of 4 pods)
		waits q/wider TopologyNotFound: subgroup "x" requires level block of topology default, whose domains are not inside those of level rack of topology default, which is required around it
		waits q/wrong TopologyNotFound: subgroup "x": no level "rak" in topology default: block, rack; did you mean "rack"?`, s.Waits())
}
