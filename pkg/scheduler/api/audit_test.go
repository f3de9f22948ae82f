package api

import (
	"fmt"
	"testing"
)

// The audit is worth nothing if it overlooks something: whatever account is spoilt by hand must
// be found.
func TestAuditFindsWhatIsSpoilt(t *testing.T) {
	cases := map[string]func(*Cluster){
		"idle of a node":        func(c *Cluster) { c.Node("n").Idle[CPU]++ },
		"members of a node":     func(c *Cluster) { c.Node("n").Members[Memory]++ },
		"outside of a node":     func(c *Cluster) { c.Node("n").Foreign[CPU]-- },
		"task of a node":        func(c *Cluster) { delete(c.Node("n").Tasks, "uid-bound") },
		"count of a job":        func(c *Cluster) { c.Jobs["group/ns/g"].counts[Bound]-- },
		"request of a job":      func(c *Cluster) { c.Jobs["group/ns/g"].Requested.Add(Resource{1}) },
		"priority of a job":     func(c *Cluster) { c.Jobs["group/ns/g"].Priority++ },
		"allocated of a queue":  func(c *Cluster) { c.Queues["default"].Allocated[CPU]++ },
		"job of a queue":        func(c *Cluster) { delete(c.Queues["default"].Jobs, "group/ns/g") },
		"member count of shape": func(c *Cluster) { c.Tasks["uid-bound"].Signature.members++ },
		"reference of a shape":  func(c *Cluster) { c.Tasks["uid-bound"].Signature.refs++ },
		"status of a task":      func(c *Cluster) { c.Tasks["uid-bound"].Status = Running },
		"node of a task":        func(c *Cluster) { c.Tasks["uid-bound"].Node = nil },
		"job of a task":         func(c *Cluster) { c.Tasks["uid-bound"].Job = nil },
		"empty unknown node":    func(c *Cluster) { c.nodeNamed("ghost") },
		"index of a node":       func(c *Cluster) { c.Node("n").Index = 7; c.byIndex = make([]*NodeInfo, 8) },
		"group by UID":          func(c *Cluster) { delete(c.groups, "uid-g") },
		"term":                  func(c *Cluster) { c.terms.add([]Term{{key: "t"}}) },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.SetQueue(aQueue("default"))
			c.SetNode(aNode("n", "cpu", "4", "memory", "4Gi"))
			c.SetPodGroup(aGroup("g", "", 1))
			c.SetPod(aPod("bound", inGroup("g"), on("n"), requesting("cpu", "1", "memory", "1Gi")))
			c.SetPod(aPod("waiting", inGroup("g")))
			c.SetPod(aPod("foreign", foreign, on("n")))
			c.Recompute()
			if err := c.Audit(); err != nil {
				t.Fatal(err)
			}
			spoil(c)
			if c.Audit() == nil {
				t.Error("the audit finds nothing")
			}
		})
	}
}

func ExampleCluster_Audit() {
	c := newTestCluster()
	c.SetNode(aNode("n1", "cpu", "4"))
	c.SetPod(aPod("web", on("n1")))
	c.Node("n1").Idle[CPU] += 500
	fmt.Println(c.Audit())
	// Output:
	// the model contradicts itself:
	//   node n1 idle: the model says {cpu:3500 pods:109}, its tasks say {cpu:3000 pods:109}
}
