// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"testing"

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
