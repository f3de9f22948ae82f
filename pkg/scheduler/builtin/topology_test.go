// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"testing"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// rack declares nodes of one rack of a block: rack("b1", "r1", 4) has the nodes b1r1n1 to b1r1n4.
func rack(block, name string, nodes int, options ...NodeOption) Row {
	return Nodes(nodes, block+name+"n", "1cpu", append(options, Label("block", block), Label("rack", name))...)
}

// TestTopology asserts where gangs with a required level start. The numbers are those of the acceptance list.
func TestTopology(t *testing.T) {
	Cases{
		"TO1: a gang takes the smallest rack that holds it, and leaves others whole": {
			Given: Given(
				Topology("default", "block", "rack"), Queue("q", 1),
				rack("b", "r1", 4), rack("b", "r2", 4), rack("b", "r3", 2),
				Group("q/four", 4, Within("rack"), Pending(4, "1cpu")),
				Group("q/two", 2, Within("rack"), Pending(2, "1cpu")),
			),
			Want: `bind q/four-0 br1n4
			       bind q/four-1 br1n3
			       bind q/four-2 br1n2
			       bind q/four-3 br1n1
			       bind q/two-0 br3n2
			       bind q/two-1 br3n1`,
		},
		"a rack that is in use is taken before a whole one": {
			Given: Given(
				Topology("default", "block", "rack"), Queue("q", 1),
				rack("b", "r1", 3), rack("b", "r2", 4),
				Group("q/old", 1, Running(1, "1cpu", "br2n1")),
				Group("q/gang", 3, Within("rack"), Pending(3, "1cpu")),
			),
			Want: `bind q/gang-0 br2n2
			       bind q/gang-1 br2n3
			       bind q/gang-2 br2n4`,
		},
	}.TestTranscripts(t)
}

// TestTopologyWaits asserts what gangs are told whose level has no domain for them.
func TestTopologyWaits(t *testing.T) {
	cases := map[string]struct {
		given []Row
		want  string
	}{
		"TO5: racks of one name in two blocks are two racks": {
			Given(
				Topology("default", "block", "rack"), Queue("q", 1), rack("b1", "r1", 2), rack("b2", "r1", 2),
				Group("q/gang", 4, Within("rack"), Pending(4, "1cpu")),
			),
			``,
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
	_ = fmt.Sprint
}
