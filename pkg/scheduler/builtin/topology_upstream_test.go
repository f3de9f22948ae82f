// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"testing"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestTopologyVectors has the vectors of known algorithms: what is free in racks, a gang, and how many of its pods are where.
// T-1 and T-3 are by best fit, as here. T-2 and T-4 are by least free capacity, which fills the smallest domains first and so
// uses more of them.
func TestTopologyVectors(t *testing.T) {
	testPlacements(t, map[string]placement{
		"T-1: the largest racks, and the smallest one that holds the rest": {
			nodes: "b/r1 3, b/r2 3, b/r3 2, b/r4 1", given: Given(gangOf(7, "1cpu", Prefer("rack", 0))), want: "br1 3, br2 3, br4 1",
		},
		"T-2: by least free capacity 1, 2, 3 and 1, in four racks; here three suffice": {
			nodes: "b/r1 3, b/r2 3, b/r3 2, b/r4 1", given: Given(gangOf(7, "1cpu")), want: "br1 3, br2 3, br3 1",
		},
		"T-3: the host for the most segments, and of the others those where nothing is left over": {
			nodes: "b/r 6 5 4 3 2", given: Given(inSegments(6, 2, "host")), want: "brn1 6, brn3 4, brn5 2",
		},
		"T-4: by least free capacity 2, 4, 2 and 2, on four hosts; here two suffice": {
			nodes: "b/r 6 5 4 3 2", given: Given(inSegments(5, 2, "host")), want: "brn1 6, brn3 4",
		},
		"T-5: 64 pods, 32 in each block, 16 in each rack, 8 on each host": {
			nodes: "a/r1 8 8, a/r2 8 8, b/r1 8 8, b/r2 8 8", want: "ar1n1 8, ar1n2 8, ar2n1 8, ar2n2 8, br1n1 8, br1n2 8, br2n1 8, br2n2 8",
			given: Given(Group("q/gang", 1, append(append(replicas("x", 0, 2, 16, "1cpu"), replicas("y", 0, 2, 16, "1cpu")...),
				SubGroups(inOne("block", eachInOne("rack", segments("x", 16, 2))), inOne("block", eachInOne("rack", segments("y", 16, 2)))))...)),
		},
		"T-6: the block where less is free, and its largest rack": {
			nodes: "a/r1 1 1, a/r2 1, a/r3 1, a/r4 1, b/r1 1 1, b/r2 1 1, b/r3 1 1", given: Given(gangOf(3, "1cpu", Within("block"), Prefer("rack", 0))), want: "ar1 2, ar2 1",
		},
	})
}

// TestTopologyOfKAI has the scenarios of KAI Scheduler's tests of topologies.
func TestTopologyOfKAI(t *testing.T) {
	testPlacements(t, map[string]placement{
		"a zone is required and racks are preferred": {
			nodes: "z1/r1 2, z1/r2 2, z2/r3 2", given: Given(gangOf(3, "1gpu", Within("block"), Prefer("rack", 0))), want: "z1r1 2, z1r2 1",
		},
		"a rack that is in use is filled": {
			nodes: "z/r1 3, z/r2 3", want: "zr1 2",
			given: Given(Group("q/old", 1, Within("rack"), Running(1, "1gpu", "zr1n1")), gangOf(2, "1gpu", Within("rack"))),
		},
		"no rack holds the gang, although the cluster does": {
			nodes: "z/r1 1 1, z/r2 2", given: Given(gangOf(2, "2gpu", Within("rack"))), waits: "rack z/r2 has resources for 1 of 2 pods",
		},
		"one rack is full": {
			nodes: "z/r1 1 1, z/r2 2", want: "zr2 2",
			given: Given(Queue("p", 1), Group("p/old", 2, Within("rack"), Running(1, "1gpu", "zr1n1"), Running(1, "1gpu", "zr1n2")), gangOf(2, "1gpu", Within("rack"))),
		},
		"no rack holds the gang that prefers one": {
			nodes: "z/r1 2, z/r2 2", want: "zr1 1, zr2 1",
			given: Given(Group("q/old", 1, Running(1, "1gpu", "zr1n1")), Group("q/old2", 1, Running(1, "1gpu", "zr2n1")), gangOf(2, "1gpu", Prefer("rack", 0))),
		},
		"a gang skipped for its rack says nothing about the next one": {
			nodes: "z/r1 2, z/r2 2", want: "zr1 2",
			given: Given(Group("q/first", 3, Within("rack"), Pending(3, "1gpu")), gangOf(2, "1gpu", Within("rack"))),
		},
	})
}

// TestPreferredRacksAreNear is KAI Scheduler's scenario of three levels: racks are preferred, and two racks of one zone hold
// the gang, as do racks of two zones.
func TestPreferredRacksAreNear(t *testing.T) {
	rack := func(region, zone, name string) Row {
		return Nodes(1, region+zone+name+"n", "2cpu", Label("region", region), Label("zone", zone), Label("rack", name))
	}
	given := Given(Topology("default", "region", "zone", "rack"), Queue("q", 1),
		rack("w", "a", "r1"), rack("w", "b", "r2"), rack("w", "b", "r3"), rack("e", "a", "r4"))
	for name, tc := range map[string]struct {
		parts []Part
		want  string
	}{
		"anywhere":        {parts: []Part{Prefer("rack", 0)}, want: "wbr2 2, wbr3 2"},
		"within a region": {parts: []Part{Within("region"), Prefer("rack", 0)}, want: "war1 2, wbr2 2"}, // a known limitation
	} {
		t.Run(name, func(t *testing.T) {
			transcript := Run(t, BuiltIn(t), append(given, gangOf(4, "1cpu", tc.parts...)))
			if got := placedOn(transcript, ""); got != tc.want {
				t.Errorf("got %s, want %s\n%s", got, tc.want, transcript)
			}
		})
	}
}

// TestTopologyOfVolcano has the scenarios of Volcano's tests of hypernodes and of its issues about them.
func TestTopologyOfVolcano(t *testing.T) {
	testPlacements(t, map[string]placement{
		"hard, tier 1: the hypernode that is in use": { // #4331
			nodes: "s1/s3 1 1, s1/s4 1 1 1, s2/s5 1 1", want: "s1s4 2",
			given: Given(Group("q/old", 1, Running(1, "1cpu", "s1s4n1")), gangOf(2, "1cpu", Within("rack"))),
		},
		"hard, tier 2: several hypernodes of tier 1": {
			nodes: "s1/s3 1 1, s1/s4 1 1, s2/s5 1 1", given: Given(gangOf(3, "1cpu", Within("block"), Prefer("rack", 0))), want: "s1s3 2, s1s4 1",
		},
		"hard: a pod that comes back starts in the hypernode of the others": {
			nodes: "s1/s3 1 1 1, s1/s4 1 1 1", want: "s1s4 1",
			given: Given(Group("q/gang", 3, Within("rack"), Running(1, "1cpu", "s1s4n1"), Running(1, "1cpu", "s1s4n2"), Pending(1, "1cpu"))),
		},
		"hard: a pod that comes back waits if the hypernode is full": {
			nodes: "s1/s3 1 1, s1/s4 1 1", waits: "rack s1/s4 has resources for 0 of 1 pods",
			given: Given(Group("q/gang", 3, Within("rack"), Running(1, "1cpu", "s1s4n1"), Running(1, "1cpu", "s1s4n2"), Pending(1, "1cpu"))),
		},
		"soft: the gang does not drift into a third hypernode": { // #4343
			nodes: "s1/s3 1 1, s1/s4 1 1, s1/s5 1 1", given: Given(gangOf(4, "1cpu", Prefer("rack", 0))), want: "s1s3 2, s1s4 2",
		},
		"soft: a pod that comes back starts near the others": {
			nodes: "s1/s3 1 1, s1/s4 1 1, s2/s5 1 1", want: "s2s5 1",
			given: Given(Group("q/gang", 2, Prefer("rack", 0), Running(1, "1cpu", "s2s5n1"), Pending(1, "1cpu"))),
		},
		"soft: a pod that comes back starts in the same hypernode of tier 2": {
			nodes: "s1/s3 1 1, s2/s4 1, s2/s5 1", want: "s2s4 1",
			given: Given(Group("q/gang", 2, Prefer("rack", 0), Running(1, "1cpu", "s2s5n1"), Pending(1, "1cpu"))),
		},
		"a tier that does not exist": { // #5189
			nodes: "s1/s3 1", given: Given(gangOf(1, "1cpu", Within("tier"))), waits: `TopologyNotFound: no level "tier" in topology default`,
		},
	})
}

// TestTopologyIsReclaimed has Volcano #4374: a queue that reclaims for a gang with a required level frees one domain only.
func TestTopologyIsReclaimed(t *testing.T) {
	s := New(t, BuiltIn(t), racks(Queue("p", 1),
		rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"),
		Group("p/old1", 1, Running(1, "1cpu", "br1n1")), Group("p/old2", 1, Running(1, "1cpu", "br2n1")),
		Group("p/old3", 1, Running(1, "1cpu", "br1n2")), Group("p/old4", 1, Running(1, "1cpu", "br2n2")),
		gangOf(2, "1cpu", Within("rack"))), WithConfig(AllActions))
	CompareTranscripts(t, `evict p/old2-0 for q/gang
		evict p/old4-0 for q/gang
		pipeline q/gang-0 br2n2
		pipeline q/gang-1 br2n1`, s.Cycle())
	s.FinishEvictions()
	CompareTranscripts(t, `bind q/gang-0 br2n1
		bind q/gang-1 br2n2`, s.Cycle())
}

// TestSubGroupsTakeTurns has the example of KEP-6012 and what it leaves open: an early subgroup may not take the only rack of a
// later one.
func TestSubGroupsTakeTurns(t *testing.T) {
	pair := func(first, second int32) Row {
		return Group("q/gang", 1, Within("block"), SubGroups(inOne("rack", leaf("x", first)), inOne("rack", leaf("y", second))),
			role("x", int(first), "1cpu"), role("y", int(second), "1cpu"))
	}
	testPlacements(t, map[string]placement{
		"TO6: only one block has a rack for each subgroup":         {nodes: "b1/r1 3, b1/r2 5, b2/r1 5, b2/r2 5", given: Given(pair(5, 5)), want: "b2r1 5, b2r2 5"},
		"the first subgroup leaves the large rack to the second":   {nodes: "b1/r1 5, b1/r2 3", given: Given(pair(3, 5)), want: "b1r1 5, b1r2 3"},
		"the second subgroup leaves the large rack to the first":   {nodes: "b1/r1 5, b1/r2 3", given: Given(pair(5, 3)), want: "b1r1 5, b1r2 3"},
		"both subgroups share a rack if one holds both":            {nodes: "b1/r1 8, b1/r2 4", given: Given(pair(3, 5)), want: "b1r1 8"},
		"no block holds both, although each block holds one":       {nodes: "b1/r1 3, b1/r2 5, b2/r1 5, b2/r2 3", given: Given(pair(5, 5)), waits: "needs"},
		"subgroups without a level share the rack of the PodGroup": {nodes: "b1/r1 3, b1/r2 5", given: Given(Group("q/gang", 1, Within("rack"), SubGroups(leaf("x", 2), leaf("y", 3)), role("x", 2, "1cpu"), role("y", 3, "1cpu"))), want: "b1r2 5"},
	})
}
