// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodelabel

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

const config = `
actions: [allocate]
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: nodelabel
    arguments:
      label: speed
`

func TestNodeLabel(t *testing.T) {
	const refused = "waits q/job Unschedulable: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 node(s) had no valid label speed"
	for name, tc := range map[string]struct {
		given         []Row
		want, waiting string
	}{
		"the node with the highest value is best": {
			given: Given(
				Node("n1", "4cpu", Label("speed", "10")), Node("n2", "4cpu", Label("speed", "90")),
				Queue("q", 1), Group("q/job", 1, Pending(1, "1cpu")),
			),
			want: "bind q/job-0 n2",
		},
		"a node without the label is excluded": {
			given:   Given(Node("n1", "4cpu"), Queue("q", 1), Group("q/job", 1, Pending(1, "1cpu"))),
			waiting: refused,
		},
		"a value that is not a number excludes the node": {
			given:   Given(Node("n1", "4cpu", Label("speed", "high")), Queue("q", 1), Group("q/job", 1, Pending(1, "1cpu"))),
			waiting: refused,
		},
		"a value above 100 excludes the node": {
			given:   Given(Node("n1", "4cpu", Label("speed", "101")), Queue("q", 1), Group("q/job", 1, Pending(1, "1cpu"))),
			waiting: refused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry, err := builtin.NewRegistry()
			if err != nil {
				t.Fatal(err)
			}
			if err := registry.AddPlugin(Name, Spec()); err != nil {
				t.Fatal(err)
			}
			cluster := New(t, registry, tc.given, WithConfig(config))
			if diff := cmp.Diff(tc.want, cluster.Cycle()); diff != "" {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.waiting, cluster.Waits()); diff != "" {
				t.Errorf("pending (-want +got):\n%s", diff)
			}
		})
	}
}
