// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// What is left for others while resources are reserved for two tasks of 2 cpus, on a node of 6 and in a queue
// whose cap is 5. Amounts are milli-cpus.
func TestReserve(t *testing.T) {
	type left struct{ now, future, cap int64 }
	cases := map[string]struct {
		given func(*model.Cluster)
		want  left
	}{
		"all is free": {
			func(*model.Cluster) {}, left{now: 2000, future: 2000, cap: 1000},
		},
		"less than that is free": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"), requesting("cpu", "3"), foreign)) }, left{cap: 1000},
		},
		"nothing is free": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"), requesting("cpu", "6"), foreign)) }, left{cap: 1000},
		},
		"the node is over-full": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("n"), requesting("cpu", "7"), foreign)) }, left{now: -1000, future: -1000, cap: 1000},
		},
		"what is being released serves first": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", on("n"), requesting("cpu", "3"), foreign, deleting))
			},
			left{now: 2000, future: 2000, cap: 1000},
		},
		"what is nominated for others": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("p", requesting("cpu", "3")))
				c.Ledger().Place(c.Tasks()["uid-p"], api.Pipelined, c.Node("n"))
			},
			left{},
		},
		"the queue holds half of its cap": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("p", on("m"), requesting("cpu", "2500m"))) }, left{now: 2000, future: 2000},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			queue := aQueue("default")
			queue.Spec.Capability = amountsOf("cpu", "5")
			c.Events().SetQueue(queue)
			c.Events().SetNode(aNode("n", "cpu", "6"))
			c.Events().SetNode(aNode("m", "cpu", "6"))
			c.Events().SetPodGroup(aGroup("g", "default", 2))
			var places []api.Decision
			for _, pod := range []string{"a", "b"} {
				c.Events().SetPod(aPod(pod, inGroup("g"), requesting("cpu", "2")))
				places = append(places, api.Decision{Kind: api.Pipeline, Task: c.Tasks()[api.TaskID("uid-"+pod)], Node: c.Node("n")})
			}
			tc.given(c)
			before, position := audit.Dump(c), c.NodeChanges().Position()
			kept := c.Ledger().Reserve(places[0].Task.Job.Queue, places)
			n, q := c.Node("n"), c.Queues()["default"]
			got := left{now: n.Available(0, api.Now).At(api.CPU), future: n.Available(0, api.Future).At(api.CPU)}
			for q.CapAllows(api.Resource{got.cap + 1}, api.Future) < 0 {
				got.cap++
			}
			if got != tc.want {
				t.Errorf("\n got %+v\nwant %+v", got, tc.want)
			}
			if c.NodeChanges().Position() == position {
				t.Error("the journal does not tell of it")
			}
			c.Ledger().Unreserve(kept)
			if diff := cmp.Diff(before, audit.Dump(c)); diff != "" {
				t.Errorf("after giving it back:\n%s", diff)
			}
		})
	}
}

// A queue without caps has nothing to keep.
func TestReserveWithoutCaps(t *testing.T) {
	c := newTestCluster()
	c.Events().SetQueue(&v1alpha1.Queue{ObjectMeta: aQueue("default").ObjectMeta})
	c.Events().SetNode(aNode("n", "cpu", "1"))
	c.Events().SetPod(aPod("a"))
	kept := c.Ledger().Reserve(c.Tasks()["uid-a"].Job.Queue, []api.Decision{{Task: c.Tasks()["uid-a"], Node: c.Node("n")}})
	if q := c.Queues()["default"]; !q.Reserved.IsZero() {
		t.Errorf("the queue keeps %v", q.Reserved)
	}
	c.Ledger().Unreserve(kept)
}
