package framework

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// TestNearestFollows: which node comes nearest to 4 cpu, after nodes with 2, 3 and 1 cpu were looked at and one of them
// has changed.
func TestNearestFollows(t *testing.T) {
	label := func(value string) func(*v1.Node) { return func(n *v1.Node) { n.Labels["disk"] = value } }
	for name, test := range map[string]struct {
		change func(*api.Cluster)
		want   string
	}{
		"nothing":                             {func(*api.Cluster) {}, "b"},
		"the nearest is gone":                 {func(c *api.Cluster) { c.DeleteNode("b") }, "a"},
		"another is gone":                     {func(c *api.Cluster) { c.DeleteNode("a") }, "b"},
		"all are gone":                        {func(c *api.Cluster) { c.DeleteNode("a"); c.DeleteNode("b"); c.DeleteNode("c") }, ""},
		"a smaller one in place of it":        {func(c *api.Cluster) { c.DeleteNode("b"); c.SetNode(node("d", 1)) }, "a"},
		"an equal one in place of it":         {func(c *api.Cluster) { c.DeleteNode("b"); c.SetNode(node("d", 3)) }, "d"},
		"the nearest has less":                {func(c *api.Cluster) { c.SetNode(node("b", 1)) }, "a"},
		"another has as much, and goes first": {func(c *api.Cluster) { c.SetNode(node("a", 3)) }, "a"},
		"another has as much, and goes later": {func(c *api.Cluster) { c.SetNode(node("c", 3)) }, "b"},
		"the nearest is refused":              {func(c *api.Cluster) { c.SetNode(node("b", 3, label("hdd"))) }, "a"},
		"one has room":                        {func(c *api.Cluster) { c.SetNode(node("c", 4)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			byLabel := testPlugin{name: "label", open: func(ssn *Session) {
				ssn.AddFilterFn("label", func(_ *api.Signature, n *api.NodeInfo) *api.Unfit {
					if n.Node.Labels["disk"] == "hdd" {
						return &api.Unfit{Reason: api.NodeUnschedulable}
					}
					return nil
				})
			}}
			profile, c := profileOf(t, nil, []testPlugin{byLabel}), newCluster()
			for i, name := range []string{"a", "b", "c"} {
				c.SetNode(node(name, []int{2, 3, 1}[i]))
			}
			c.SetPod(pod("p", 4))
			nearest := func() string {
				ssn, _ := open(t, profile, c)
				defer ssn.Close()
				miss := ssn.CountNodes(c.Tasks["p"]).Nearest
				if miss == nil {
					return ""
				}
				return miss.Node
			}
			nearest()
			test.change(c)
			if got := nearest(); got != test.want {
				t.Errorf("nearest is %q, and should be %q", got, test.want)
			}
		})
	}
}
