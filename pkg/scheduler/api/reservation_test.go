package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// What is left for others when room is set aside for two tasks of 2 cpus, on a node of 6 and in a queue
// whose cap is 5. Amounts are milli-cpus.
func TestSetAside(t *testing.T) {
	type left struct{ now, future, cap int64 }
	cases := map[string]struct {
		given func(*Cluster)
		want  left
	}{
		"all is free": {
			func(*Cluster) {}, left{now: 2000, future: 2000, cap: 1000},
		},
		"less than that is free": {
			func(c *Cluster) { c.SetPod(aPod("p", on("n"), requesting("cpu", "3"), foreign)) }, left{cap: 1000},
		},
		"nothing is free": {
			func(c *Cluster) { c.SetPod(aPod("p", on("n"), requesting("cpu", "6"), foreign)) }, left{cap: 1000},
		},
		"the node is over-full": {
			func(c *Cluster) { c.SetPod(aPod("p", on("n"), requesting("cpu", "7"), foreign)) }, left{now: -1000, future: -1000, cap: 1000},
		},
		"what is being released serves first": {
			func(c *Cluster) { c.SetPod(aPod("p", on("n"), requesting("cpu", "3"), foreign, deleting)) },
			left{now: 2000, future: 2000, cap: 1000},
		},
		"what is promised to others": {
			func(c *Cluster) {
				c.SetPod(aPod("p", requesting("cpu", "3")))
				c.Place(c.Tasks["uid-p"], Pipelined, c.Node("n"))
			},
			left{},
		},
		"the queue holds half of its cap": {
			func(c *Cluster) { c.SetPod(aPod("p", on("m"), requesting("cpu", "2500m"))) }, left{now: 2000, future: 2000},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			queue := aQueue("default")
			queue.Spec.Capability = amountsOf("cpu", "5")
			c.SetQueue(queue)
			c.SetNode(aNode("n", "cpu", "6"))
			c.SetNode(aNode("m", "cpu", "6"))
			c.SetPodGroup(aGroup("g", "default", 2))
			var places []Decision
			for _, pod := range []string{"a", "b"} {
				c.SetPod(aPod(pod, inGroup("g"), requesting("cpu", "2")))
				places = append(places, Decision{Kind: Pipeline, Task: c.Tasks[TaskID("uid-"+pod)], Node: c.Node("n")})
			}
			tc.given(c)
			before, position := c.Dump(), c.NodeChanges().Position()
			kept := c.Reserve(places[0].Task.Job.Queue, places)
			n, q := c.Node("n"), c.Queues["default"]
			got := left{now: n.Available(0, Now).At(CPU), future: n.Available(0, Future).At(CPU)}
			for q.CapAllows(Resource{got.cap + 1}, Future) < 0 {
				got.cap++
			}
			if got != tc.want {
				t.Errorf("\n got %+v\nwant %+v", got, tc.want)
			}
			if c.NodeChanges().Position() == position {
				t.Error("the journal does not tell of it")
			}
			c.Unreserve(kept)
			if diff := cmp.Diff(before, c.Dump()); diff != "" {
				t.Errorf("after giving it back:\n%s", diff)
			}
		})
	}
}

// A queue without caps has nothing to keep.
func TestSetAsideWithoutCaps(t *testing.T) {
	c := newTestCluster()
	c.SetQueue(&v1alpha1.Queue{ObjectMeta: aQueue("default").ObjectMeta})
	c.SetNode(aNode("n", "cpu", "1"))
	c.SetPod(aPod("a"))
	kept := c.Reserve(c.Tasks["uid-a"].Job.Queue, []Decision{{Task: c.Tasks["uid-a"], Node: c.Node("n")}})
	if q := c.Queues["default"]; !q.Reserved.IsZero() {
		t.Errorf("the queue keeps %v", q.Reserved)
	}
	c.Unreserve(kept)
}
