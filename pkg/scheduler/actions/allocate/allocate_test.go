// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package allocate_test

import (
	"testing"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestAllocate asserts what allocate decides in one cycle of the built-in policy. The numbers are those of the acceptance list.
func TestAllocate(t *testing.T) {
	Cases{
		"S1: a gang that does not fit reserves nothing from the next job": {
			Given: Given(
				Node("n1", "10cpu"),
				Queue("q", 1),
				Group("q/gang", 3, Pending(3, "4cpu")),
				Group("q/small", 1, Pending(1, "3cpu")),
			),
			Want: `bind q/small-0 n1`,
		},
		"S1: a job that does not fit reserves nothing from the next gang": {
			Given: Given(
				Node("n1", "10cpu"),
				Queue("q", 1),
				Group("q/big", 1, Pending(1, "11cpu")),
				Group("q/gang", 3, Pending(3, "3cpu")),
			),
			Want: `bind q/gang-0 n1
			       bind q/gang-1 n1
			       bind q/gang-2 n1`,
		},
		"S2: a queue that requests little gets it, and the other queue gets the rest": {
			Given: Given(
				Node("n1", "6cpu hugepages-2Mi=0 1gpu"),
				Node("n2", "6cpu"),
				Queue("q1", 1), Queue("q2", 1),
				Group("q1/small", 1, Pending(1, "1cpu")),
				Group("q2/big", 1, Pending(12, "1cpu")),
			),
			Want: `bind q1/small-0 n2
			       bind q2/big-0 n2
			       bind q2/big-1 n2
			       bind q2/big-2 n2
			       bind q2/big-3 n2
			       bind q2/big-4 n2
			       bind q2/big-5 n1
			       bind q2/big-6 n1
			       bind q2/big-7 n1
			       bind q2/big-8 n1
			       bind q2/big-9 n1
			       bind q2/big-10 n1`, // n1 has a GPU, which no pod requests
		},
		"S5: a running pod on an unknown node does not affect others": {
			Given: Given(
				Queue("q", 1),
				MissingNode("ghost"),
				Group("q/old", 1, Running(1, "1cpu", "ghost")),
				Node("n1", "2cpu"),
				Group("q/new", 1, Pending(1, "2cpu")),
			),
			Want: `bind q/new-0 n1`,
		},
		"S5: a running pod on an overcommitted node does not affect others": {
			Given: Given(
				Node("n1", "1cpu"), Node("n2", "1cpu"),
				Queue("q", 1),
				Group("q/old", 1, Running(3, "1cpu", "n1")),
				Group("q/new", 1, Pending(1, "1cpu")),
			),
			Want: `bind q/new-0 n2`,
		},
		"S5: a node that is overcommitted in one dimension is available for pods that do not request it": {
			Given: Given(
				Node("n1", "1cpu 1Gi"),
				Queue("q", 1),
				Group("q/old", 1, Running(1, "2Gi", "n1")),
				Group("q/new", 1, Pending(1, "1cpu")),
			),
			Want: `bind q/new-0 n1`,
		},
		"S11: an equivalence class without a feasible node does not block the other classes of the job": {
			Given: Given(
				Node("n1", "2cpu"),
				Queue("q", 1),
				Group("q/job", 1, Pending(1, "4cpu"), Pending(1, "2cpu")),
			),
			Want: `bind q/job-1 n1`,
		},
		"S12: only the init container of a pod has requests": {
			Given: Given(
				Node("n1", "2cpu"), Node("n2", "1cpu"),
				Queue("q", 1),
				Group("q/job", 1, BestEffort(1, Init("2cpu"))),
			),
			Want: `bind q/job-0 n1`,
		},
		"S13: the request of a foreign pod counts as soon as it is bound": {
			Given: Given(
				Node("n1", "2cpu"), Node("n2", "1cpu"),
				Queue("q", 1),
				Foreign("web", Bound(1, "1cpu", "n1")),
				Group("q/job", 1, Pending(1, "2cpu")),
				Group("q/small", 1, Pending(1, "1cpu", NodeSelector("kubernetes.io/hostname", "n1"))),
			),
			Want: `bind q/small-0 n1`,
		},
		"S14: idle resources are preferred to resources that are being released": {
			Given: Given(
				Node("b", "1cpu"), Node("a", "1cpu"),
				Queue("q", 1),
				Group("q/old", 1, Releasing(1, "1cpu", "b")),
				Group("q/new", 1, Pending(1, "1cpu")),
			),
			Want: `bind q/new-0 a`,
		},
		"a gang that fits only with resources that are being released waits as a whole": {
			Given: Given(
				Node("n1", "1cpu"), Node("n2", "1cpu"),
				Queue("q", 1),
				Group("q/old", 1, Releasing(1, "1cpu", "n1")),
				Group("q/new", 2, Pending(2, "1cpu")),
				Group("q/next", 1, Pending(1, "1cpu")),
			),
			Want: `hold     q/new-0 n2
			       pipeline q/new-1 n1`,
		},
		"resources of a nominated pod are reserved from pods of at most its priority": {
			Given: Given(
				Node("a", "1cpu"), Node("z", "1cpu"), Nodes(9, "cordoned", "1cpu", Unschedulable()),
				Queue("q", 1),
				Foreign("web", Priority(1), Nominated("z"), Pending(1, "1cpu")),
				Group("q/above", 1, Priority(2), Pending(1, "1cpu")),
				Group("q/below", 1, Priority(1), Pending(1, "1cpu")),
			),
			Want: `bind q/above-0 a`,
		},
		"resources of a nominated pod are available to pods above its priority": {
			Given: Given(
				Node("n1", "1cpu"),
				Queue("q1", 1), Queue("q2", 1),
				Foreign("web", Priority(1), Nominated("n1"), Pending(1, "1cpu")),
				Group("q1/below", 1, Priority(1), Pending(1, "1cpu")),
				Group("q2/above", 1, Priority(2), Pending(1, "1cpu")),
			),
			Want: `bind q2/above-0 n1`,
		},
		"S26: required anti-affinity of a running pod excludes a pod without terms": {
			Given: Given(
				Node("n1", "8cpu"), Node("n2", "2cpu"),
				Queue("q", 1),
				Foreign("lonely", Running(1, "1cpu", "n1", Away("kubernetes.io/hostname", "app=noisy"))),
				Group("q/job", 1, Pending(1, "1cpu", Label("app", "noisy"))),
			),
			Want: `bind q/job-0 n2`,
		},
		"S26: required anti-affinity of a running pod does not exclude pods that it does not select": {
			Given: Given(
				Node("n1", "8cpu"), Node("n2", "2cpu"),
				Queue("q", 1),
				Foreign("lonely", Running(1, "1cpu", "n1", Away("kubernetes.io/hostname", "app=noisy"))),
				Group("q/job", 1, Pending(1, "1cpu", Label("app", "other"))),
			),
			Want: `bind q/job-0 n1`,
		},
	}.TestTranscripts(t)
}
