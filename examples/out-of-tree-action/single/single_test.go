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

const config = `
actions: [single, allocate]
tiers:
- plugins:
  - name: gang
  - name: predicates
`

func TestSingle(t *testing.T) {
	registry, err := builtin.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.AddAction(single.New()); err != nil {
		t.Fatal(err)
	}
	given := Given(
		Node("n1", "2cpu"), Queue("q", 1),
		Group("q/gang", 2, Pending(2, "1cpu")), Group("q/one", 1, Pending(1, "1cpu")),
	)
	if diff := cmp.Diff("bind q/one-0 n1", Run(t, registry, given, WithConfig(config))); diff != "" {
		t.Errorf("a job of one pod comes before an older gang (-want +got):\n%s", diff)
	}
}
