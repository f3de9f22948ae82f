// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reclaim_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestReclaim asserts what reclaim evicts for a queue. The numbers are those of the acceptance list.
func TestReclaim(t *testing.T) {
	Cases{
		"S9: only queues above what they deserve lose pods": {
			Given: Given(Node("n1", "12cpu"), Queue("q1", 1), Queue("q2", 1), Queue("q3", 1),
				Group("q1/a", 1, Running(6, "1cpu", "n1")),
				Group("q2/b", 1, Running(4, "1cpu", "n1")),
				Group("q3/c", 1, Running(2, "1cpu", "n1")),
				Group("q3/d", 2, Pending(2, "1cpu"))),
			Want: `evict q1/a-4 for q3/d
			       evict q1/a-5 for q3/d
			       pipeline q3/d-0 n1
			       pipeline q3/d-1 n1`,
		},
		"S20: a gang that borrows is evicted for what other queues deserve": {
			Given: Given(Node("n1", "10cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/gang", 10, Running(10, "1cpu", "n1")),
				Group("t/one", 1, Pending(1, "1cpu"))),
			Want: `evict g/gang-0 for t/one
			       evict g/gang-1 for t/one
			       evict g/gang-2 for t/one
			       evict g/gang-3 for t/one
			       evict g/gang-4 for t/one
			       evict g/gang-5 for t/one
			       evict g/gang-6 for t/one
			       evict g/gang-7 for t/one
			       evict g/gang-8 for t/one
			       evict g/gang-9 for t/one
			       pipeline t/one-0 n1`,
		},
		"a gang that is evicted does not evict for its remaining members": {
			Given: Given(Node("n1", "4Gi 2gpu"), Queue("a", 1), Queue("b", 1), Queue("c", 1),
				Group("a/gang", 2, Running(2, "2Gi", "n1"), Pending(1, "1gpu")),
				Group("b/one", 1, Pending(1, "2Gi")),
				Group("c/gpus", 1, Running(1, "2gpu", "n1"))),
			Want: `evict a/gang-0 for b/one
			       evict a/gang-1 for b/one
			       pipeline b/one-0 n1`,
		},
		"S23: a queue that holds more than it deserves of the insufficient resource is the victim": {
			Given: Given(Node("n1", "24cpu 6gpu"), Queue("g", 1), Queue("z", 1), Queue("t", 1),
				Group("g/cpus", 1, Running(17, "1cpu", "n1"), Running(1, "1cpu 1gpu", "n1")),
				Group("z/gpus", 1, Running(4, "0.1cpu 1gpu", "n1")),
				Group("t/one", 1, Running(1, "1cpu 1gpu", "n1"), Pending(1, "1cpu 1gpu"))),
			Want: `evict z/gpus-3 for t/one
			       pipeline t/one-1 n1`,
		},
		"no queue loses pods below its guarantee": {
			Given: Given(Node("n1", "4cpu"), Queue("g", 1, Guarantee("4cpu")), Queue("t", 1),
				Group("g/a", 1, Running(4, "1cpu", "n1")),
				Group("t/one", 1, Pending(1, "1cpu"))),
			Want: ``,
		},
		"a queue that is not reclaimable loses no pods": {
			Given: Given(Node("n1", "4cpu"), Queue("g", 1, NotReclaimable()), Queue("t", 1),
				Group("g/a", 1, Running(4, "1cpu", "n1")),
				Group("t/one", 1, Pending(1, "1cpu"))),
			Want: ``,
		},
		"pods without a PodGroup do not evict each other": {
			Given: Given(Node("n1", "2cpu"), Queue("default", 1),
				ReplicaSet("a", Running(2, "1cpu", "n1")),
				Group("default/b", 1, Pending(1, "1cpu"))),
			Want: ``,
		},
		"reclaim fills a guarantee, and no more": {
			// What t deserves beyond its guarantee is less than a pod.
			Given: Given(Node("n1", "10cpu"), Queue("g", 99), Queue("t", 1, Guarantee("4cpu")),
				Group("g/a", 1, Running(8, "1cpu", "n1")),
				Group("t/b", 1, Running(2, "1cpu", "n1"), Pending(8, "1cpu"))),
			Want: `evict g/a-6 for t/b
			       evict g/a-7 for t/b
			       pipeline t/b-2 n1
			       pipeline t/b-3 n1`,
		},
		"guarantees that exceed the cluster are scaled down, for victim queues too": {
			Given: Given(Node("n1", "4cpu"), Queue("g", 1, Guarantee("4cpu")), Queue("t", 1, Guarantee("4cpu")),
				Group("g/a", 1, Running(4, "1cpu", "n1")),
				Plain("b", OfQueue("t"), Pending(4, "1cpu"))),
			Want: `evict g/a-2 for b-1
			       evict g/a-3 for b-0
			       pipeline b-0 n1
			       pipeline b-1 n1`,
		},
		"a gang is not evicted if its queue would fall below its guarantee": {
			Given: Given(Node("n1", "8cpu"), Queue("g", 1, Guarantee("4cpu")), Queue("t", 9),
				Group("g/gang", 6, Running(6, "1cpu", "n1")),
				Group("t/b", 1, Running(2, "1cpu", "n1"), Pending(8, "1cpu"))),
			Want: ``,
		},
		"a gang reclaims from two queues": {
			Given: Given(Node("n1", "12cpu"), Queue("q1", 1), Queue("q2", 1), Queue("t", 1),
				Group("q1/a", 1, Running(6, "1cpu", "n1")),
				Group("q2/b", 1, Running(6, "1cpu", "n1")),
				Group("t/gang", 4, Pending(4, "1cpu"))),
			Want: `evict q1/a-4 for t/gang
			       evict q1/a-5 for t/gang
			       evict q2/b-4 for t/gang
			       evict q2/b-5 for t/gang
			       pipeline t/gang-0 n1
			       pipeline t/gang-1 n1
			       pipeline t/gang-2 n1
			       pipeline t/gang-3 n1`,
		},
		"single pods reclaim from two queues in one cycle": {
			Given: Given(Node("n1", "12cpu"), Queue("q1", 1), Queue("q2", 1), Queue("t", 1),
				Group("q1/a", 1, Running(6, "1cpu", "n1")),
				Group("q2/b", 1, Running(6, "1cpu", "n1")),
				Plain("single", OfQueue("t"), Pending(9, "1cpu"))),
			Want: `evict q1/a-4 for single-2
			       evict q1/a-5 for single-0
			       evict q2/b-4 for single-3
			       evict q2/b-5 for single-1
			       pipeline single-0 n1
			       pipeline single-1 n1
			       pipeline single-2 n1
			       pipeline single-3 n1`,
		},
		"a large pod reclaims from two queues on one node": {
			Given: Given(Node("n1", "4cpu"), Node("n2", "8cpu"), Queue("q1", 1), Queue("q2", 1), Queue("t", 1),
				Group("q1/a", 1, Running(2, "1cpu", "n1"), Running(4, "1cpu", "n2")),
				Group("q2/b", 1, Running(2, "1cpu", "n1"), Running(4, "1cpu", "n2")),
				Group("t/big", 1, Pending(1, "4cpu", NodeSelector(v1.LabelHostname, "n1")))),
			Want: `evict q1/a-0 for t/big
			       evict q1/a-1 for t/big
			       evict q2/b-0 for t/big
			       evict q2/b-1 for t/big
			       pipeline t/big-0 n1`,
		},
		"a queue that is not reclaimable loses pods for the guarantee of another": {
			Given: Given(Node("n1", "8cpu"), Queue("g", 1, NotReclaimable()), Queue("t", 1, Guarantee("2cpu")),
				Group("g/a", 1, Running(8, "1cpu", "n1")),
				Plain("b", OfQueue("t"), Pending(8, "1cpu"))),
			Want: `evict g/a-6 for b-1
			       evict g/a-7 for b-0
			       pipeline b-0 n1
			       pipeline b-1 n1`,
		},
		"a queue that is not reclaimable loses no more once the other holds its guarantee": {
			Given: Given(Node("n1", "8cpu"), Queue("g", 1, NotReclaimable()), Queue("t", 1, Guarantee("2cpu")),
				Group("g/a", 1, Running(6, "1cpu", "n1")),
				Group("t/b", 1, Running(2, "1cpu", "n1"), Pending(8, "1cpu"))),
			Want: ``,
		},
		"a queue that is not reclaimable loses no pods if other queues have borrowed on other nodes": {
			Given: Given(Nodes(2, "n", "5cpu"), Queue("never", 1, NotReclaimable()), Queue("g", 1), Queue("t", 1, Guarantee("1cpu")),
				Group("never/a", 1, Running(4, "1cpu", "n1")),
				Group("g/b", 1, Running(5, "1cpu", "n2")),
				Group("t/c", 1, Running(1, "1cpu", "n1"), Pending(9, "1cpu", NodeSelector(v1.LabelHostname, "n1")))),
			Want: ``,
		},
		"a queue that is not reclaimable loses no pods for a gang that is larger than the guarantee": {
			Given: Given(Node("n1", "8cpu"), Queue("g", 1, NotReclaimable()), Queue("t", 1, Guarantee("2cpu")),
				Group("g/a", 1, Running(8, "1cpu", "n1")),
				Group("t/gang", 3, Pending(3, "1cpu"))),
			Want: ``,
		},
		"a queue that is not reclaimable loses no pods for a guarantee of another resource": {
			Given: Given(Node("n1", "8cpu 8Gi"), Queue("g", 1, NotReclaimable()), Queue("t", 1, Guarantee("4Gi")),
				Group("g/a", 1, Running(8, "1cpu", "n1")),
				Group("t/b", 1, Pending(2, "1cpu 1Gi"))),
			Want: ``,
		},
		"reclaimable queues lose pods first": {
			Given: Given(Node("n1", "9cpu"), Queue("never", 1, NotReclaimable()), Queue("g", 1), Queue("t", 1, Guarantee("2cpu")),
				Group("never/a", 1, Running(6, "1cpu", "n1")),
				Group("g/b", 1, Running(3, "1cpu", "n1")),
				Plain("c", OfQueue("t"), Pending(9, "1cpu"))),
			Want: `evict g/b-2 for c-0
			       evict never/a-5 for c-1
			       pipeline c-0 n1
			       pipeline c-1 n1`,
		},
		"system pods are not evicted, by namespace": {
			Given: Given(Node("n1", "2cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/dns", 1, In("kube-system"), Running(2, "1cpu", "n1")),
				Group("t/b", 1, Pending(1, "1cpu"))),
			Want: ``,
		},
		"system pods are not evicted, by priority class, and neither is their gang": {
			Given: Given(Node("n1", "4cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/gang", 4, Running(3, "1cpu", "n1"), Running(1, "1cpu", "n1", SystemCritical())),
				Group("t/b", 1, Pending(1, "1cpu"))),
			Want: ``,
		},
		"static pods and pods of DaemonSets are not evicted": {
			Given: Given(Node("n1", "4cpu"), Queue("default", 1), Queue("t", 1),
				Plain("web", Running(2, "1cpu", "n1")),
				Plain("static", Running(1, "1cpu", "n1", StaticPod())),
				Plain("agent", Running(1, "1cpu", "n1", OfDaemonSet())),
				Group("t/b", 1, Pending(2, "2cpu"))),
			Want: `evict web-0 for t/b
			       evict web-1 for t/b
			       pipeline t/b-0 n1`,
		},
		"pods of DaemonSets are not evicted, and no other pod is evicted without use": {
			Given: Given(Node("n1", "3cpu"), Queue("default", 1), Queue("t", 3),
				Plain("agent", Running(2, "1cpu", "n1", OfDaemonSet())),
				Plain("web", Running(1, "1cpu", "n1")),
				Group("t/b", 1, Pending(1, "2cpu"))),
			Want: ``,
		},
		"pods on a node that is not ready are not victims": {
			Given: Given(Node("n1", "2cpu", NotReady()), Node("n2", "2cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/a", 1, Running(2, "1cpu", "n1"), Running(2, "1cpu", "n2")),
				Group("t/b", 1, Pending(1, "1cpu"))),
			Want: `evict g/a-3 for t/b
			       pipeline t/b-0 n2`,
		},
		"pods on a node that is not ready are not victims if there are no others": {
			Given: Given(Node("n1", "2cpu", NotReady()), Node("n2", "1cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/a", 1, Running(2, "1cpu", "n1")),
				Group("t/b", 1, Running(1, "1cpu", "n2"), Pending(1, "1cpu"))),
			Want: ``,
		},
	}.TestTranscripts(t, WithConfig(AllActions))
}
