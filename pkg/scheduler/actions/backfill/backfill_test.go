// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package backfill_test

import (
	"testing"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestBackfill asserts where pods without requests are placed. The numbers are those of the acceptance list.
func TestBackfill(t *testing.T) {
	cases := map[string]struct {
		given []Row
		want  string
		waits string
	}{
		"a gang that waits for resources is not started": {
			given: Given(
				Node("n1", "4cpu"), Node("n2", "1cpu"),
				Queue("q", 1),
				Group("q/old", 1, Releasing(1, "4cpu", "n1")),
				Group("q/gang", 3, Pending(1, "1cpu"), Pending(1, "2cpu"), BestEffort(2)),
			),
			want: `hold     q/gang-0 n2
			       pipeline q/gang-1 n1
			       hold     q/gang-2 n1`,
		},
		"A7: a gang of pods with and without requests, and pods without requests beyond minMember": {
			given: Given(threeNodes(),
				Group("default/a", 4, Pending(2, "1cpu"), BestEffort(2)),
				Group("default/b", 1, Pending(2, "1cpu"), BestEffort(2)),
			),
			want: `bind default/a-0 n1
			       bind default/a-1 n2
			       bind default/a-2 n3
			       bind default/a-3 n3
			       bind default/b-0 n3
			       bind default/b-1 n1
			       bind default/b-2 n2
			       bind default/b-3 n2`,
		},
		"A7: a gang of pods without requests": {
			given: Given(threeNodes(), Group("default/a", 3, BestEffort(3))),
			want: `bind default/a-0 n1
			       bind default/a-1 n1
			       bind default/a-2 n1`,
		},
		"A7: pods without requests that match no node": {
			given: Given(threeNodes(),
				Group("default/a", 1, Pending(1, "1cpu"), BestEffort(2, NodeSelector("disk", "ssd"))),
			),
			want:  `bind default/a-0 n1`,
			waits: `waits default/a-1 Unschedulable: needs 2 more pods of no resources; 0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector (node selector disk=ssd)`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), tc.given)
			CompareTranscripts(t, tc.want, c.Cycle())
			if got := c.Waits(); tc.waits != "" && got != tc.waits {
				t.Errorf("got  %s\nwant %s", got, tc.waits)
			}
		})
	}
}

func threeNodes() Row { return Rows(Nodes(3, "n", "4cpu 16Gi"), Queue("default", 1)) }
