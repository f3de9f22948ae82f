// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// until declares running pods of 1 cpu, by their nodes, with the minutes until their limits; 0 is none.
func until(c *Scenario, minutes map[string]time.Duration) {
	for _, node := range slices.Sorted(maps.Keys(minutes)) {
		parts := []Part{Pending(1, "1cpu", RequireNode(node))}
		if m := minutes[node]; m > 0 {
			parts = append(parts, Limit(m*time.Minute))
		}
		c.Add(Group("q/old"+node, 1, parts...))
	}
	c.Cycle()
	c.ConfirmBinds()
	c.Start()
}

// plannedAt is the part of a message that says when and where a gang is planned to start.
func plannedAt(c *Scenario, name string) string {
	_, start, _ := strings.Cut(waitsOf(c, name), "planned to start at 2026-01-01T")
	start, _, _ = strings.Cut(start, ", by the run times")
	return start
}

// TestStartsInOneDomain asserts when and where gangs with a topology constraint are planned to start, of which no pod fits now.
func TestStartsInOneDomain(t *testing.T) {
	t.Parallel()
	two := func(parts ...Part) Row { return Group("q/gang", 2, append(parts, Pending(2, "1cpu"))...) }
	for name, tc := range map[string]struct {
		given   []Row
		running map[string]time.Duration
		gang    Row
		want    string
	}{
		"without a constraint, it starts when any two nodes are free": {
			racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu")),
			map[string]time.Duration{"br1n1": 10, "br1n2": 60, "br2n1": 20, "br2n2": 30},
			two(), "00:21:00Z on 2 nodes",
		},
		"it starts when two nodes of one rack are free": {
			racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu")),
			map[string]time.Duration{"br1n1": 10, "br1n2": 60, "br2n1": 20, "br2n2": 30},
			two(Within("rack")), "00:31:00Z on 2 nodes of rack b/r2",
		},
		"a wider level has more nodes": {
			racks(rack("b1", "r1", 1, "1cpu"), rack("b1", "r2", 1, "1cpu"), rack("b2", "r1", 2, "1cpu")),
			map[string]time.Duration{"b1r1n1": 10, "b1r2n1": 20, "b2r1n1": 10, "b2r1n2": 30},
			two(Within("block")), "00:21:00Z on 2 nodes of block b1",
		},
		"a rack where a run time is not known is no obstacle": {
			racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu")),
			map[string]time.Duration{"br1n1": 0, "br1n2": 10, "br2n1": 20, "br2n2": 30},
			two(Within("rack")), "00:31:00Z on 2 nodes of rack b/r2",
		},
		"of racks at the same time, that where the least is left over": {
			racks(rack("b", "r1", 3, "1cpu"), rack("b", "r2", 2, "1cpu")),
			map[string]time.Duration{"br1n1": 30, "br1n2": 30, "br1n3": 30, "br2n1": 30, "br2n2": 30},
			two(Within("rack")), "00:31:00Z on 2 nodes of rack b/r2",
		},
		"of equal racks, the first": {
			racks(rack("b", "r2", 2, "1cpu"), rack("b", "r1", 2, "1cpu")),
			map[string]time.Duration{"br1n1": 30, "br1n2": 30, "br2n1": 30, "br2n2": 30},
			two(Within("rack")), "00:31:00Z on 2 nodes of rack b/r1",
		},
		"nodes in no rack do not count": {
			racks(rack("b", "r1", 2, "1cpu"), Node("bare", "1cpu", Label("block", "b"))),
			map[string]time.Duration{"br1n1": 10, "br1n2": 60, "bare": 10},
			two(Within("rack")), "01:01:00Z on 2 nodes of rack b/r1",
		},
		"pods of different sizes": {
			racks(rack("b", "r1", 2, "1cpu"), Node("large", "4cpu", Label("block", "b"), Label("rack", "r1")), rack("b", "r2", 2, "4cpu")),
			map[string]time.Duration{"br1n1": 10, "br1n2": 10, "large": 40, "br2n1": 20, "br2n2": 50},
			Group("q/gang", 2, Within("rack"), Pending(1, "4cpu"), Pending(1, "4cpu")), "00:51:00Z on 2 nodes of rack b/r2",
		},
		"a preferred level plays no role": {
			racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu")),
			map[string]time.Duration{"br1n1": 10, "br1n2": 60, "br2n1": 20, "br2n2": 30},
			two(Prefer("rack", 0)), "00:21:00Z on 2 nodes",
		},
		"a preferred level inside a required one neither": {
			racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu")),
			map[string]time.Duration{"br1n1": 10, "br1n2": 60, "br2n1": 20, "br2n2": 30},
			two(Within("block"), Prefer("rack", 0)), "00:21:00Z on 2 nodes of block b",
		},
		"subgroups follow the group": {
			racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu")),
			map[string]time.Duration{"br1n1": 10, "br1n2": 60, "br2n1": 20, "br2n2": 30},
			Group("q/gang", 1, Within("rack"), SubGroups(leaf("a", 1), leaf("b", 1)),
				role("a", 1, "1cpu"), role("b", 1, "1cpu")),
			"00:31:00Z on 2 nodes of rack b/r2",
		},
		"a subgroup starts in one rack, and what follows no constraint anywhere": {
			racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu")),
			map[string]time.Duration{"br1n1": 10, "br1n2": 60, "br2n1": 20, "br2n2": 30},
			Group("q/gang", 1, SubGroups(inOne("rack", leaf("a", 2)), leaf("b", 1)), role("a", 2, "1cpu"), role("b", 1, "1cpu")),
			"00:31:00Z on 3 nodes",
		},
		"two subgroups start in one rack each": {
			racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"), rack("b", "r3", 2, "1cpu")),
			map[string]time.Duration{"br1n1": 10, "br1n2": 60, "br2n1": 20, "br2n2": 30, "br3n1": 40, "br3n2": 40},
			Group("q/gang", 1, SubGroups(inOne("rack", leaf("a", 2)), inOne("rack", leaf("b", 2))), role("a", 2, "1cpu"), role("b", 2, "1cpu")),
			"00:41:00Z on 4 nodes",
		},
		"segments start in one rack each, all of them in one block": {
			racks(rack("b1", "r1", 2, "1cpu"), rack("b1", "r2", 2, "1cpu"), rack("b2", "r1", 2, "1cpu"), rack("b2", "r2", 2, "1cpu")),
			map[string]time.Duration{
				"b1r1n1": 10, "b1r1n2": 10, "b1r2n1": 10, "b1r2n2": 60,
				"b2r1n1": 20, "b2r1n2": 30, "b2r2n1": 40, "b2r2n2": 40,
			},
			Group("q/gang", 1, append(replicas("a", 0, 4, 2, "1cpu"), Within("block"), SubGroups(eachInOne("rack", segments("a", 2, 2))))...),
			"00:41:00Z on 4 nodes of block b2",
		},
		"segments in one rack each, in the block of their subgroup": {
			racks(rack("b1", "r1", 2, "1cpu"), rack("b1", "r2", 2, "1cpu"), rack("b2", "r1", 2, "1cpu"), rack("b2", "r2", 2, "1cpu")),
			map[string]time.Duration{
				"b1r1n1": 10, "b1r1n2": 10, "b1r2n1": 10, "b1r2n2": 60,
				"b2r1n1": 20, "b2r1n2": 30, "b2r2n1": 40, "b2r2n2": 40,
			},
			Group("q/gang", 1, append(replicas("a", 0, 4, 2, "1cpu"), SubGroups(inOne("block", eachInOne("rack", segments("a", 2, 2)))))...),
			"00:41:00Z on 4 nodes",
		},
		"a rack is too small for a subgroup": {
			racks(rack("b", "r1", 1, "1cpu"), rack("b", "r2", 1, "1cpu")),
			map[string]time.Duration{"br1n1": 10, "br2n1": 20},
			Group("q/gang", 1, SubGroups(inOne("rack", leaf("a", 2))), role("a", 2, "1cpu")), "",
		},
		"no rack is large enough": {
			racks(rack("b", "r1", 1, "1cpu"), rack("b", "r2", 1, "1cpu")),
			map[string]time.Duration{"br1n1": 10, "br2n1": 20},
			two(Within("rack")), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := New(t, BuiltIn(t), tc.given, WithConfig(planning))
			until(c, tc.running)
			c.Add(tc.gang)
			for range 2 {
				c.Cycle()
				if got := plannedAt(c, "q/gang"); got != tc.want {
					t.Errorf("planned at %q, want %q: %s", got, tc.want, waitsOf(c, "q/gang"))
				}
			}
		})
	}
}

// TestStartsInOneDomainMove: a gang of two is planned to start after an hour in rack b/r1, and something changes. The rack is
// required by the gang, or by a subgroup that has both pods.
func TestStartsInOneDomainMove(t *testing.T) {
	t.Parallel()
	const late = "01:01:00Z on 2 nodes of rack b/r1"
	moved := func(n *v1.Node) { n.Labels["rack"] = "r1" }
	for name, tc := range map[string]struct {
		change func(*Scenario)
		want   string
	}{
		"nothing":                         {func(*Scenario) {}, late},
		"a pod ends in the rack":          {func(c *Scenario) { c.Delete("q/oldbr1n2-0") }, "00:11:00Z on 2 nodes of rack b/r1"},
		"a pod ends in another rack":      {func(c *Scenario) { c.Delete("q/oldbr2n2-0") }, "00:21:00Z on 2 nodes of rack b/r2"},
		"a pod ends in no rack":           {func(c *Scenario) { c.Delete("q/oldbare-0") }, late},
		"a node moves into the rack":      {func(c *Scenario) { c.EditNode("br2n1", moved) }, "00:21:00Z on 2 nodes of rack b/r1"},
		"a node of the rack is lost":      {func(c *Scenario) { c.DeleteNode("br1n2") }, "01:31:00Z on 2 nodes of rack b/r2"},
		"another rack comes":              {func(c *Scenario) { c.Add(rack("b", "r3", 2, "1cpu")) }, ""},
		"a node of another rack is lost":  {func(c *Scenario) { c.DeleteNode("br2n1") }, late},
		"a node of the rack leaves it":    {func(c *Scenario) { c.EditNode("br1n1", func(n *v1.Node) { n.Labels["rack"] = "r4" }) }, "01:31:00Z on 2 nodes of rack b/r2"},
		"a node comes that is in no rack": {func(c *Scenario) { c.Add(Node("new", "1cpu")) }, late},
		"racks are of no block any more":  {func(c *Scenario) { c.Add(Topology("default", "rack")) }, "01:01:00Z on 2 nodes of rack r1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, subgroup := range []bool{false, true} {
				gang := Group("q/gang", 2, Within("rack"), Pending(2, "1cpu"), Limit(10*time.Minute))
				before, want := late, tc.want
				if subgroup { // the message names the domain of a whole gang only
					gang = Group("q/gang", 1, SubGroups(inOne("rack", leaf("a", 2))), role("a", 2, "1cpu"), Limit(10*time.Minute))
					before, _, _ = strings.Cut(before, " of ")
					want, _, _ = strings.Cut(want, " of ")
				}
				c := New(t, BuiltIn(t), racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu"), Node("bare", "1cpu")), WithConfig(planning))
				until(c, map[string]time.Duration{"br1n1": 10, "br1n2": 60, "br2n1": 20, "br2n2": 90, "bare": 5})
				c.Add(gang)
				c.Cycle()
				if got := plannedAt(c, "q/gang"); got != before {
					t.Fatalf("before: %s", waitsOf(c, "q/gang"))
				}
				tc.change(c)
				for range 2 {
					c.Cycle()
					if got := plannedAt(c, "q/gang"); got != want {
						t.Errorf("planned at %q, want %q: %s", got, want, waitsOf(c, "q/gang"))
					}
				}
			}
		})
	}
}

// TestReplacementsArePlannedInTheirDomain: members that run pin the domain, although others are free before.
func TestReplacementsArePlannedInTheirDomain(t *testing.T) {
	t.Parallel()
	c := New(t, BuiltIn(t), racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu")), WithConfig(planning))
	until(c, map[string]time.Duration{"br2n1": 10, "br2n2": 10})
	c.Add(Group("q/gang", 2, Within("rack"), Pending(2, "1cpu")))
	CompareTranscripts(t, "bind q/gang-0 br1n1\nbind q/gang-1 br1n2", c.Cycle())
	c.ConfirmBinds()
	c.Start()
	c.Delete("q/gang-1")
	c.Add(Group("q/other", 1, Pending(1, "1cpu", RequireNode("br1n2")), Limit(time.Hour)))
	c.Cycle()
	c.ConfirmBinds()
	c.Start()
	c.CreateAgain("q/gang-1")
	c.Cycle()
	if got := plannedAt(c, "q/gang"); got != "01:01:00Z on 1 node of rack b/r1" {
		t.Errorf("planned at %q: %s", got, c.Waits())
	}
}

// TestBackfillAroundADomain: a gang of two is planned to start in rack b/r1 in an hour, of which one node is idle, as is one of
// rack b/r2. Other jobs use them as far as they do not delay it.
func TestBackfillAroundADomain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job  []Part
		want string
	}{
		"it ends before":                 {[]Part{Pending(1, "1cpu", RequireNode("br1n1")), Limit(30 * time.Minute)}, "bind q/job-0 br1n1"},
		"it ends later":                  {[]Part{Pending(1, "1cpu", RequireNode("br1n1")), Limit(2 * time.Hour)}, ""},
		"it has no limit":                {[]Part{Pending(1, "1cpu", RequireNode("br1n1"))}, ""},
		"it has no limit, anywhere":      {[]Part{Pending(1, "1cpu")}, "bind q/job-0 br2n1"},
		"it ends later, in another rack": {[]Part{Within("rack"), Pending(1, "1cpu"), Limit(2 * time.Hour)}, "bind q/job-0 br2n1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := New(t, BuiltIn(t), racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu")), WithConfig(planning))
			until(c, map[string]time.Duration{"br1n2": 60, "br2n2": 0})
			c.Add(Group("q/gang", 2, Within("rack"), Pending(2, "1cpu")))
			c.Cycle()
			c.Add(Group("q/job", 1, tc.job...))
			CompareTranscripts(t, tc.want, c.Cycle())
			if got := plannedAt(c, "q/gang"); got != "01:01:00Z on 2 nodes of rack b/r1" {
				t.Errorf("planned at %q: %s", got, c.Waits())
			}
		})
	}
}

// TestTheDueGangStartsInItsDomain: jobs of one rack end by their limits, others run on. One that does not end is evicted.
func TestTheDueGangStartsInItsDomain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ ended, want string }{
		"all end": {"br1n1 br1n2", "bind q/gang-0 br1n1\nbind q/gang-1 br1n2"},
		"one exceeds its limit, and others do not": {"br1n1",
			"evict q/oldbr1n2-0 for q/gang\nhold q/gang-0 br1n1\npipeline q/gang-1 br1n2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := New(t, BuiltIn(t), racks(rack("b", "r1", 2, "1cpu"), rack("b", "r2", 2, "1cpu")), WithConfig(planning))
			until(c, map[string]time.Duration{"br1n1": 30, "br1n2": 60, "br2n1": 90, "br2n2": 10})
			c.Add(Group("q/gang", 2, Within("rack"), Pending(2, "1cpu")))
			c.Cycle()
			c.Delete("q/oldbr2n2-0")
			c.Wait(61*time.Minute - c.Since())
			for _, node := range strings.Fields(tc.ended) {
				c.Delete(fmt.Sprintf("q/old%s-0", node))
			}
			CompareTranscripts(t, tc.want, c.Cycle())
		})
	}
}
