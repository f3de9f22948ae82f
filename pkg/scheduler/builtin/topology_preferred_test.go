// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"testing"
	"time"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestTopologyPrefers asserts where gangs with a preferred level start. The numbers are those of the acceptance list and of
// the unit tests of Kueue and KAI Scheduler.
func TestTopologyPrefers(t *testing.T) {
	Cases{
		"TO2: as few racks as possible within the block, and the last of them the smallest that holds the rest": {
			Given: racks(
				rack("b", "r1", 3, "1cpu"), rack("b", "r2", 3, "1cpu"), rack("b", "r3", 2, "1cpu"), rack("b", "r4", 1, "1cpu"),
				Group("q/gang", 7, Within("block"), Prefer("rack", 0), Pending(7, "1cpu")),
			),
			Want: `bind q/gang-0 br1n1
			       bind q/gang-1 br1n2
			       bind q/gang-2 br1n3
			       bind q/gang-3 br2n1
			       bind q/gang-4 br2n2
			       bind q/gang-5 br2n3
			       bind q/gang-6 br4n1`,
		},
		"TO3: of blocks where as many racks are needed, the one where the fewest whole nodes are lost": {
			Given: racks(
				rack("a", "r1", 2, "1cpu"), rack("a", "r2", 1, "1cpu"), rack("a", "r3", 1, "1cpu"), rack("a", "r4", 1, "1cpu"),
				rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"), rack("b", "r3", 2, "1cpu"),
				Group("q/gang", 3, Within("block"), Prefer("rack", 0), Pending(3, "1cpu")),
			),
			Want: `bind q/gang-0 ar1n1
			       bind q/gang-1 ar1n2
			       bind q/gang-2 ar2n1`,
		},
		"the block with the fewest racks comes before the one with the least left over": {
			Given: racks(
				rack("a", "r1", 1, "1cpu"), rack("a", "r2", 1, "1cpu"), rack("a", "r3", 1, "1cpu"),
				rack("b", "r1", 3, "1cpu"), rack("b", "r2", 3, "1cpu"),
				Group("q/gang", 3, Within("block"), Prefer("rack", 0), Pending(3, "1cpu")),
			),
			Want: `bind q/gang-0 br1n1
			       bind q/gang-1 br1n2
			       bind q/gang-2 br1n3`,
		},
		"without a required level, one block comes before fewer racks of two": {
			Given: racks(
				rack("a", "r1", 3, "1cpu"), rack("b", "r1", 3, "1cpu"),
				rack("c", "r1", 2, "1cpu"), rack("c", "r2", 2, "1cpu"), rack("c", "r3", 2, "1cpu"),
				Group("q/gang", 6, Prefer("rack", 0), Pending(6, "1cpu")),
			),
			Want: `bind q/gang-0 cr1n1
			       bind q/gang-1 cr1n2
			       bind q/gang-2 cr2n1
			       bind q/gang-3 cr2n2
			       bind q/gang-4 cr3n1
			       bind q/gang-5 cr3n2`,
		},
		"a gang that no block holds starts in the fewest racks of several": {
			Given: racks(
				rack("a", "r1", 3, "1cpu"), rack("a", "r2", 1, "1cpu"), rack("b", "r1", 1, "1cpu"), rack("b", "r2", 4, "1cpu"),
				Group("q/gang", 7, Prefer("rack", 0), Pending(7, "1cpu")),
			),
			Want: `bind q/gang-0 br2n1
			       bind q/gang-1 br2n2
			       bind q/gang-2 br2n3
			       bind q/gang-3 br2n4
			       bind q/gang-4 ar1n1
			       bind q/gang-5 ar1n2
			       bind q/gang-6 ar1n3`,
		},
		"nodes that are in no rack come last": {
			Given: racks(
				Nodes(3, "a", "1cpu"), rack("b", "r1", 1, "1cpu"), rack("b", "r2", 1, "1cpu"),
				Group("q/gang", 3, Prefer("rack", 0), Pending(3, "1cpu")),
			),
			Want: `bind q/gang-0 br1n1
			       bind q/gang-1 br2n1
			       bind q/gang-2 a1`,
		},
		"the same level is required and preferred": { // KAI PR 834
			Given: racks(
				rack("b", "r1", 4, "1cpu"), rack("b", "r2", 2, "1cpu"),
				Group("q/gang", 2, Within("rack"), Prefer("rack", 0), Pending(2, "1cpu")),
			),
			Want: `bind q/gang-0 br2n1
			       bind q/gang-1 br2n2`,
		},
		"the kind of pods that requests the most determines the racks": {
			Given: racks(
				rack("b", "r1", 1, "4cpu"), rack("b", "r2", 3, "4cpu"), rack("b", "r3", 2, "4cpu"),
				Group("q/gang", 4, Prefer("rack", 0), Pending(1, "1cpu"), Pending(3, "3cpu")),
			),
			Want: `bind q/gang-0 br2n1
			       bind q/gang-1 br2n2
			       bind q/gang-2 br2n3
			       bind q/gang-3 br2n1`,
		},
		"surplus pods and replacements start in the racks of the gang first": {
			Given: racks(
				rack("b", "r1", 4, "1cpu"), rack("b", "r2", 4, "1cpu"), rack("b", "r3", 1, "1cpu"),
				Group("q/gang", 1, append(on("br2n1"), Prefer("rack", 0), Pending(4, "1cpu"))...),
			),
			Want: `bind q/gang-1 br2n2
			       bind q/gang-2 br2n3
			       bind q/gang-3 br2n4
			       bind q/gang-4 br3n1`,
		},
	}.TestTranscripts(t)
}

// TestTopologyPreferredWait asserts TO14: a gang waits for one rack for a time, and then starts in several.
func TestTopologyPreferredWait(t *testing.T) {
	given := racks(
		rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"),
		Group("q/old", 1, Running(1, "1cpu", "br1n1")), Group("q/low", 1, Running(1, "1cpu", "br2n1")),
		Group("q/gang", 2, Priority(10), Prefer("rack", 2*time.Minute), Pending(2, "1cpu")))
	const waits = `waits q/gang NotEnoughResources: would start in 2 domains of level rack, and waits for one of them until 2026-01-01T00:02:13Z (spec.topologyConstraint.preferredWait)`

	t.Run("a rack becomes free in time", func(t *testing.T) {
		s := New(t, BuiltIn(t), given, WithConfig(AllActions))
		CompareTranscripts(t, ``, s.Cycle())
		CompareTranscripts(t, waits, s.Waits())
		s.Delete("q/old-0")
		CompareTranscripts(t, `bind q/gang-0 br1n1
			bind q/gang-1 br1n2`, s.Cycle())
	})
	t.Run("none becomes free in time", func(t *testing.T) {
		s := New(t, BuiltIn(t), given, WithConfig(AllActions))
		CompareTranscripts(t, ``, s.Cycle())
		s.WaitUntilDue()
		CompareTranscripts(t, `bind q/gang-0 br1n2
			bind q/gang-1 br2n2`, s.Cycle())
	})
	t.Run("the gang evicts only afterwards", func(t *testing.T) {
		s := New(t, BuiltIn(t), append(given, Group("q/more", 2, Running(1, "1cpu", "br1n2"), Running(1, "1cpu", "br2n2"))), WithConfig(AllActions))
		CompareTranscripts(t, ``, s.Cycle())
		s.WaitUntilDue()
		CompareTranscripts(t, `evict q/low-0 for q/gang
			evict q/old-0 for q/gang
			pipeline q/gang-0 br2n1
			pipeline q/gang-1 br1n1`, s.Cycle())
	})
}
