// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

func TestVerdictMessages(t *testing.T) {
	dims := NewDimensions()
	gpu := dims.Index("nvidia.com/gpu")
	counts := func(total, available int, unfit ...UnfitCount) NodeCounts {
		return NodeCounts{Total: total, Available: available, Unfit: unfit}
	}
	insufficient := func(resource string, n int) UnfitCount {
		return UnfitCount{Unfit{Reason: Insufficient, Detail: resource}, n}
	}
	cases := map[string]struct {
		verdict Verdict
		want    string
	}{
		"insufficient resources": {
			Verdict{
				Reason: v1alpha1.ReasonNotEnoughResources, Missing: 8, Request: dims.Vector(amountsOf("nvidia.com/gpu", "1", "cpu", "4", "pods", "1")),
				Nodes: counts(120, 3, insufficient("nvidia.com/gpu", 96), UnfitCount{Unfit{Reason: Taint, Detail: "dedicated=infra"}, 17}, UnfitCount{Unfit{Reason: NodeSelector, Detail: ""}, 4}),
			},
			"needs 8 more pods of 1 nvidia.com/gpu + 4 cpu; 3/120 nodes are available: " +
				"96 Insufficient nvidia.com/gpu, 17 node(s) had untolerated taint {dedicated=infra}, 4 node(s) didn't match Pod's node affinity/selector",
		},
		"one pod, one node": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughResources, Missing: 1, Request: Resource{500}, Nodes: counts(2, 1, insufficient("cpu", 1))},
			"needs 1 more pod of 500m cpu; 1/2 nodes are available: 1 Insufficient cpu",
		},
		"some could start": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughResources, Missing: 4, Startable: 3, Request: Resource{1000}, Nodes: counts(1, 0, insufficient("cpu", 1))},
			"needs 4 more pods of 1 cpu, 3 of them could start now; 0/1 nodes are available: 1 Insufficient cpu",
		},
		"pods of two requests": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughResources, Missing: 5, Startable: 4, Request: Resource{4000}, Others: others(1000), Nodes: counts(4, 0, insufficient("cpu", 4))},
			"needs 5 more pods of 4 cpu, 4 of them could start now, and 1 pod of 1 cpu; 0/4 nodes are available: 4 Insufficient cpu",
		},
		"pods of equal requests that differ otherwise": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughResources, Missing: 1, Request: Resource{1000}, Others: others(1000, 1000), Nodes: counts(1, 0, insufficient("cpu", 1))},
			"needs 1 more pod of 1 cpu and 2 other pods of 1 cpu; 0/1 nodes are available: 1 Insufficient cpu",
		},
		"pods of many requests": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughResources, Missing: 1, Request: Resource{9000}, Others: others(1000, 2000, 1000, 3000, 4000, 5000), Nodes: counts(1, 0, insufficient("cpu", 1))},
			"needs 1 more pod of 9 cpu and 2 pods of 1 cpu and 1 pod of 2 cpu and 1 pod of 3 cpu and 2 other pods; 0/1 nodes are available: 1 Insufficient cpu",
		},
		"a gang that exceeds the empty nodes": {
			Verdict{Reason: v1alpha1.ReasonExceedsClusterCapacity, Missing: 4, Request: Resource{1000}, Have: 3, Need: 5, Nodes: counts(1, 0, insufficient("cpu", 1))},
			"needs 4 more pods of 1 cpu; 0/1 nodes are available: 1 Insufficient cpu; would not fit the empty nodes (at most 3 of 5 pods)",
		},
		"a gang that exceeds the capability of its queue": {
			Verdict{Reason: v1alpha1.ReasonExceedsQueueCapability, Name: "research", Dimension: gpu, Limit: 64, Asked: 80},
			"exceeds the queue's capability: needs 80 nvidia.com/gpu, and queue research has a capability of 64",
		},
		"a gang that must be in one topology domain": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughResources, Missing: 3, Startable: 2, Request: Resource{1000}, Others: others(2000),
				Domain: &DomainCount{Level: AffinityLevel("rack"), Path: "r1", Startable: 3, Need: 4}, Nodes: counts(4, 4)},
			"needs 3 more pods of 1 cpu and 1 pod of 2 cpu in one topology domain; rack r1 has resources for 3 of 4 pods; 4/4 nodes are available",
		},
		"devices of claims": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughResources, Missing: 2, Request: Resource{1000}, Devices: "2 devices of class gpu",
				Nodes: counts(2, 0, UnfitCount{Unfit{Reason: DevicesInUse, Detail: "Insufficient devices of class gpu"}, 1}, UnfitCount{Unfit{Reason: WithoutResource, Detail: "devices of class gpu"}, 1})},
			"needs 2 more pods of 1 cpu + 2 devices of class gpu; 0/2 nodes are available: 1 Insufficient devices of class gpu, 1 without devices of class gpu",
		},
		"devices of claims alone": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughResources, Missing: 1, Request: Resource{0, 0, 0, 1}, Devices: "claim one (1 device of class gpu)", Nodes: counts(1, 1)},
			"needs 1 more pod of claim one (1 device of class gpu); 1/1 nodes are available",
		},
		"resources are reserved": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughResources, Missing: 2, Request: Resource{1000},
				Nodes:       counts(3, 0, insufficient("cpu", 2), UnfitCount{Unfit{Reason: Reserved, Detail: ""}, 1}),
				Reservation: &StarvationReservation{After: 5 * time.Minute, Nodes: 2, Startable: 1, Need: 2}},
			"needs 2 more pods of 1 cpu; 0/3 nodes are available: 2 Insufficient cpu, 1 reserved for another PodGroup; " +
				"reserved: 2 nodes, because it has been pending for more than 5m0s; 1 of 2 pods could start there now",
		},
		"resources are reserved in one topology domain": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughResources, Missing: 2, Request: Resource{1000}, Nodes: counts(2, 2),
				Reservation: &StarvationReservation{After: 5 * time.Minute, Nodes: 2, Domain: rackOfBlock().Domain("b1/r1"), Startable: 1, Need: 2}},
			"needs 2 more pods of 1 cpu; 2/2 nodes are available; " +
				"reserved: 2 nodes of rack b1/r1, because it has been pending for more than 5m0s; 1 of 2 pods could start there now",
		},
		"resources are reserved for a PodGroup of the same namespace": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughResources, Missing: 2, Request: Resource{1000},
				Nodes:       counts(3, 0, UnfitCount{Unfit{Reason: Reserved, Detail: "ns/gang"}, 3}),
				Reservation: &StarvationReservation{After: 5 * time.Minute, Nodes: 2, Startable: 1, Need: 2, Awaited: awaited("ns/a", "ns/b")}},
			"needs 2 more pods of 1 cpu; 0/3 nodes are available: 3 reserved for another PodGroup (ns/gang); " +
				"reserved: 2 nodes, because it has been pending for more than 5m0s; 1 of 2 pods could start there now; waiting for resources of pods there: ns/a, ns/b",
		},
		"victims of the same namespace": {
			Verdict{Reason: v1alpha1.ReasonPreempting, Victims: 3, Awaited: awaited("ns/a", "ns/b", "ns/c")},
			"waiting for 3 evicted pods to terminate: ns/a, ns/b, ns/c",
		},
		"many victims, some of which are of other namespaces": {
			Verdict{Reason: v1alpha1.ReasonPreempting, Victims: 5, Until: time.Unix(0, 0), Awaited: awaited("secret/x", "ns/a", "ns/b", "ns/c", "ns/d")},
			"waiting for 5 evicted pods to terminate, expected by 1970-01-01T00:00:00Z: ns/a, ns/b, ns/c and 2 more",
		},
		"victims of other namespaces": {
			Verdict{Reason: v1alpha1.ReasonPreempting, Victims: 2, Awaited: awaited("secret/x", "secret/y")},
			"waiting for 2 evicted pods to terminate",
		},
		"the queue is full, and part of its capability is reserved": {
			Verdict{Reason: v1alpha1.ReasonQueueFull, Name: "research", Dimension: CPU, Limit: 4000, Held: 3000, Asked: 2000,
				Detail: "1 cpu of the rest is reserved", Reservation: &StarvationReservation{After: time.Minute, Nodes: 1, Startable: 0, Need: 1}},
			"queue research is full: capability 4 cpu, allocated 3, needs 2; 1 cpu of the rest is reserved; " +
				"reserved: 1 node, because it has been pending for more than 1m0s; 0 of 1 pods could start there now",
		},
		"no nodes at all": {
			Verdict{Reason: v1alpha1.ReasonUnschedulable, Missing: 1, Request: Resource{0, 0, 0, 1}},
			"needs 1 more pod of no resources; no nodes available to schedule pods",
		},
		"more refusals than anybody reads": {
			Verdict{
				Reason: v1alpha1.ReasonUnschedulable, Missing: 1, Request: Resource{1000},
				Nodes: counts(9, 0, insufficient("cpu", 2), UnfitCount{Unfit{Reason: NodeNotReady, Detail: ""}, 1}, UnfitCount{Unfit{Reason: NodeUnschedulable, Detail: ""}, 1},
					UnfitCount{Unfit{Reason: NodePressure, Detail: "MemoryPressure"}, 1}, UnfitCount{Unfit{Reason: HostPortTaken, Detail: ""}, 1},
					UnfitCount{Unfit{Reason: OtherUnfit, Detail: "it is full of eels"}, 1}, UnfitCount{Unfit{Reason: Taint, Detail: "a"}, 1}, UnfitCount{Unfit{Reason: Taint, Detail: "b"}, 1}),
			},
			"needs 1 more pod of 1 cpu; 0/9 nodes are available: 2 Insufficient cpu, 1 node(s) were not ready, 1 node(s) were unschedulable, 1 node(s) had memory pressure, " +
				"1 node(s) didn't have free ports for the requested pod ports, 1 it is full of eels, 2 for other reasons",
		},
		"the queue is full": {
			Verdict{Reason: v1alpha1.ReasonQueueFull, Name: "research", Dimension: gpu, Limit: 64, Held: 60, Asked: 8},
			"queue research is full: capability 64 nvidia.com/gpu, allocated 60, needs 8",
		},
		"too few pods": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughPods, Need: 4, Have: 3},
			"3 of 4 pods that must start together exist",
		},
		"too few pods without gates": {
			Verdict{Reason: v1alpha1.ReasonNotEnoughPods, Need: 4, Have: 1, Gated: 3},
			"1 of 4 pods that must start together exist; 3 gated",
		},
		"no such queue": {
			Verdict{Reason: v1alpha1.ReasonQueueNotFound, Name: "reserch"},
			`queue "reserch" does not exist; create it or name another queue`,
		},
		"no such queue, but a similar one": {
			Verdict{Reason: v1alpha1.ReasonQueueNotFound, Name: "reserch", Detail: `did you mean "research"?`},
			`queue "reserch" does not exist (did you mean "research"?); create it or name another queue`,
		},
		"no such group": {
			Verdict{Reason: v1alpha1.ReasonGroupNotFound, Name: "g"},
			`PodGroup "g" does not exist in the namespace of the pod; create it or correct the label scheduling.batch-scheduler.dev/pod-group`,
		},
		"no group yet": {
			Verdict{Reason: v1alpha1.ReasonGroupNotFound, Group: &GroupReference{API: "KAI Scheduler (scheduling.run.ai)", Field: "annotation pod-group-name"}},
			"the pod has no annotation pod-group-name, in which the pod-grouper of KAI Scheduler (scheduling.run.ai) names its group",
		},
		"no such group, by annotation": {
			Verdict{Reason: v1alpha1.ReasonGroupNotFound, Name: "g", Group: &GroupReference{Field: "annotation scheduling.k8s.io/group-name", Name: "g"}},
			`PodGroup "g" does not exist in the namespace of the pod; create it or correct the annotation scheduling.k8s.io/group-name (PodGroups of kube-batch and Volcano do not count)`,
		},
		"a group of another API": {
			Verdict{Reason: v1alpha1.ReasonUnsupportedPodGroupAPI, Group: &GroupReference{
				API: "scheduler-plugins (scheduling.x-k8s.io)", Field: "label scheduling.x-k8s.io/pod-group", Name: "train",
			}},
			`the label scheduling.x-k8s.io/pod-group names group "train" of scheduler-plugins (scheduling.x-k8s.io), which this scheduler does not support; ` +
				`create a PodGroup of scheduling.batch-scheduler.dev and name it with the label scheduling.batch-scheduler.dev/pod-group`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.verdict.Message(dims); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestNodeCounts(t *testing.T) {
	var c NodeCounts
	for _, unfit := range []*Unfit{nil, {Reason: Insufficient, Detail: "memory"}, {Reason: Insufficient, Detail: "cpu"}, {Reason: Taint, Detail: "b"}, {Reason: Insufficient, Detail: "cpu"}, {Reason: Taint, Detail: "a"}, nil} {
		c.Count(unfit)
	}
	c.Sort()
	want := "2/7 nodes are available: 2 Insufficient cpu, 1 Insufficient memory, 1 node(s) had untolerated taint {a}, 1 node(s) had untolerated taint {b}"
	if got := c.message(); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestSuitable(t *testing.T) {
	cases := map[string]struct {
		unfit []*Unfit
		want  bool
	}{
		"no nodes":                       {nil, false},
		"an available node":              {[]*Unfit{nil, {Reason: Taint, Detail: "a"}}, true},
		"a label that is on no node":     {[]*Unfit{{Reason: TopologySpread, Detail: "node(s) didn't match pod topology spread constraints (missing required label)", Fixed: true}}, false},
		"a full node":                    {[]*Unfit{{Reason: Taint, Detail: "a"}, {Reason: Insufficient, Detail: "cpu"}}, true},
		"a node whose port is taken":     {[]*Unfit{{Reason: HostPortTaken, Detail: ""}}, true},
		"a node where neighbours object": {[]*Unfit{{Reason: PodAffinity, Detail: "x"}}, true},
		"nodes that will never do":       {[]*Unfit{{Reason: Taint, Detail: "a"}, {Reason: NodeSelector, Detail: ""}, {Reason: NodeNotReady, Detail: ""}, {Reason: NodeUnschedulable, Detail: ""}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var c NodeCounts
			for _, unfit := range tc.unfit {
				c.Count(unfit)
			}
			if got := c.Suitable(); got != tc.want {
				t.Errorf("suitable: %t", got)
			}
		})
	}
}

// awaited are pods with these names that a job in namespace ns waits for.
func awaited(keys ...string) (a AwaitedPods) {
	for _, key := range keys {
		namespace, _, _ := strings.Cut(key, "/")
		a.Add(&TaskInfo{Key: key, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}}, &JobInfo{Namespace: "ns"})
	}
	return a
}

// others are pods with these requests, in thousandths of a cpu.
func others(cpu ...int64) OtherPods {
	var o OtherPods
	for _, n := range cpu {
		o.Add(Resource{n})
	}
	return o
}
