// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preempt_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// ofReplicaSet gives a pod a controller.
var ofReplicaSet = Mutate(func(p *v1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: ptr.To(true)}}
})

// ofOneAge gives pods the same creation time.
var ofOneAge = Mutate(func(p *v1.Pod) { p.CreationTimestamp = metav1.Unix(1_700_000_000, 0) })

// TestVictims asserts which victims preempt chooses. The numbers are those of the acceptance list.
func TestVictims(t *testing.T) {
	Cases{
		"S6: one surplus pod is evicted for one cpu": {
			Given: Given(Node("n1", "3cpu"), Queue("q", 1),
				Group("q/low", 2, Running(3, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/low-2 for q/high
			       pipeline q/high-0 n1`,
		},
		"S6: for two cpus the whole gang is evicted": {
			Given: Given(Node("n1", "3cpu"), Queue("q", 1),
				Group("q/low", 2, Running(3, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "2cpu", Priority(9)))),
			Want: `evict q/low-0 for q/high
			       evict q/low-1 for q/high
			       evict q/low-2 for q/high
			       pipeline q/high-0 n1`,
		},
		"S6: for three cpus the whole gang is evicted": {
			Given: Given(Node("n1", "3cpu"), Queue("q", 1),
				Group("q/low", 2, Running(3, "1cpu", "n1", Priority(1))),
				Group("q/high", 3, Pending(3, "1cpu", Priority(9)))),
			Want: `evict q/low-0 for q/high
			       evict q/low-1 for q/high
			       evict q/low-2 for q/high
			       pipeline q/high-0 n1
			       pipeline q/high-1 n1
			       pipeline q/high-2 n1`,
		},
		"S7: two cpus are idle and two evictable, a task requests three": {
			Given: Given(Node("n1", "4cpu"), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/b", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "3cpu", Priority(9)))),
			Want: `evict q/b-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"of equal pods on a node, the one that its controller creates again is evicted": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu", "n1", Priority(1), ofOneAge, ofReplicaSet)),
				Group("q/b", 1, Running(1, "1cpu", "n1", Priority(1), ofOneAge)),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/a-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"of equal candidates, the one whose controller creates it again is evicted": {
			Given: Given(Nodes(2, "n", "1cpu"), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu", "n1", Priority(1), ofOneAge)),
				Group("q/b", 1, Running(1, "1cpu", "n2", Priority(1), ofOneAge, ofReplicaSet)),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/b-0 for q/high
			       pipeline q/high-0 n2`,
		},
		"a controller does not outweigh a lower priority": {
			Given: Given(Nodes(2, "n", "1cpu"), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu", "n1", Priority(1), ofOneAge)),
				Group("q/b", 1, Running(1, "1cpu", "n2", Priority(2), ofOneAge, ofReplicaSet)),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/a-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"S8: idle resources on another node": {
			Given: Given(Node("n1", "1cpu"), Node("n2", "1cpu"), Queue("q", 1),
				Group("q/low", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: `bind q/high-0 n2`,
		},
		"S8: victims can never cover one dimension": {
			Given: Given(Node("n1", "4cpu 1gpu"), Queue("q", 1),
				Group("q/low", 1, Running(4, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu 2gpu", Priority(9)))),
			Want: ``,
		},
		"S16: equal gangs that cannot both run": {
			Given: Given(Node("n1", "4cpu"), Queue("q", 1),
				Group("q/a", 4, Running(4, "1cpu", "n1")),
				Group("q/b", 4, Pending(4, "1cpu"))),
			Want: ``,
		},
		"S19: a task that fits idle resources evicts no pod, in whatever dimension shares are equal": {
			Given: Given(Node("n1", "10cpu 10Gi"), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu 5Gi", "n1"), Pending(1, "2cpu")),
				Group("q/b", 1, Running(1, "1cpu 5Gi", "n1"), Pending(1, "2cpu")),
				Group("q/c", 1, Running(6, "1cpu", "n1"))),
			Want: `bind q/a-1 n1`,
		},
		"preemptionPolicy Never": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/low", 1, Running(2, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9), Mutate(func(p *v1.Pod) {
					never := v1.PreemptNever
					p.Spec.PreemptionPolicy = &never
				})))),
			Want: ``,
		},
		"a job whose members are being bound is not evicted": {
			Given: Given(Node("n1", "2cpu"), Node("n2", "0.5cpu"), Queue("q", 1),
				Group("q/low", 1, Running(1, "1cpu", "n1", Priority(1)), Pending(1, "0.5cpu", Priority(1))),
				Group("q/high", 1, Pending(1, "2cpu", Priority(9)))),
			Want: `bind q/low-1 n1`,
		},
		"a pod with a host port that a victim holds": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/low", 1, Running(1, "2cpu", "n1", Priority(1), HostPort(80))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9), HostPort(80)))),
			Want: `evict q/low-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"a disruption budget permits one eviction, and another pod is evicted instead of the second": {
			Given: Given(Node("n1", "4cpu"), Queue("q", 1), Budget("b", 1, "app", "x"),
				Group("q/a", 1, Running(3, "1cpu", "n1", Priority(1), Label("app", "x"))),
				Group("q/b", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/high", 2, Pending(2, "1cpu", Priority(9)))),
			Want: `evict q/a-2 for q/high
			       evict q/b-0 for q/high
			       pipeline q/high-0 n1
			       pipeline q/high-1 n1`,
		},
		"a gang under a disruption budget that permits one eviction is not evicted": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1), Budget("b", 1, "app", "x"),
				Group("q/a", 2, Running(2, "1cpu", "n1", Priority(1), Label("app", "x"))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: ``,
		},
		"pods under two budgets are never evicted": {
			Given: Given(Node("n1", "1cpu"), Queue("q", 1), Budget("b", 9, "app", "x"), Budget("c", 9, "app", "x"),
				Group("q/a", 1, Running(1, "1cpu", "n1", Priority(1), Label("app", "x"))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: ``,
		},
		"only a host port conflicts": {
			Given: Given(Node("n1", "4cpu"), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/b", 1, Running(1, "1cpu", "n1", Priority(1), HostPort(80))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9), HostPort(80)))),
			Want: `evict q/b-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"only the anti-affinity of a running pod conflicts": {
			Given: Given(Node("n1", "4cpu", Label("kubernetes.io/hostname", "n1")), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/b", 1, Running(1, "1cpu", "n1", Priority(1), Away("kubernetes.io/hostname", "app=x"))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9), Label("app", "x")))),
			Want: `evict q/b-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"only the capability of the queue is insufficient": {
			Given: Given(Node("n1", "2cpu"), Node("n2", "2cpu"), Queue("q", 1, Capability("2cpu")),
				Group("q/low", 1, Running(2, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/low-1 for q/high
			       pipeline q/high-0 n2`,
		},
		"a gang with required affinity to itself preempts in the domain with the most available resources": {
			Given: Given(Node("n1", "2cpu", Label("rack", "a")), Node("n2", "2cpu", Label("rack", "a")),
				Node("n3", "2cpu", Label("rack", "b")), Node("n4", "2cpu", Label("rack", "b")), Queue("q", 1),
				Group("q/a", 1, Running(2, "1cpu", "n1", Priority(1)), Running(2, "1cpu", "n2", Priority(1))),
				Group("q/b", 1, Running(2, "1cpu", "n3", Priority(1)), Running(1, "1cpu", "n4", Priority(1))),
				Group("q/high", 3, Pending(3, "1cpu", Priority(9), Label("app", "x"), Near("rack", "app=x")))),
			Want: `evict q/b-1 for q/high
			       evict q/b-2 for q/high
			       hold q/high-0 n4
			       pipeline q/high-1 n4
			       pipeline q/high-2 n3`,
		},
		"surplus is evicted before a gang of the same priority": {
			Given: Given(Node("n1", "1cpu"), Node("n2", "2cpu"), Queue("q", 1),
				Group("q/young", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/old", 1, Running(2, "1cpu", "n2", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/old-1 for q/high
			       pipeline q/high-0 n2`,
		},
		"a gang of low priority is evicted before surplus of higher priority": {
			Given: Given(Node("n1", "1cpu"), Node("n2", "2cpu"), Queue("q", 1),
				Group("q/low", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/mid", 1, Running(2, "1cpu", "n2", Priority(2))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/low-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"if surplus of higher priority must be evicted, no gang of low priority is": {
			Given: Given(Node("n1", "1cpu"), Node("n2", "3cpu"), Queue("q", 1),
				Group("q/low", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/mid", 1, Running(3, "1cpu", "n2", Priority(2))),
				Group("q/high", 2, Pending(2, "1cpu", Priority(9)))),
			Want: `evict q/mid-1 for q/high
			       evict q/mid-2 for q/high
			       pipeline q/high-0 n2
			       pipeline q/high-1 n2`,
		},
		"a job's own surplus of low priority is evicted before other jobs of higher priority": {
			Given: Given(Node("n1", "4cpu"), Queue("q", 1),
				Group("q/job", 1, Running(2, "1cpu", "n1", Priority(1)), Pending(1, "1cpu", Priority(9))),
				Group("q/other", 1, Running(2, "1cpu", "n1", Priority(5)))),
			Want: `evict q/job-1 for q/job
			       pipeline q/job-2 n1`,
		},
		"a job's own surplus of low priority is evicted for its master": {
			Given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/job", 1, Running(2, "1cpu", "n1", Priority(1)), Pending(1, "1cpu", Priority(9)))),
			Want: `evict q/job-1 for q/job
			       pipeline q/job-2 n1`,
		},
	}.TestOrderedTranscripts(t, WithConfig(AllActions))
}
