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
	for name, tc := range map[string]struct {
		given []Row
		want  string
	}{
		"the node with the highest value is best": {
			given: Given(
				Node("n1", "4cpu", Label("speed", "10")), Node("n2", "4cpu", Label("speed", "90")),
				Queue("q", 1), Group("q/job", 1, Pending(1, "1cpu")),
			),
			want: "bind q/job-0 n2",
		},
		"a node without the label is excluded": {
			given: Given(Node("n1", "4cpu"), Queue("q", 1), Group("q/job", 1, Pending(1, "1cpu"))),
			want:  "",
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
			if diff := cmp.Diff(tc.want, Run(t, registry, tc.given, WithConfig(config))); diff != "" {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
		})
	}
}
