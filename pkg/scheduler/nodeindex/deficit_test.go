// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// TestNearestFollowsChanges counts for a pod with 4 cpu in a cluster of the nodes a, b and c with 2, 3 and 1 cpu, changes
// a node, and counts again.
func TestNearestFollowsChanges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*model.Cluster)
		want   string
	}{
		"nothing changes":        {func(*model.Cluster) {}, "b"},
		"the nearest is deleted": {func(c *model.Cluster) { c.Events().DeleteNode("b") }, "a"},
		"another is deleted":     {func(c *model.Cluster) { c.Events().DeleteNode("a") }, "b"},
		"all are deleted": {func(c *model.Cluster) {
			c.Events().DeleteNode("a")
			c.Events().DeleteNode("b")
			c.Events().DeleteNode("c")
		}, ""},
		"a smaller node replaces the nearest":          {func(c *model.Cluster) { c.Events().DeleteNode("b"); c.Events().SetNode(Node("d", 1)) }, "a"},
		"an equal node replaces the nearest":           {func(c *model.Cluster) { c.Events().DeleteNode("b"); c.Events().SetNode(Node("d", 3)) }, "d"},
		"the nearest gets smaller":                     {func(c *model.Cluster) { c.Events().SetNode(Node("b", 1)) }, "a"},
		"another gets equal, and is the first by name": {func(c *model.Cluster) { c.Events().SetNode(Node("a", 3)) }, "a"},
		"another gets equal, and is the last by name":  {func(c *model.Cluster) { c.Events().SetNode(Node("c", 3)) }, "b"},
		"another gets larger than the nearest, and then small": {func(c *model.Cluster) {
			c.Events().SetNode(Node("c", 3))
			c.Events().SetNode(Node("b", 2))
			c.Events().SetNode(Node("c", 1))
		}, "a"},
		"the nearest fails a filter": {func(c *model.Cluster) { c.Events().SetNode(Node("b", 3, labelled("broken", "yes"))) }, "a"},
		"the task fits on a node":    {func(c *model.Cluster) { c.Events().SetNode(Node("c", 4)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NewCluster()
			for i, name := range []string{"a", "b", "c"} {
				c.Events().SetNode(Node(name, []int{2, 3, 1}[i]))
			}
			c.Events().SetPod(Pod("p", 4))
			index := New(c, c.Dims())
			nearest := func() string {
				open(index, c)
				defer index.Close()
				nearest := index.Count(c.Tasks()["p"]).Nearest
				if nearest == nil {
					return ""
				}
				return nearest.Node
			}
			if got := nearest(); got != "b" {
				t.Errorf("before the change the nearest is %q", got)
			}
			test.change(c)
			if got := nearest(); got != test.want {
				t.Errorf("nearest is %q, and should be %q", got, test.want)
			}
		})
	}
}

// TestNearestHasTheResource asserts that a node without GPUs is not the nearest one for a pod that requests GPUs.
func TestNearestHasTheResource(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		nodes []*v1.Node
		want  api.NodeCounts
	}{
		"a node with GPUs is full, a node without GPUs is empty": {
			nodes: []*v1.Node{Node("empty", 9), Node("full", 9, gpus(8))},
			want: counts(0, &api.NearestNode{Node: "full", Shortfall: api.Resource{0, 0, 0, 0, 4}},
				unfit(api.Insufficient, 1), unfit(api.WithoutResource, 1)),
		},
		"the node with GPUs is unschedulable": {
			nodes: []*v1.Node{Node("empty", 9), Node("closed", 9, gpus(8), labelled("broken", "yes"))},
			want:  counts(0, nil, api.UnfitCount{Unfit: api.Unfit{Reason: api.NodeUnschedulable}, Count: 1}, unfit(api.WithoutResource, 1)),
		},
		"no node has GPUs": {
			nodes: []*v1.Node{Node("a", 9), Node("b", 1)},
			want:  counts(0, nil, unfit(api.WithoutResource, 2)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NewCluster()
			for _, n := range test.nodes {
				c.Events().SetNode(n)
			}
			c.Events().SetPod(Pod("runs", 1, requestsGPUs(4), On("full")))
			c.Events().SetPod(Pod("p", 1, requestsGPUs(8)))
			index := New(c, c.Dims())
			open(index, c)
			defer index.Close()
			if diff := cmp.Diff(test.want, index.Count(c.Tasks()["p"])); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

func counts(available int, nearest *api.NearestNode, list ...api.UnfitCount) api.NodeCounts {
	c := api.NodeCounts{Total: available, Available: available, Unfit: list, Nearest: nearest}
	for _, u := range list {
		c.Total += u.Count
	}
	return c
}

func unfit(reason api.UnfitReason, nodes int) api.UnfitCount {
	return api.UnfitCount{Unfit: api.Unfit{Reason: reason, Detail: gpu, Plugin: api.RefusedByResources}, Count: nodes}
}

// TestNearestLacksWhatIsRequested has a node whose pods use more GPUs than it has.
func TestNearestLacksWhatIsRequested(t *testing.T) {
	t.Parallel()
	c := NewCluster()
	c.Events().SetNode(Node("n", 2))
	c.Events().SetPod(Pod("runs", 1, requestsGPUs(4), On("n")))
	c.Events().SetPod(Pod("p", 4))
	index := New(c, c.Dims())
	open(index, c)
	defer index.Close()
	if got := c.Dims().Format(index.Count(c.Tasks()["p"]).Nearest.Shortfall); got != "3 cpu" {
		t.Errorf("the nearest node lacks %s, want 3 cpu", got)
	}
}
