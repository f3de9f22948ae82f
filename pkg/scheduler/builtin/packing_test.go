// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// policyOf is the built-in policy with other arguments of nodeorder.
func policyOf(nodeorder string) Option {
	return WithConfig(`
actions: "allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder, arguments: {` + nodeorder + `}}]
`)
}

// TestNodesStayWhole asserts how many pods of eight GPUs fit four nodes of eight GPUs after four pods of one GPU.
func TestNodesStayWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments string
		want      map[string]int
	}{
		"by default":                {want: map[string]int{"bind q/train": 3}},
		"with packing switched off": {arguments: `extendedpacking.weight: "0"`, want: map[string]int{}},
		"with arguments of kube-batch that pack all resources": {
			arguments: `leastrequested.weight: "0", mostrequested.weight: "5"`, want: map[string]int{"bind q/train": 3},
		},
		"with arguments of kube-batch that spread all resources": {arguments: `leastrequested.weight: "20"`, want: map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), Given(
				Nodes(4, "gpu", "64cpu 512Gi 8gpu"), Queue("q", 1),
				Plain("single", OfQueue("q"), Pending(4, "8cpu 64Gi 1gpu")),
			), policyOf(tc.arguments))
			c.Cycle()
			c.ConfirmBinds()
			c.Add(Group("q/train", 1, Pending(4, "8cpu 64Gi 8gpu")))
			transcript := c.Cycle()
			if diff := cmp.Diff(tc.want, CountDecisions(transcript, false)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, transcript)
			}
		})
	}
}

// TestPodsWithoutExtendedResourcesAvoidThem asserts that pods which request no GPU use the nodes with GPUs only when the
// other nodes are full.
func TestPodsWithoutExtendedResourcesAvoidThem(t *testing.T) {
	for name, tc := range map[string]struct {
		pods int
		want map[string]int
	}{
		"while other nodes fit": {pods: 8, want: map[string]int{"bind q/web cpu1": 4, "bind q/web cpu2": 4}},
		"then they do not":      {pods: 10, want: map[string]int{"bind q/web cpu1": 4, "bind q/web cpu2": 4, "bind q/web gpu1": 1, "bind q/web gpu2": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), Given(
				Nodes(2, "cpu", "4cpu 16Gi"), Nodes(2, "gpu", "64cpu 512Gi 8gpu"), Queue("q", 1),
				Group("q/web", 1, Pending(tc.pods, "1cpu 4Gi")),
			), policyOf(""))
			transcript := c.Cycle()
			if diff := cmp.Diff(tc.want, CountDecisions(transcript, true)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, transcript)
			}
		})
	}
}
