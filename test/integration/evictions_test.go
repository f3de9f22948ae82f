// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// evictingPolicy is that of the acceptance list for rows with evictions.
const evictingPolicy = `
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`

// TestEvictions: A5, A6, A11, A22, and A4 where evictions are possible. Victims are pods
// without a controller.
func TestEvictions(t *testing.T) {
	play(t, map[string]scenario{
		"A4: a gang of equal priority takes nothing": {
			evicts: true,
			given:  rows(threeNodes, gang("a", 12, pods(12, "1cpu"))),
			step:   step{want: `a: Running Scheduled; 12 running`},
			then: []step{{
				do: rows(gang("b", 12, pods(12, "1cpu"))),
				want: `
					a: Running Scheduled; 12 running
					b: Pending NotEnoughResources; 12 waiting Unschedulable`,
			}},
		},
		"A5: surplus of high priority takes surplus of low priority": {
			evicts: true,
			given: rows(threeNodes, priorityClass("low", 1), priorityClass("high", 100),
				gang("a", 1, pods(12, "1cpu", priority("low")))),
			step: step{want: `a: Running Scheduled; 12 running`},
			then: []step{{
				do: rows(gang("b", 1, pods(12, "1cpu", priority("high")))),
				want: `
					a: Running Scheduled; 1 running
					b: Running Scheduled; 11 running, 1 waiting Unschedulable`,
			}},
		},
		"A6: equals share alike": {
			evicts: true,
			given:  rows(threeNodes, gang("a", 1, pods(12, "1cpu"))),
			step:   step{want: `a: Running Scheduled; 12 running`},
			// One job after the other: pods whose binding has not been seen yet are no victims, and others would be in their place.
			then: []step{{
				do: rows(gang("b1", 1, pods(12, "1cpu"))),
				want: `
					a: Running Scheduled; 6 running
					b1: Running Scheduled; 6 running`,
				runs: true,
			}, {
				do: rows(gang("b2", 1, pods(12, "1cpu"))),
				want: `
					a: Running Scheduled; 4 running
					b1: Running Scheduled; 4 running
					b2: Running Scheduled; 4 running`,
				runs: true,
			}},
		},
		"A11: a queue takes back what it deserves": {
			evicts: true,
			given: rows(threeNodes, queue("q1", 1), queue("q2", 1),
				gang("a", 1, pods(12, "1cpu"), in("q1"))),
			step: step{want: `a: Running Scheduled; 12 running`},
			then: []step{{
				do: rows(gang("b", 1, pods(12, "1cpu"), in("q2"))),
				want: `
					a: Running Scheduled; 6 running
					b: Running Scheduled; 6 running, 6 waiting Unschedulable`,
			}},
		},
		"a gang that cannot go on says so after a while": {
			evicts: true,
			args:   []string{"--gang-grace=1s"},
			given:  rows(nodes("n", 1, "3cpu"), gang("a", 3, pods(4, "1cpu"))),
			step:   step{want: `a: Running Scheduled; 3 running, 1 waiting Unschedulable`},
			then: []step{{
				do:     rows(group("a", 4)),
				want:   `a: Unknown GangDegraded; 3 running, 1 waiting Unschedulable`,
				prints: map[string]string{"a": "only 3 of the 4 pods that must run together have been running for more than 1s; needs 1 more pod of 1 cpu"},
				short:  "a",
			}},
		},
		"A22: a disruption budget protects its pods for as long as it is there": {
			cluster: controllers,
			evicts:  true,
			given: rows(threeNodes, priorityClass("low", 1), priorityClass("high", 100),
				budget("a", 12),
				gang("a", 1, pods(12, "1cpu", priority("low")))),
			step: step{want: `a: Running Scheduled; 12 running`},
			then: []step{{
				do: rows(gang("b", 1, pods(12, "1cpu", priority("high")))),
				want: `
					a: Running Scheduled; 12 running
					b: Pending NotEnoughResources; 11 waiting GangPending, 1 waiting Unschedulable`,
				prints: map[string]string{"b": "12 pods that could be evicted are protected by PodDisruptionBudgets"},
			}, {
				do: rows(noBudget("a")),
				want: `
					a: Running Scheduled; 1 running
					b: Running Scheduled; 11 running, 1 waiting Unschedulable`,
			}},
		},
	})
}

// budget keeps that many pods of a job from being disrupted.
func budget(job string, minAvailable int) row {
	return func(h *harness) {
		least := intstr.FromInt(minAvailable)
		b := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: job},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: &least,
				Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{jobLabel: job}},
			},
		}
		_, err := h.client.PolicyV1().PodDisruptionBudgets(namespace).Create(h.ctx, b, metav1.CreateOptions{})
		h.must(err)
	}
}

// noBudget removes it.
func noBudget(job string) row {
	return func(h *harness) {
		h.must(h.client.PolicyV1().PodDisruptionBudgets(namespace).Delete(h.ctx, job, metav1.DeleteOptions{}))
	}
}

// TestPlansOutliveTheScheduler stops the scheduler while a gang waits for victims. The next one restores
// the nominations of the gang, although other jobs precede it by now.
func TestPlansOutliveTheScheduler(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(threeNodes, queue("q1", 1), queue("q2", 1), priorityClass("low", 1), priorityClass("high", 100),
		gang("a", 1, pods(12, "1cpu", priority("low"), lingering), in("q1")))
	policy := "--scheduler-conf=" + h.file("policy.yaml", evictingPolicy)
	h.start(policy)
	h.awaitStable(`a: Running Scheduled; 12 running`, "")

	h.do(gang("b", 3, pods(3, "1cpu", priority("high")), in("q1")))
	h.awaitStable(`
		a: Running Scheduled; 3 ending, 9 running
		b: Pending Preempting; 3 waiting Preempting`, "")
	h.ofJob("b", func(name string) error {
		p, err := h.client.CoreV1().Pods(namespace).Get(h.ctx, name, metav1.GetOptions{})
		if err == nil && p.Status.NominatedNodeName == "" {
			err = fmt.Errorf("pod %s is nominated for no node", name)
		}
		return err
	})
	h.stop()

	h.do(gang("c", 3, pods(3, "1cpu", priority("low")), in("q2")))
	h.ofJob("a", func(name string) error {
		p, err := h.client.CoreV1().Pods(namespace).Get(h.ctx, name, metav1.GetOptions{})
		if err != nil || p.DeletionTimestamp == nil {
			return err
		}
		if p.Annotations[v1alpha1.AnnotationEvictedFor] != namespace+"/b" {
			return fmt.Errorf("pod %s does not say for whom it goes: %v", name, p.Annotations)
		}
		return h.terminate(name)
	})
	h.start(policy)
	h.awaitStable(`
		a: Running Scheduled; 3 ending, 6 running
		b: Running Scheduled; 3 running
		c: Pending Preempting; 3 waiting Preempting`, "")
	h.must(h.view.invariants())
}
