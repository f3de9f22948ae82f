// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preempt_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestPreempt asserts which pods of a queue preempt evicts, and which it does not.
func TestPreempt(t *testing.T) {
	Cases{
		"the pod of lowest priority is evicted, not the youngest": {
			Given: Given(Node("n1", "3cpu"), Queue("q", 1),
				Group("q/low", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/middle", 1, Running(2, "1cpu", "n1", Priority(5))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/low-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"a gang of low priority is evicted before surplus of higher priority": {
			Given: Given(Node("n1", "4cpu"), Queue("q", 1),
				Group("q/gang", 2, Running(2, "1cpu", "n1", Priority(1))),
				Group("q/surplus", 1, Running(2, "1cpu", "n1", Priority(5))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/gang-0 for q/high
			       evict q/gang-1 for q/high
			       pipeline q/high-0 n1`,
		},
		"surplus does not evict a gang": {
			Given: Given(Node("n1", "3cpu"), Queue("q", 1),
				Group("q/low", 2, Running(2, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Running(1, "1cpu", "n1", Priority(9)), Pending(1, "1cpu", Priority(9)))),
			Want: ``,
		},
		"no pod of another queue is evicted, however low its priority": {
			Given: Given(Node("n1", "4cpu"), Queue("q", 3), Queue("other", 1, NotReclaimable()),
				Group("q/a", 2, Running(2, "1cpu", "n1", Priority(9))),
				Group("other/low", 1, Running(2, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: ``,
		},
		"preemption does not raise a queue above what it deserves": {
			// The idle cpu and the two of q/low suffice for q/high, but then q would hold 5 of the 4
			// that it deserves: the other queue requests as much.
			Given: Given(Node("n1", "5cpu"), Node("n2", "3cpu"), Queue("q", 1), Queue("other", 1),
				Group("q/low", 1, Running(2, "1cpu", "n1", Priority(1))),
				Group("q/even", 2, Running(2, "1cpu", "n1", Priority(9))),
				Group("other/a", 1, Running(3, "1cpu", "n2"), Pending(5, "2cpu", NodeSelector(v1.LabelHostname, "n2"))),
				Group("q/high", 1, Pending(1, "3cpu", Priority(9)))),
			Want: ``,
		},
		"preemption is possible if the queue holds at most what it deserves afterwards": {
			Given: Given(Node("n1", "4cpu"), Node("n2", "4cpu"), Queue("q", 1), Queue("other", 1),
				Group("q/low", 1, Running(3, "1cpu", "n1", Priority(1))),
				Group("other/a", 1, Running(3, "1cpu", "n2"), Pending(5, "2cpu", NodeSelector(v1.LabelHostname, "n2"))),
				Group("q/high", 1, Pending(1, "2cpu", Priority(9)))),
			Want: `evict q/low-2 for q/high
			       pipeline q/high-0 n1`,
		},
		"a job's own surplus is not evicted if the priorities are equal": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/job", 1, Running(2, "1cpu", "n1", Priority(5)), Pending(1, "1cpu", Priority(5)))),
			Want: ``,
		},
		"a job's own surplus is not evicted if its priority is higher": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/job", 1, Running(2, "1cpu", "n1", Priority(9)), Pending(1, "1cpu", Priority(5)))),
			Want: ``,
		},
		"a job's own gang is not evicted": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/job", 2, Running(2, "1cpu", "n1", Priority(1)), Pending(1, "1cpu", Priority(9)))),
			Want: ``,
		},
		"of a job's own surplus the lowest priority is evicted": {
			Given: Given(Node("n1", "4cpu"), Queue("q", 1),
				Group("q/job", 2, Running(1, "1cpu", "n1", Priority(1)), Running(3, "1cpu", "n1", Priority(5)), Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/job-0 for q/job
			       pipeline q/job-4 n1`,
		},
		"surplus of lower priority is evicted before a job's own": {
			Given: Given(Node("n1", "4cpu"), Queue("q", 1),
				Group("q/low", 1, Running(2, "1cpu", "n1", Priority(1))),
				Group("q/job", 1, Running(2, "1cpu", "n1", Priority(5)), Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/low-1 for q/job
			       pipeline q/job-2 n1`,
		},
		"two budgets over different pods of a gang: both permit the evictions": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1), Budget("x", 1, "app", "x"), Budget("y", 1, "app", "y"),
				Group("q/gang", 2, Running(1, "1cpu", "n1", Priority(1), Label("app", "x")), Running(1, "1cpu", "n1", Priority(1), Label("app", "y"))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/gang-0 for q/high
			       evict q/gang-1 for q/high
			       pipeline q/high-0 n1`,
		},
		"two budgets over different pods of a gang: one does not permit the eviction": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1), Budget("x", 1, "app", "x"), Budget("y", 0, "app", "y"),
				Group("q/gang", 2, Running(1, "1cpu", "n1", Priority(1), Label("app", "x")), Running(1, "1cpu", "n1", Priority(1), Label("app", "y"))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: ``,
		},
		"a budget counts over all plans of a cycle": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1), Budget("x", 1, "app", "x"),
				Group("q/a", 1, Running(1, "1cpu", "n1", Priority(1), Label("app", "x"))),
				Group("q/b", 1, Running(1, "1cpu", "n1", Priority(1), Label("app", "x"))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9))),
				Group("q/higher", 1, Pending(1, "1cpu", Priority(10)))),
			Want: `evict q/b-0 for q/higher
			       pipeline q/higher-0 n1`,
		},
		"system pods are not evicted": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/dns", 1, In("kube-system"), Running(1, "1cpu", "n1", Priority(1))),
				Group("q/node", 1, Running(1, "1cpu", "n1", Priority(1), SystemCritical())),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: ``,
		},
		"static pods and pods of DaemonSets are not evicted": {
			Given: Given(Node("n1", "2cpu"), Queue("default", 1),
				Plain("static", Running(1, "1cpu", "n1", Priority(1), StaticPod())),
				Plain("agent", Running(1, "1cpu", "n1", Priority(1), OfDaemonSet())),
				Group("default/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: ``,
		},
		"a gang with a member of a DaemonSet is not evicted": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/gang", 2, Running(1, "1cpu", "n1", Priority(1)), Running(1, "1cpu", "n1", Priority(1), OfDaemonSet())),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: ``,
		},
		"no pod is evicted on a node that is not ready, even for pods that tolerate it": {
			Given: Given(Node("n1", "2cpu", NotReady()), Queue("q", 1),
				Group("q/low", 1, Running(2, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9), Tolerate("node.kubernetes.io/not-ready:NoSchedule")))),
			Want: ``,
		},
		"no pod is evicted on a node that is not feasible for the claim": {
			Given: Given(Node("n1", "1cpu", Unschedulable()), Node("n2", "1cpu", Taint("gpu=yes:NoSchedule")), Queue("q", 1),
				Group("q/low", 1, Running(1, "1cpu", "n1", Priority(1)), Running(1, "1cpu", "n2", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: ``,
		},
		"pods of other schedulers are not evicted": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Foreign("web", Running(2, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: ``,
		},
		"resources of a nominated pod of another scheduler are not available": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Foreign("web", Pending(1, "1cpu", Priority(9), Nominated("n1"))),
				Group("q/low", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "2cpu", Priority(9)))),
			Want: ``,
		},
	}.TestTranscripts(t, WithConfig(AllActions))
}
