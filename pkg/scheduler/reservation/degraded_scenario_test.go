// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// S24 and its like: nodes with one member each of two gangs are lost, and no other resources are available.
func TestDegradedGangs(t *testing.T) {
	rows := func(more ...Row) []Row {
		return append(Given(Node("n1", "6cpu"), Node("n2", "2cpu"), Queue("q", 1)), more...)
	}
	a := Group("q/a", 4, Running(3, "1cpu", "n1"), Running(1, "1cpu", "n2"))
	b := Group("q/b", 4, Running(3, "1cpu", "n1"), Running(1, "1cpu", "n2"))
	for name, tc := range map[string]struct {
		given  []Row
		lost   []string
		config string
		happen func(*Scenario) // before the grace is over
		want   string
	}{
		"the later gang is evicted, and the other is completed": {
			given: rows(a, b), lost: []string{"q/a-3", "q/b-3"}, config: AllActions,
			want: `evict q/b-0 for q/a
			       evict q/b-1 for q/a
			       evict q/b-2 for q/a
			       pipeline q/a-3 n1`,
		},
		"a configuration without evictions evicts no gang": {
			given: rows(a, b), lost: []string{"q/a-3", "q/b-3"}, config: `
actions: "allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`,
		},
		"a gang that no other gang could replace stays": {
			given: rows(a, Group("q/b", 1, Running(3, "1cpu", "n1"))), lost: []string{"q/a-3"}, config: AllActions,
		},
		"a gang that waits replaces it": {
			given: rows(a, Group("q/b", 1, Running(3, "1cpu", "n1")), Group("q/c", 3, Pending(3, "1cpu"))), lost: []string{"q/a-3"}, config: AllActions,
			want: `evict q/a-0 for q/c
			       evict q/a-1 for q/c
			       evict q/a-2 for q/c
			       pipeline q/c-0 n1
			       pipeline q/c-1 n1
			       pipeline q/c-2 n1`,
		},
		"a disruption budget protects the later gang: the other is evicted": {
			given: append(rows(a), Budget("b", 0, "app", "x"), Group("q/b", 4, Running(3, "1cpu", "n1"), Running(1, "1cpu", "n2"), Label("app", "x"))),
			lost:  []string{"q/a-3", "q/b-3"}, config: AllActions,
			want: `evict q/a-0 for q/b
			       evict q/a-1 for q/b
			       evict q/a-2 for q/b
			       pipeline q/b-3 n1`,
		},
		"a gang that is completed in time is not degraded": {
			given: rows(a, b), lost: []string{"q/a-3", "q/b-3"}, config: AllActions,
			happen: func(c *Scenario) { c.Add(Node("n3", "2cpu")); c.Cycle(); c.ConfirmBinds(); c.Start() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), tc.given, WithConfig(tc.config))
			c.Cycle()
			c.ConfirmBinds()
			c.DeleteNode("n2")
			c.Recreate(tc.lost...)
			for range 3 {
				if got := c.Cycle(); got != "" {
					t.Fatalf("before the grace is over:\n%s", got)
				}
			}
			if tc.happen != nil {
				tc.happen(c)
			}
			c.Wait(time.Minute)
			if diff := cmp.Diff(FormatTranscript(tc.want), c.Cycle()); diff != "" {
				t.Errorf("after the grace (-want +got):\n%s\n%s", diff, c.Waits())
			}
		})
	}
}

// The preemptor is placed as allocate places gangs: in another order, or on resources that are reserved for it.
func TestPreemptorsOfDegradedGangs(t *testing.T) {
	lone := Group("q/a", 2, Running(1, "1cpu", "n1"), Running(1, "4cpu", "n2"))
	for name, tc := range map[string]struct {
		given []Row
		want  string
	}{
		"a gang that fits in one order only": {
			given: Given(Node("n1", "1cpu"), Node("n2", "4cpu"), Node("n3", "3cpu"), Queue("q", 1), lone,
				Group("q/c", 2, Pending(1, "1cpu"), Pending(1, "3cpu"))),
			want: `evict q/a-0 for q/c
			       hold q/c-1 n3
			       pipeline q/c-0 n1`,
		},
		"a gang with a reservation": {
			given: Given(Node("n1", "1cpu"), Node("n2", "4cpu"), Node("n3", "2cpu"), Queue("q", 1), lone,
				Group("q/o", 1, Running(1, "1cpu", "n3")), Group("q/c", 2, Pending(2, "1cpu"))),
			want: `evict q/a-0 for q/c
			       hold q/c-0 n3
			       pipeline q/c-1 n1`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), tc.given, WithConfig(AllActions))
			c.Wait(6 * time.Minute)
			c.Cycle()
			c.DeleteNode("n2")
			c.Recreate("q/a-1")
			if got := c.Cycle(); got != "" {
				t.Fatalf("before the grace is over:\n%s", got)
			}
			c.Wait(time.Minute)
			CompareTranscripts(t, tc.want, c.Cycle())
		})
	}
}
