// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestTopologyPacking is case TO17 of the acceptance list: 200 small pods without constraint arrive in ten sessions in 40
// racks, and then a gang that needs a whole rack.
func TestTopologyPacking(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments string
		starts    bool
	}{
		"by default small pods run in every rack": {arguments: ``, starts: false},
		"with topologypacking racks stay whole":   {arguments: `topologypacking.weight: "1", topologypacking.topology: default`, starts: true},
		"the only topology need not be named":     {arguments: `topologypacking.weight: "1"`, starts: true},
		"an unknown topology changes nothing":     {arguments: `topologypacking.weight: "1", topologypacking.topology: other`, starts: false},
		"more weight keeps racks whole too":       {arguments: `topologypacking.weight: "5"`, starts: true},
	} {
		t.Run(name, func(t *testing.T) {
			given := racks()
			for i := range 40 {
				given = append(given, rack("b", fmt.Sprintf("r%02d", i), 4, "8cpu 64Gi"))
			}
			c := New(t, BuiltIn(t), given, policyOf(tc.arguments))
			for i := range 10 {
				c.Add(Plain(fmt.Sprintf("small%d", i), OfQueue("q"), Pending(20, "1cpu 8Gi")))
				c.Cycle()
				c.ConfirmBinds()
			}
			c.Add(Group("q/gang", 4, Within("rack"), Pending(4, "8cpu 64Gi")))
			transcript := c.Cycle()
			if starts := strings.Contains(transcript, "bind q/gang-3"); starts != tc.starts {
				t.Errorf("the gang starts: %v, want %v\n%s", starts, tc.starts, transcript)
			}
		})
	}
}

// TestTopologyPackingScores asserts which of two racks a pod takes. Its score is that of the narrowest domain with several
// nodes, at the beginning of the session.
func TestTopologyPackingScores(t *testing.T) {
	packing := policyOf(`topologypacking.weight: "10"`)
	for name, tc := range map[string]struct {
		given []Row
		want  string
	}{
		"a node of a rack in use comes before one of a whole rack": {
			given: racks(rack("b", "r1", 2, "2cpu"), rack("b", "r2", 2, "2cpu"), Group("q/old", 1, Running(1, "2cpu", "br2n1")),
				Group("q/new", 1, Pending(1, "1cpu"))),
			want: "bind q/new-0 br2n2",
		},
		"the rack where more is in use comes first": {
			given: racks(rack("b", "r1", 3, "2cpu"), rack("b", "r2", 3, "2cpu"), Group("q/old", 3, on("br1n1", "br2n1", "br2n2")...),
				Group("q/new", 1, Pending(1, "2cpu"))),
			want: "bind q/new-0 br2n3",
		},
		"racks of one node count as their block": {
			given: racks(rack("b1", "r1", 1, "2cpu"), rack("b1", "r2", 1, "2cpu"), rack("b2", "r1", 1, "2cpu"), rack("b2", "r2", 1, "2cpu"),
				Group("q/old", 1, Running(1, "2cpu", "b2r1n1")), Group("q/new", 1, Pending(1, "1cpu"))),
			want: "bind q/new-0 b2r2n1",
		},
		"placements of a session do not change its scores": {
			given: racks(rack("b", "r1", 2, "2cpu"), rack("b", "r2", 2, "2cpu"), Node("large", "8cpu", Label("block", "b"), Label("rack", "r2")),
				Group("q/large", 1, Pending(1, "8cpu")), Group("q/new", 1, Pending(1, "2cpu"))),
			want: "bind q/large-0 large\nbind q/new-0 br1n1",
		},
		"gangs that require a level have no such score": {
			given: racks(rack("b", "r1", 2, "2cpu"), rack("b", "r2", 2, "2cpu"), Group("q/old", 1, Running(1, "2cpu", "br2n1")),
				Group("q/new", 1, Within("block"), Pending(1, "2cpu")), Group("q/other", 1, Pending(1, "2cpu"))),
			want: "bind q/new-0 br1n1\nbind q/other-0 br2n2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), tc.given, packing)
			if got := strings.TrimSpace(c.Cycle()); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestUnknownTopologyIsLogged: sessions begin before topologies are read, so one that is missing is logged after a minute, and
// once.
func TestUnknownTopologyIsLogged(t *testing.T) {
	log := recorder{}
	c := New(t, BuiltIn(t), racks(Node("n1", "1cpu")), policyOf(`topologypacking.weight: "1", topologypacking.topology: defautt`), WithLog(log.logger()))
	for range 3 {
		c.Cycle()
		if len(log.lines) > 0 && c.Since() < time.Minute {
			t.Errorf("logged after %v: %v", c.Since(), log.lines)
		}
		c.Wait(time.Minute)
	}
	want := `"Topology not found, topologypacking has no effect" topology="defautt" reason="no topology \"defautt\": default; did you mean \"default\"?"` + "\n"
	if got := strings.Join(log.lines, ""); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}
