package integration

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// evictingPolicy is that of the acceptance list for rows with evictions.
const evictingPolicy = `
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`

// TestEvictions: A5, A6, A11, A22, and A4 where evictions are possible. Victims are pods that
// nobody creates again.
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
			then: []step{{
				do: rows(gang("b1", 1, pods(12, "1cpu")), gang("b2", 1, pods(12, "1cpu"))),
				want: `
					a: Running Scheduled; 4 running
					b1: Running Scheduled; 4 running, 8 waiting Unschedulable
					b2: Running Scheduled; 4 running, 8 waiting Unschedulable`,
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
	return func(w *world) {
		least := intstr.FromInt(minAvailable)
		b := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: job},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: &least,
				Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{jobLabel: job}},
			},
		}
		_, err := w.client.PolicyV1().PodDisruptionBudgets(namespace).Create(w.ctx, b, metav1.CreateOptions{})
		w.must(err)
	}
}

// noBudget removes it.
func noBudget(job string) row {
	return func(w *world) {
		w.must(w.client.PolicyV1().PodDisruptionBudgets(namespace).Delete(w.ctx, job, metav1.DeleteOptions{}))
	}
}
