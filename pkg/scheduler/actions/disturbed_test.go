package actions_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// Parts of S18: what becomes of a plan when something comes between.
func TestDisturbedPlans(t *testing.T) {
	type turn struct {
		do   func(*Cluster) // before the cycle; nil for nothing
		want string
	}
	ready := func(c *Cluster, node string, status v1.ConditionStatus) {
		c.EditNode(node, func(n *v1.Node) {
			n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: status}}
		})
	}
	threeFull := Given(Nodes(3, "n", "4cpu"), Queue("g", 1), Queue("t", 1),
		Group("g/a", 1, Running(4, "1cpu", "n1"), Running(4, "1cpu", "n2"), Running(4, "1cpu", "n3")),
		Group("t/b", 2, Pending(2, "1cpu")))
	onN3 := turn{want: `evict g/a-10 for t/b
	                    evict g/a-11 for t/b
	                    pipeline t/b-0 n3
	                    pipeline t/b-1 n3`}
	onN2 := `evict g/a-6 for t/b
	         evict g/a-7 for t/b
	         pipeline t/b-0 n2
	         pipeline t/b-1 n2`
	cases := map[string]struct {
		given []Row
		turns []turn
	}{
		"the node goes silent before the victims are gone: others go on another node": {
			given: threeFull,
			turns: []turn{
				onN3,
				{do: func(c *Cluster) { ready(c, "n3", v1.ConditionUnknown) }, want: onN2},
				{want: `pipeline t/b-0 n2
				        pipeline t/b-1 n2`},
				{
					do: func(c *Cluster) { c.FinishEvictions("g/a-6", "g/a-7") },
					want: `bind t/b-0 n2
					       bind t/b-1 n2`,
				},
				{
					do: func(c *Cluster) { // what went in vain comes back
						c.ConfirmBinds()
						ready(c, "n3", v1.ConditionTrue)
						leave(c, true)
					},
					want: `bind g/a-10 n3
					       bind g/a-11 n3`,
				},
			},
		},
		"the node is deleted before the victims are gone: others go on another node": {
			given: threeFull,
			turns: []turn{
				onN3,
				{do: func(c *Cluster) { c.DeleteNode("n3") }, want: onN2},
				{
					do: func(c *Cluster) { leave(c, false) },
					want: `bind t/b-0 n2
					       bind t/b-1 n2`,
				},
			},
		},
		"a foreign pod takes part of the room: the rest is not lent again, and after a pause one more goes": {
			given: Given(Node("n1", "8cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/a", 1, Running(8, "1cpu", "n1")),
				Group("t/b", 2, Pending(2, "1cpu"))),
			turns: []turn{
				{want: `evict g/a-6 for t/b
				        evict g/a-7 for t/b
				        pipeline t/b-0 n1
				        pipeline t/b-1 n1`},
				{
					do: func(c *Cluster) {
						leave(c, true)
						c.Add(Foreign("web", Running(1, "1cpu", "n1")))
					},
				},
				{
					want: `evict g/a-5 for t/b
					       hold t/b-0 n1
					       pipeline t/b-1 n1`,
				},
				{
					do: func(c *Cluster) { leave(c, true) },
					want: `bind t/b-0 n1
					       bind t/b-1 n1`,
				},
			},
		},
		"foreign pods take so much that nobody borrows any more: nothing goes": {
			given: Given(Node("n1", "8cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/a", 1, Running(8, "1cpu", "n1")),
				Group("t/b", 4, Pending(4, "1cpu"))),
			turns: []turn{
				{want: `evict g/a-4 for t/b
				        evict g/a-5 for t/b
				        evict g/a-6 for t/b
				        evict g/a-7 for t/b
				        pipeline t/b-0 n1
				        pipeline t/b-1 n1
				        pipeline t/b-2 n1
				        pipeline t/b-3 n1`},
				{
					do: func(c *Cluster) {
						leave(c, true)
						c.Add(Foreign("web", Running(4, "1cpu", "n1")))
					},
				},
				{},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := New(t, builtIn(t), tc.given, WithConfig(allFour))
			for _, turn := range tc.turns {
				if turn.do != nil {
					turn.do(c)
				}
				same(t, turn.want, c.Cycle())
			}
		})
	}
}

// leave lets pods end that were evicted, and if they have a controller come back.
func leave(c *Cluster, controlled bool) {
	for _, name := range c.EvictionsInFlight() {
		if c.FinishEvictions(name); controlled {
			c.CreateAgain(name)
		}
	}
}
