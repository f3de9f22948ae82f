// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestInterruptedPlans asserts what happens to a plan when the cluster changes before it is complete. These are parts of S18.
func TestInterruptedPlans(t *testing.T) {
	type step struct {
		do   func(*Scenario) // before the cycle; nil for nothing
		want string
	}
	ready := func(c *Scenario, node string, status v1.ConditionStatus) {
		c.EditNode(node, func(n *v1.Node) {
			n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: status}}
		})
	}
	threeFull := Given(Nodes(3, "n", "4cpu"), Queue("g", 1), Queue("t", 1),
		Group("g/a", 1, Running(4, "1cpu", "n1"), Running(4, "1cpu", "n2"), Running(4, "1cpu", "n3")),
		Group("t/b", 2, Pending(2, "1cpu")))
	onN3 := step{want: `evict g/a-10 for t/b
	                    evict g/a-11 for t/b
	                    pipeline t/b-0 n3
	                    pipeline t/b-1 n3`}
	onN2 := `evict g/a-6 for t/b
	         evict g/a-7 for t/b
	         pipeline t/b-0 n2
	         pipeline t/b-1 n2`
	cases := map[string]struct {
		given []Row
		steps []step
	}{
		"the node becomes not ready before the victims are deleted: pods on another node are evicted": {
			given: threeFull,
			steps: []step{
				onN3,
				{do: func(c *Scenario) { ready(c, "n3", v1.ConditionUnknown) }, want: onN2},
				{want: `pipeline t/b-0 n2
				        pipeline t/b-1 n2`},
				{
					do: func(c *Scenario) { c.FinishEvictions("g/a-6", "g/a-7") },
					want: `bind t/b-0 n2
					       bind t/b-1 n2`,
				},
				{
					do: func(c *Scenario) { // the pods that were evicted without use are created again
						c.ConfirmBinds()
						ready(c, "n3", v1.ConditionTrue)
						FinishEvictionsAndRecreate(c)
					},
					want: `bind g/a-10 n3
					       bind g/a-11 n3`,
				},
			},
		},
		"the node is deleted before the victims are: pods on another node are evicted": {
			given: threeFull,
			steps: []step{
				onN3,
				{do: func(c *Scenario) { c.DeleteNode("n3") }, want: onN2},
				{
					do: func(c *Scenario) { c.FinishEvictions() },
					want: `bind t/b-0 n2
					       bind t/b-1 n2`,
				},
			},
		},
		"a foreign pod uses part of the nominated resources: the rest stays nominated, and after the backoff one more pod is evicted": {
			given: Given(Node("n1", "8cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/a", 1, Running(8, "1cpu", "n1")),
				Group("t/b", 2, Pending(2, "1cpu"))),
			steps: []step{
				{want: `evict g/a-6 for t/b
				        evict g/a-7 for t/b
				        pipeline t/b-0 n1
				        pipeline t/b-1 n1`},
				{
					do: func(c *Scenario) {
						FinishEvictionsAndRecreate(c)
						c.Add(Foreign("web", Running(1, "1cpu", "n1")))
					},
				},
				{
					want: `evict g/a-5 for t/b
					       hold t/b-0 n1
					       pipeline t/b-1 n1`,
				},
				{
					do: func(c *Scenario) { FinishEvictionsAndRecreate(c) },
					want: `bind t/b-0 n1
					       bind t/b-1 n1`,
				},
			},
		},
		"foreign pods use so much that no queue borrows any more: no pod is evicted": {
			given: Given(Node("n1", "8cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/a", 1, Running(8, "1cpu", "n1")),
				Group("t/b", 4, Pending(4, "1cpu"))),
			steps: []step{
				{want: `evict g/a-4 for t/b
				        evict g/a-5 for t/b
				        evict g/a-6 for t/b
				        evict g/a-7 for t/b
				        pipeline t/b-0 n1
				        pipeline t/b-1 n1
				        pipeline t/b-2 n1
				        pipeline t/b-3 n1`},
				{
					do: func(c *Scenario) {
						FinishEvictionsAndRecreate(c)
						c.Add(Foreign("web", Running(4, "1cpu", "n1")))
					},
				},
				{},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), tc.given, WithConfig(AllActions))
			for _, s := range tc.steps {
				if s.do != nil {
					s.do(c)
				}
				CompareTranscripts(t, s.want, c.Cycle())
			}
		})
	}
}
