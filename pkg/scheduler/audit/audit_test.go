// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Every kind of error in the model must be found, else the audit proves nothing.
func TestModelFindsErrors(t *testing.T) {
	cases := map[string]func(*model.Cluster){
		"idle of a node":            func(c *model.Cluster) { c.Node("n").Idle[api.CPU]++ },
		"members of a node":         func(c *model.Cluster) { c.Node("n").Members[api.Memory]++ },
		"foreign pods of a node":    func(c *model.Cluster) { c.Node("n").Foreign[api.CPU]-- },
		"task of a node":            func(c *model.Cluster) { delete(c.Node("n").Tasks, "uid-bound") },
		"count of a job":            func(c *model.Cluster) { c.Jobs()["group/ns/g"].Tracking.Counts[api.Bound]-- },
		"request of a job":          func(c *model.Cluster) { c.Jobs()["group/ns/g"].Requested.Add(api.Resource{1}) },
		"index of a job":            func(c *model.Cluster) { c.Jobs()["group/ns/g2"].Index = c.Jobs()["group/ns/g"].Index },
		"creation of a waiting job": func(c *model.Cluster) { model.Inspect(c).WaitingJobs[c.Jobs()["group/ns/g2"]]++ },
		"priority of a job":         func(c *model.Cluster) { c.Jobs()["group/ns/g"].Priority++ },
		"allocated of a queue":      func(c *model.Cluster) { c.Queues()["default"].Allocated[api.CPU]++ },
		"job of a queue":            func(c *model.Cluster) { delete(c.Queues()["default"].Jobs, "group/ns/g") },
		"members of a signature":    func(c *model.Cluster) { c.Tasks()["uid-bound"].Signature.Tracking.Members++ },
		"references of a signature": func(c *model.Cluster) { c.Tasks()["uid-bound"].Signature.Tracking.References++ },
		"status of a task":          func(c *model.Cluster) { c.Tasks()["uid-bound"].Status = api.Running },
		"node of a task":            func(c *model.Cluster) { c.Tasks()["uid-bound"].Node = nil },
		"job of a task":             func(c *model.Cluster) { c.Tasks()["uid-bound"].Job = nil },
		"bind of a task":            func(c *model.Cluster) { c.Tasks()["uid-assumed"].Tracking.Bind = nil },
		"restored bind": func(c *model.Cluster) {
			model.Inspect(c).RestoredBinds["uid-bound"] = model.InFlightBind{Node: "n", Commitment: &api.Commitment{}}
		},
		"restored eviction": func(c *model.Cluster) { model.Inspect(c).RestoredEvictions["uid-bound"] = struct{}{} },
		"empty unknown node": func(c *model.Cluster) {
			model.Inspect(c).Nodes["ghost"] = &api.NodeInfo{Name: "ghost", Index: -1}
		},
		"index of a node": func(c *model.Cluster) { c.Nodes()[c.Node("n").Index] = nil },
		"group by UID":    func(c *model.Cluster) { delete(model.Inspect(c).GroupsByUID, "uid-g") },
		"term": func(c *model.Cluster) {
			s := c.Tasks()["uid-bound"].Signature
			s.Terms = append(s.Terms, api.Term{})
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.Events().SetQueue(&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
			c.Events().SetNode(node("n", "4", "4Gi"))
			c.Events().SetPodGroup(&v1alpha1.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g", UID: "uid-g"},
				Spec:       v1alpha1.PodGroupSpec{MinMember: 1},
			})
			c.Events().SetPodGroup(&v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g2", UID: "uid-g2"}})
			c.Events().SetPod(pod("bound", "n", "g"))
			c.Events().SetPod(pod("pending", "", "g"))
			c.Events().SetPod(pod("assumed", "", "g"))
			foreign := pod("foreign", "n", "")
			foreign.Spec.SchedulerName = "default-scheduler"
			c.Events().SetPod(foreign)
			c.Ledger().Place(c.Tasks()["uid-assumed"], api.Allocated, c.Node("n"))
			c.Ledger().AssumePod(c.Tasks()["uid-assumed"], time.Unix(100, 0))
			c.Events().Recompute()
			if err := audit.Model(c); err != nil {
				t.Fatal(err)
			}
			spoil(c)
			if audit.Model(c) == nil {
				t.Error("the audit finds nothing")
			}
		})
	}
}

func newCluster() *model.Cluster {
	return model.NewCluster(model.Options{SchedulerNames: []string{"batch-scheduler"}, DefaultQueue: "default"})
}

func node(name, cpu, memory string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory), v1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

// pod is a pod of one cpu and 1Gi.
func pod(name, node, group string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{v1alpha1.LabelPodGroup: group},
		},
		Spec: v1.PodSpec{
			SchedulerName: "batch-scheduler",
			NodeName:      node,
			Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi"),
			}}}},
		},
	}
}

func ExampleModel() {
	c := newCluster()
	c.Events().SetNode(node("n1", "4", "4Gi"))
	c.Events().SetPod(pod("web", "n1", ""))
	c.Node("n1").Idle[api.CPU] += 500
	fmt.Println(audit.Model(c))
	// Output:
	// the model contradicts itself:
	//   node n1 idle: the model says {cpu:3500 memory:3221225472 pods:109}, its tasks say {cpu:3000 memory:3221225472 pods:109}
}
