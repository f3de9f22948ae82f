// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package proportion_test

import (
	"testing"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestProportion asserts how many pods of each PodGroup one cycle binds, where the shares of queues decide.
func TestProportion(t *testing.T) {
	Cases{
		"by weight": {
			Given: Given(
				Nodes(2, "n", "6cpu"), Queue("one", 1), Queue("three", 3),
				Group("one/a", 1, Pending(12, "1cpu")),
				Group("three/b", 1, Pending(12, "1cpu")),
			),
			Want: "a 3, b 9",
		},
		"what a queue does not request is lent": {
			Given: Given(
				Node("n1", "12cpu"), Queue("q1", 1), Queue("q2", 1),
				Group("q1/a", 1, Pending(2, "1cpu")),
				Group("q2/b", 1, Pending(12, "1cpu")),
			),
			Want: "a 2, b 10",
		},
		"a gang that can never fit does not reduce the shares of others": {
			Given: Given(
				Node("n1", "10cpu"), Queue("q1", 1), Queue("q2", 1), Queue("q3", 1),
				Group("q1/a", 1, Pending(10, "1cpu")),
				Group("q2/b", 1, Pending(10, "1cpu")),
				Group("q3/never", 20, Pending(20, "1cpu")),
			),
			Want: "a 5, b 5",
		},
		"a gang that fits no topology domain does not reduce the shares of others": {
			Given: Given(
				Nodes(2, "a", "2cpu", Label("rack", "a")), Nodes(2, "b", "2cpu", Label("rack", "b")), Queue("mine", 1, NotReclaimable()), Queue("theirs", 1),
				Group("mine/a", 1, Pending(8, "1cpu")),
				Group("theirs/never", 3, Label("app", "mpi"), Near("rack", "app=mpi"), Pending(3, "2cpu")),
			),
			Want: "a 8",
		},
		"a gang that alone exceeds the capability of its queue does not reduce the shares of others": {
			Given: Given(
				Node("n1", "12cpu"), Queue("mine", 1, NotReclaimable()), Queue("theirs", 1, Capability("8cpu")),
				Group("mine/a", 1, Pending(12, "1cpu")),
				Group("theirs/never", 6, Pending(1, "1cpu"), Pending(5, "2cpu")),
			),
			Want: "a 12",
		},
		"gated pods request nothing": {
			Given: Given(
				Node("n1", "10cpu"), Queue("q1", 1), Queue("q2", 1), Queue("q3", 1),
				Group("q1/a", 1, Pending(10, "1cpu")),
				Group("q2/b", 1, Pending(10, "1cpu")),
				Group("q3/gated", 1, Gated(10, "1cpu")),
			),
			Want: "a 5, b 5",
		},
		"pods that name a group of another API do not start and request nothing": {
			Given: Given(
				Node("n1", "10cpu"), Queue("q1", 1), Queue("q2", 1), Queue("q3", 1),
				Group("q1/a", 1, Pending(10, "1cpu")),
				Group("q2/b", 1, Pending(10, "1cpu")),
				Plain("other", OfQueue("q3"), Label("scheduling.x-k8s.io/pod-group", "other"), Pending(10, "1cpu")),
			),
			Want: "a 5, b 5",
		},
		"a node with a taint that no pod tolerates does not count": {
			Given: Given(
				Nodes(3, "n", "10cpu"), Node("tainted", "10cpu", Taint("dedicated=infra:NoSchedule")),
				Queue("q1", 1), Queue("q2", 1),
				Group("q1/a", 1, Pending(40, "1cpu")),
				Group("q2/b", 1, Pending(40, "1cpu")),
			),
			Want: "a 15, b 15",
		},
		"guarantees are served before weights": {
			Given: Given(
				Node("n1", "12cpu"), Queue("q1", 5), Queue("q2", 1, Guarantee("6cpu")),
				Group("q1/a", 1, Pending(12, "1cpu")),
				Group("q2/b", 1, Pending(12, "1cpu")),
			),
			Want: "a 5, b 7",
		},
		"a capability is never exceeded": {
			Given: Given(
				Node("n1", "12cpu"), Queue("q", 1, Capability("5cpu")),
				Group("q/a", 1, Pending(12, "1cpu")),
			),
			Want: "a 5",
		},
		"pods that are being deleted count against a capability": {
			Given: Given(
				Node("n1", "12cpu"), Queue("q", 1, Capability("5cpu")),
				Group("q/a", 1, Releasing(2, "1cpu", "n1"), Pending(12, "1cpu")),
			),
			Want: "a 3",
		},
		"a queue that is not reclaimable does not borrow": {
			Given: Given(
				Node("n1", "12cpu"), Queue("q1", 1), Queue("q2", 1, NotReclaimable()),
				Group("q1/a", 4, Pending(4, "1cpu", NodeSelector("no", "node"))),
				Group("q2/b", 1, Pending(12, "1cpu")),
			),
			Want: "b 12",
		},
		"the insufficient dimension decides which queue is first": {
			// Both queues deserve 2 of 4 GPUs. The queue holder has all the cpus that it deserves, but no GPU;
			// cpus are sufficient, so it gets GPUs before any queue borrows.
			Given: Given(
				Node("cpus", "40cpu"), Node("gpus", "8cpu 4gpu"),
				Queue("holder", 1), Queue("other", 1),
				Group("holder/cpus", 1, Running(20, "1cpu", "cpus")),
				Group("holder/a", 1, Pending(4, "1cpu 1gpu")),
				Group("other/b", 1, Pending(4, "1cpu 1gpu")),
			),
			Want: "a 2, b 2",
		},
		"the pending pods of a gang count while its other members are being deleted": {
			Given: Given(
				Node("n1", "12cpu 4Gi"),
				Queue("q", 1, NotReclaimable()), Queue("r", 1),
				Group("q/a", 1, Pending(12, "1cpu")),
				Group("r/gang", 2, Releasing(1, "1Gi", "n1"), Pending(1, "6cpu")),
			),
			Want: "a 6",
		},
	}.TestBinds(t)
}
