// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// threeNodes have resources for twelve 1-cpu pods: rep of the acceptance list.
var threeNodes = nodes("n", 3, "4cpu")

// The rows of the acceptance list that need neither eviction nor faults follow: A1 to A7 in
// TestWholeGangs, A8 to A12 in TestOrder, A13 to A18 in TestPlaces, A21 in TestPlainPods, A25 in
// TestRefused. A plain ReplicaSet there is one whose pods are in no PodGroup. Where it stands
// for the rest of the cluster (A3, A10), the stock kube-scheduler places it; where it competes
// in the same scheduler (A8, A9), ours does.
var (
	controllers = cluster.Options{ControllerManager: true}
	stock       = cluster.Options{ControllerManager: true, KubeScheduler: true}
)

// TestWholeGangs: a gang runs as a whole, or not at all.
func TestWholeGangs(t *testing.T) {
	play(t, map[string]scenario{
		"A1: a gang that needs all resources of the cluster runs": {
			given: rows(threeNodes, gang("a", 2, pods(12, "1cpu"))),
			step:  step{want: `a: Running Scheduled; 12 running`},
		},
		"A2: three groups that fit together run": {
			given: rows(threeNodes,
				gang("a", 2, pods(4, "1cpu")),
				gang("b", 2, pods(4, "1cpu")),
				gang("c", 2, pods(4, "1cpu"))),
			step: step{want: `
				a: Running Scheduled; 4 running
				b: Running Scheduled; 4 running
				c: Running Scheduled; 4 running`},
		},
		"A3: a gang waits as a whole for resources that others use": {
			cluster: stock,
			given:   rows(threeNodes, replicaSet("web", 7, "1cpu", byDefaultScheduler)),
			step:    step{want: `web: 7 running`},
			then: []step{{
				do: rows(gang("a", 7, pods(7, "1cpu"))),
				want: `
					a: Pending NotEnoughResources; 7 waiting Unschedulable
					web: 7 running`,
				prints: map[string]string{"a": "needs 7 more pods of 1 cpu, 5 of them could start now; 3/3 nodes are available"},
			}, {
				do:   rows(noReplicaSet("web")),
				want: `a: Running Scheduled; 7 running`,
			}},
		},
		"A4: a gang of equal priority waits and takes nothing": {
			given: rows(threeNodes,
				gang("a", 12, pods(12, "1cpu")),
				gang("b", 12, pods(12, "1cpu"))),
			step: step{
				want: `
					a: Running Scheduled; 12 running
					b: Pending NotEnoughResources; 12 waiting Unschedulable`,
				prints: map[string]string{"b": "needs 12 more pods of 1 cpu; 0/3 nodes are available: 3 Insufficient cpu"},
			},
		},
		"A7: best-effort pods are members like others": {
			given: rows(threeNodes,
				gang("a", 4, set("busy", 2, "1cpu"), set("idle", 2, "")),
				gang("b", 2, set("busy", 2, "1cpu"), set("idle", 2, ""))),
			step: step{want: `
				a: Running Scheduled; busy 2 running; idle 2 running
				b: Running Scheduled; busy 2 running; idle 2 running`},
		},
	})
}

// TestOrder: the order of jobs if the resources are insufficient for all.
func TestOrder(t *testing.T) {
	play(t, map[string]scenario{
		"A8: pods of high priority go first within a gang": {
			cluster: controllers,
			given: rows(threeNodes, priorityClass("low", 1), priorityClass("high", 100),
				replicaSet("web", 6, "1cpu")),
			step: step{want: `web: 6 running`},
			then: []step{{
				do: rows( // the group last: it starts when all its pods are there
					members("a",
						set("worker", 12, "1cpu", priority("low")),
						set("master", 1, "1cpu", priority("high"))),
					group("a", 6)),
				want: `
					a: Running Scheduled; master 1 running; worker 5 running, 7 waiting Unschedulable
					web: 6 running`,
			}},
		},
		"A9: a pod that does not fit does not keep a smaller one from running": {
			cluster: controllers,
			given: rows(threeNodes, priorityClass("low", 1), priorityClass("high", 100),
				replicaSet("web", 11, "1cpu")),
			step: step{want: `web: 11 running`},
			then: []step{{
				do: rows(gang("a", 1,
					set("big", 1, "1.5cpu", priority("high")),
					set("small", 1, "0.5cpu", priority("low")))),
				want: `
					a: Running Scheduled; big 1 waiting Unschedulable; small 1 running
					web: 11 running`,
			}},
		},
		"A10: of two pending gangs, the one of high priority runs": {
			cluster: stock,
			given: rows(threeNodes, priorityClass("low", 1), priorityClass("high", 100),
				replicaSet("web", 12, "1cpu", byDefaultScheduler)),
			step: step{want: `web: 12 running`},
			then: []step{{
				do: rows(
					gang("a", 7, pods(7, "1cpu", priority("low"))),
					gang("b", 7, pods(7, "1cpu", priority("high")))),
				want: `
					a: Pending NotEnoughResources; 7 waiting Unschedulable
					b: Pending NotEnoughResources; 7 waiting Unschedulable
					web: 12 running`,
			}, {
				do: rows(noReplicaSet("web")),
				want: `
					a: Pending NotEnoughResources; 7 waiting Unschedulable
					b: Running Scheduled; 7 running`,
			}},
		},
		"A12: queues share by weight": {
			given: rows(threeNodes, queue("q1", 1), queue("q3", 3), singles("q1", 12), singles("q3", 12)),
			step: step{want: `
				q1: 9 Pending NotEnoughResources, 3 Running Scheduled; 3 running, 9 waiting Unschedulable
				q3: 3 Pending NotEnoughResources, 9 Running Scheduled; 9 running, 3 waiting Unschedulable`},
		},
	})
}

// TestPlaces: pods go where they must, and rather where they prefer to be.
func TestPlaces(t *testing.T) {
	play(t, map[string]scenario{
		"A13: required node affinity by name is kept": {
			given: rows(threeNodes, gang("a", 3, pods(3, "1cpu", requireOn("n2")))),
			step:  step{by: corev1.LabelHostname, want: `a: Running Scheduled; 3 running (n2 3)`},
		},
		"A14: a host port is taken once on each node": {
			given: rows(threeNodes, gang("a", 3, pods(6, "1cpu", hostPort(8080)))),
			step: step{
				by:   corev1.LabelHostname,
				want: `a: Running Scheduled; 3 running, 3 waiting Unschedulable (n1 1, n2 1, n3 1)`,
			},
		},
		"A15: a gang that must stay together finds the node that holds it": {
			given: rows( // n1 and n2 are emptier, but too small
				node("n1", "3cpu"), node("n2", "3cpu"), node("n3", "8cpu"),
				plain("other", 1, "4cpu", onNode("n3")),
				gang("a", 4, pods(4, "1cpu", requireWith("a")))),
			step: step{by: corev1.LabelHostname, want: `
			a: Running Scheduled; 4 running (n3 4)
			other: 1 running (n3 1)`},
		},
		"A16: a gang waits until a taint is gone": {
			given: rows(nodes("n", 3, "4cpu", tainted("maintenance")), gang("a", 3, pods(3, "1cpu"))),
			step: step{
				want:   `a: Pending Unschedulable; 3 waiting Unschedulable`,
				prints: map[string]string{"a": "needs 3 more pods of 1 cpu; 0/3 nodes are available: 3 node(s) had untolerated taint {maintenance:NoSchedule}"},
			},
			then: []step{{
				do:   rows(untaint),
				want: `a: Running Scheduled; 3 running`,
			}},
		},
		"A17: preferred node affinity decides between equal nodes": {
			given: rows(threeNodes, gang("a", 2, pods(2, "1cpu", preferOn("n2")))),
			step:  step{by: corev1.LabelHostname, want: `a: Running Scheduled; 2 running (n2 2)`},
		},
		"A17: preferred pod affinity decides between almost equal nodes": {
			given: rows(threeNodes,
				plain("other", 1, "0.1cpu", onNode("n3")),
				gang("a", 2, pods(2, "0.1cpu", preferWith("other")))),
			step: step{by: corev1.LabelHostname, want: `
			a: Running Scheduled; 2 running (n3 2)
			other: 1 running (n3 1)`},
		},
		"A17: without preferences the emptiest node is taken": {
			given: rows(threeNodes,
				plain("other", 1, "2cpu 32Gi", onNode("n1")),
				plain("more", 1, "1cpu 16Gi", onNode("n3")),
				gang("a", 1, pods(1, "1cpu 16Gi"))),
			step: step{by: corev1.LabelHostname, want: `
			a: Running Scheduled; 1 running (n2 1)
			more: 1 running (n3 1)
			other: 1 running (n1 1)`},
		},
		"A18: a gang is spread evenly over zones of unequal capacity": {
			given: rows(
				nodes("a", 2, "16cpu", inZone("zone-a")),
				nodes("b", 1, "4cpu", inZone("zone-b")),
				nodes("c", 1, "4cpu", inZone("zone-c")),
				gang("a", 9, pods(9, "1cpu", evenly(corev1.LabelTopologyZone, "a")))),
			step: step{by: corev1.LabelTopologyZone, want: `a: Running Scheduled; 9 running (zone-a 3, zone-b 3, zone-c 3)`},
		},
	})
}

// singles are count groups of one 1-cpu pod each in a queue, shown as one job of its name.
func singles(queue string, count int) row {
	return func(h *harness) {
		for i := range count {
			gang(fmt.Sprint(queue, "-", i), 1, pods(1, "1cpu"), in(queue), labelled(queue))(h)
		}
	}
}

// TestPlainPods is A21: the scheduler takes care of what names it and nothing else.
func TestPlainPods(t *testing.T) {
	h := newHarness(t, controllers)
	h.do(threeNodes,
		plain("bare", 2, "1cpu"),
		deployment("web", 3, "1cpu"),
		batchJob("sums", 2, "1cpu", runningFor("1s")),
		plain("foreign", 1, "1cpu", func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }))
	h.start()
	h.awaitStable(`
		bare: 2 running
		foreign: 1 waiting
		sums: 2 succeeded
		web: 3 running`, "")
	h.must(h.view.invariants())

	h.do(noPods("bare"), noDeployment("web"), noBatchJob("sums"))
	h.awaitStable(`foreign: 1 waiting`, "")
	h.awaitQueue("default", queueStatus{})
}

// runningFor has a pod end by itself.
func runningFor(time string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[annotation.RunFor] = time }
}
