// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package single_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/examples/out-of-tree-action/single"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

const tiers = `
tiers:
- plugins:
  - name: gang
  - name: predicates
`

func TestSingle(t *testing.T) {
	for name, tc := range map[string]struct {
		actions       string
		given         []Row
		want, waiting string
	}{
		"a job of one pod comes before an older gang": {
			actions: "actions: [single, allocate]",
			given: Given(
				Node("n1", "2cpu"), Queue("q", 1),
				Group("q/gang", 2, Pending(2, "1cpu")), Group("q/one", 1, Pending(1, "1cpu")),
			),
			want:    "bind q/one-0 n1",
			waiting: "waits q/gang NotEnoughResources: needs 2 more pods of 1 cpu, 1 of them could start now; 1/1 nodes are available",
		},
		"a job that fits no node stays pending": {
			actions: "actions: [single, allocate]",
			given:   Given(Node("n1", "2cpu"), Queue("q", 1), Group("q/one", 1, Pending(1, "3cpu"))),
			waiting: "waits q/one ExceedsClusterCapacity: needs 1 more pod of 3 cpu; 0/1 nodes are available: 1 Insufficient cpu; would not fit the empty nodes: a pod requests 3 cpu, the largest suitable node has 2",
		},
		"a job of two pods is left to other actions": {
			actions: "actions: [single]",
			given:   Given(Node("n1", "2cpu"), Queue("q", 1), Group("q/two", 1, Pending(2, "1cpu"))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry, err := builtin.NewRegistry()
			if err != nil {
				t.Fatal(err)
			}
			if err := registry.AddAction(single.New()); err != nil {
				t.Fatal(err)
			}
			cluster := New(t, registry, tc.given, WithConfig(tc.actions+tiers))
			if diff := cmp.Diff(tc.want, cluster.Cycle()); diff != "" {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.waiting, cluster.Waits()); diff != "" {
				t.Errorf("pending (-want +got):\n%s", diff)
			}
		})
	}
}
