// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

const rack = "rack"

// racks are four nodes with GPUs in two racks, and two nodes without GPUs, which have one device each.
var racks = rows(
	node("g1", "64cpu 8gpu", inRack("r1")), node("g2", "64cpu 8gpu", inRack("r1")),
	node("g3", "64cpu 8gpu", inRack("r2")), node("g4", "64cpu 8gpu", inRack("r2")),
	node("c1", "16cpu"), node("c2", "16cpu"),
	deviceClass, claimTemplate, devices("c1", 1), devices("c2", 1),
)

// TestAccurateMessages creates gangs of several kinds of pods, gangs that can never start, gangs that must be in one
// rack, and gangs with resource claims, and compares what their conditions state.
func TestAccurateMessages(t *testing.T) {
	h := newHarness(t, controllers)
	h.do(racks...)
	h.start()

	// Nothing runs, and none of these gangs can start.
	h.do(
		queue("never", 1), queue("small", 1, atMost("8gpu")),
		gang("mpi", 6, set("launcher", 1, "1cpu"), set("worker", 5, "4cpu 8gpu"), in("never")),
		gang("large", 1, pods(1, "4cpu 16gpu"), in("never")),
		gang("racked", 3, pods(3, "4cpu 8gpu", inOneRack("racked")), in("never")),
		gang("capped", 10, pods(10, "1cpu 1gpu"), in("small")),
	)
	h.awaitWhy(map[string]string{
		"mpi": "ExceedsClusterCapacity: needs 5 more pods of 8 nvidia.com/gpu + 4 cpu, 4 of them could start now, and 1 pod of 1 cpu; 4/6 nodes are available: 2 without nvidia.com/gpu; " +
			"would not fit the empty nodes (at most 5 of 6 pods)",
		"large": "ExceedsClusterCapacity: needs 1 more pod of 16 nvidia.com/gpu + 4 cpu; 0/6 nodes are available: 4 Insufficient nvidia.com/gpu, 2 without nvidia.com/gpu; " +
			"would not fit the empty nodes: a pod requests 16 nvidia.com/gpu, the largest suitable node has 8",
		"racked": "ExceedsClusterCapacity: needs 3 more pods of 8 nvidia.com/gpu + 4 cpu in one topology domain; rack r1 has resources for 2 of 3 pods; 4/6 nodes are available: 2 without nvidia.com/gpu; " +
			"would not fit the empty nodes (at most 2 of 3 pods)",
		"capped": "ExceedsQueueCapability: exceeds the queue's capability: needs 10 nvidia.com/gpu, and queue small has a capability of 8",
	})
	h.awaitQueue("never", queueStatus{Groups: v1alpha1.QueueGroups{Pending: 3}, Pending: "37"})
	h.awaitQueue("small", queueStatus{Groups: v1alpha1.QueueGroups{Pending: 1}, Pending: "10"})

	// Each node with GPUs has a pod with half of them, and the devices are in use.
	h.do(
		gang("half", 4, set("a", 1, "1cpu 4gpu", requireOn("g1")), set("b", 1, "1cpu 4gpu", requireOn("g2")),
			set("c", 1, "1cpu 4gpu", requireOn("g3")), set("d", 1, "1cpu 4gpu", requireOn("g4"))),
		gang("holder", 2, pods(2, "1cpu", usingTemplate)),
	)
	h.awaitWhy(map[string]string{
		"half":   "Scheduled: all 4 pods that must start together have a node",
		"holder": "Scheduled: all 2 pods that must start together have a node",
	})
	h.do(
		gang("whole", 1, pods(1, "4cpu 8gpu")),
		gang("pair", 2, pods(2, "4cpu 8gpu", inOneRack("pair"))),
		gang("claims", 2, pods(2, "1cpu", usingTemplate)),
	)
	h.awaitWhy(map[string]string{
		"whole": "NotEnoughResources: needs 1 more pod of 8 nvidia.com/gpu + 4 cpu; 0/6 nodes are available: 4 Insufficient nvidia.com/gpu, 2 without nvidia.com/gpu; nearest: node g1 lacks 4 nvidia.com/gpu",
		"pair": "NotEnoughResources: needs 2 more pods of 8 nvidia.com/gpu + 4 cpu in one topology domain; rack r1 has resources for 0 of 2 pods; 0/6 nodes are available: 4 Insufficient nvidia.com/gpu, 2 without nvidia.com/gpu; " +
			"nearest: node g1 lacks 4 nvidia.com/gpu",
		"claims": "NotEnoughResources: needs 2 more pods of 1 cpu + 1 device of class gpu; 0/6 nodes are available: 4 without deviceclass.resource.kubernetes.io/gpu, 2 Insufficient deviceclass.resource.kubernetes.io/gpu; nearest: node c1 lacks 1 deviceclass.resource.kubernetes.io/gpu",
	})

	// All nodes with GPUs are cordoned.
	for _, name := range []string{"g1", "g2", "g3", "g4"} {
		h.do(patchNode(name, `{"spec":{"unschedulable":true}}`))
	}
	h.awaitWhy(map[string]string{
		"whole": "Unschedulable: needs 1 more pod of 8 nvidia.com/gpu + 4 cpu; 0/6 nodes are available: 4 node(s) were unschedulable, 2 without nvidia.com/gpu",
	})
}

// awaitWhy waits until the conditions of jobs state the given reasons and messages.
func (h *harness) awaitWhy(want map[string]string) {
	h.t.Helper()
	if err := h.await(func() error {
		got := map[string]string{}
		for job := range want {
			got[job] = h.view.why(job)
		}
		return differ(want, got)
	}); err != nil {
		h.t.Error(err)
	}
}

func inRack(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[rack] = name }
}

// inOneRack requires the pods of a gang to be in one rack.
func inOneRack(gang string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: rack, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelPodGroup: gang}}},
		}}}
	}
}
