// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// rackLabel is the label of racks. Their names differ in these cases, so pictures show racks by it.
const rackLabel = "example.com/rack"

// blocksAndRacks makes the Topology of blocks and racks.
func blocksAndRacks(h *harness) {
	_, err := h.batch.SchedulingV1alpha1().Topologies().Create(h.ctx, topology("default"), metav1.CreateOptions{})
	h.must(err)
}

// prefer sets the level that a gang prefers, and how long it waits for one domain of it; 0 if it does not wait.
func prefer(level string, wait time.Duration) part {
	return func(g *gangParts) {
		c := g.group.Spec.TopologyConstraint
		if c == nil {
			c = &v1alpha1.TopologyConstraint{}
			g.group.Spec.TopologyConstraint = c
		}
		c.PreferredTopologyLevel = level
		if wait > 0 {
			c.PreferredWait = &metav1.Duration{Duration: wait}
		}
	}
}

// inRackOf puts pods into a rack.
func inRackOf(rack string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{rackLabel: rack} }
}

// occupies waits until the status of a PodGroup lists these domains.
func occupies(group, want string) row {
	return func(h *harness) {
		h.eventually(func() error {
			g, err := h.batch.SchedulingV1alpha1().PodGroups(namespace).Get(h.ctx, group, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got := fmt.Sprint(g.Status.Topology); got != want {
				return fmt.Errorf("status.topology of PodGroup %s: %s, want %s", group, got, want)
			}
			return nil
		})
	}
}

// budgetAllows is a disruption budget of a job that allows so many evictions. No controller changes its status.
func budgetAllows(job string, evictions int32) row {
	return func(h *harness) {
		most := intstr.FromInt32(evictions)
		budgets := h.client.PolicyV1().PodDisruptionBudgets(namespace)
		b, err := budgets.Create(h.ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: job}, Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{jobLabel: job}},
		}}, metav1.CreateOptions{})
		h.must(err)
		b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, DisruptionsAllowed: evictions}
		_, err = budgets.UpdateStatus(h.ctx, b, metav1.UpdateOptions{})
		h.must(err)
	}
}

// lose removes a node and the pods of a job on it.
func lose(job, node string) row {
	return func(h *harness) {
		h.must(h.client.CoreV1().Nodes().Delete(h.ctx, node, metav1.DeleteOptions{}))
		h.ofJob(job, func(name string) error {
			p, err := h.client.CoreV1().Pods(namespace).Get(h.ctx, name, metav1.GetOptions{})
			if err != nil || p.Spec.NodeName != node {
				return err
			}
			return h.terminate(name)
		})
	}
}

// again creates those pods of a gang that do not exist any more.
func again(name string, parts ...part) row {
	return func(h *harness) {
		exists := map[string]bool{}
		list, err := h.client.CoreV1().Pods(namespace).List(h.ctx, metav1.ListOptions{LabelSelector: jobLabel + "=" + name})
		h.must(err)
		for _, p := range list.Items {
			exists[p.Name] = true
		}
		missing := func(g *gangParts) {
			var kept []*corev1.Pod
			for _, p := range g.pods {
				if !exists[name+"-"+p.Name] {
					kept = append(kept, p)
				}
			}
			g.pods = kept
		}
		members(name, append(parts, missing)...)(h)
	}
}

// TestTopologyDomains: which racks gangs get, and how the status lists them.
func TestTopologyDomains(t *testing.T) {
	play(t, map[string]scenario{
		"a gang that prefers racks gets the fewest, and the smallest one last": { // TO2
			given: rows(blocksAndRacks, rackNodes("b", "r1", 3), rackNodes("b", "r2", 3), rackNodes("b", "r3", 2), rackNodes("b", "r4", 1),
				gang("gang", 7, pods(7, "1cpu"), within("block"), prefer("rack", 0))),
			step: step{by: rackLabel, want: `gang: Running Scheduled; 7 running (r1 3, r2 3, r4 1)`},
			then: []step{{
				do: rows(occupies("gang", "[{block [b] 0} {rack [b/r1 b/r2 b/r4] 0}]")), by: rackLabel,
				want: `gang: Running Scheduled; 7 running (r1 3, r2 3, r4 1)`,
			}},
		},
		"of blocks where as many racks are needed, the one that loses the fewest whole nodes": { // TO3
			given: rows(blocksAndRacks,
				rackNodes("a", "r1", 2), rackNodes("a", "r2", 1), rackNodes("a", "r3", 1), rackNodes("a", "r4", 1),
				rackNodes("b", "s1", 2), rackNodes("b", "s2", 2), rackNodes("b", "s3", 2),
				gang("gang", 3, pods(3, "1cpu"), within("block"), prefer("rack", 0))),
			step: step{by: rackLabel, want: `gang: Running Scheduled; 3 running (r1 2, r2 1)`},
		},
		"surplus starts in the rack of the gang, or waits": { // TO13
			given: rows(blocksAndRacks, rackNodes("b", "r1", 6), rackNodes("b", "r2", 4), gang("gang", 4, pods(8, "1cpu"), within("rack"))),
			step:  step{by: rackLabel, want: `gang: Running Scheduled; 6 running, 2 waiting Unschedulable (r1 6)`},
		},
		"pods of neighbouring indexes are in one rack": { // TO21
			given: rows(blocksAndRacks, rackNodes("b", "r1", 4), rackNodes("b", "r2", 4),
				gang("gang", 8, set("upper", 4, "1cpu", numberedFrom(4)), set("lower", 4, "1cpu", numbered()), prefer("rack", 0))),
			step: step{by: rackLabel, want: `gang: Running Scheduled; lower 4 running (r1 4); upper 4 running (r2 4)`},
		},
		"the older of two gangs gets the last rack, and the message of the other one names a rack": { // TO20
			given: rows(blocksAndRacks, rackNodes("b", "r1", 2), rackNodes("b", "r2", 1),
				gang("first", 2, pods(2, "1cpu"), within("rack")), gang("second", 2, pods(2, "1cpu"), within("rack"))),
			step: step{
				by: rackLabel,
				want: `first: Running Scheduled; 2 running (r1 2)
					second: Pending NotEnoughResources; 2 waiting Unschedulable`,
				prints: map[string]string{"second": "needs 2 more pods of 1 cpu in one rack; rack b/r2 has resources for 1 of 2 pods"},
			},
		},
		"a gang waits for one rack, and starts when one is free": { // TO14
			given: rows(blocksAndRacks, rackNodes("b", "r1", 2), rackNodes("b", "r2", 2),
				gang("old1", 1, pods(1, "1cpu", inRackOf("r1"))), gang("old2", 1, pods(1, "1cpu", inRackOf("r2")))),
			step: step{want: `old1: Running Scheduled; 1 running
				old2: Running Scheduled; 1 running`},
			then: []step{{
				do: rows(gang("gang", 2, pods(2, "1cpu"), prefer("rack", time.Hour))), by: rackLabel,
				want: `gang: Pending NotEnoughResources; 2 waiting Unschedulable
					old1: Running Scheduled; 1 running (r1 1)
					old2: Running Scheduled; 1 running (r2 1)`,
				prints: map[string]string{"gang": "would start in 2 domains of level rack, and waits for one of them"},
			}, {
				do: rows(noPods("old2"), noGroup("old2")), by: rackLabel,
				want: `gang: Running Scheduled; 2 running (r2 2)
					old1: Running Scheduled; 1 running (r1 1)`,
			}},
		},
		"a gang waits for one rack in vain, and starts in two": { // TO14
			given: rows(blocksAndRacks, rackNodes("b", "r1", 1), rackNodes("b", "r2", 1), gang("gang", 2, pods(2, "1cpu"), prefer("rack", 2*time.Second))),
			step:  step{by: rackLabel, want: `gang: Running Scheduled; 2 running (r1 1, r2 1)`},
		},
	})
}

// fill is pods of 1 cpu without PodGroup in a rack, as one job.
func fill(job, rack string, count int, edits ...func(*corev1.Pod)) row {
	return plain(job, count, "1cpu", append(edits, inRackOf(rack))...)
}

// TestTopologyEvictions: for which rack pods are evicted, and that none are evicted in vain.
func TestTopologyEvictions(t *testing.T) {
	classes := rows(blocksAndRacks, priorityClass("low", 1), priorityClass("mid", 5), priorityClass("high", 10), priorityClass("top", 20))
	given := func(list ...row) []row { return append(classes[:len(classes):len(classes)], list...) }
	const scheduled4 = `
		other1: Running Scheduled; 2 running
		other2: Running Scheduled; 2 running
		own1: Running Scheduled; 1 running
		own2: Running Scheduled; 1 running`
	play(t, map[string]scenario{
		"one victim in one rack, and not two in two": { // TO7
			evicts: true,
			given: given(rackNodes("b", "r1", 2), rackNodes("b", "r2", 2),
				fill("low1", "r1", 1, priority("mid")), fill("low2", "r2", 1, priority("low"))),
			step: step{want: "low1: 1 running\nlow2: 1 running"},
			then: []step{{
				do: rows(gang("gang", 2, pods(2, "1cpu", priority("high")), within("rack"))), by: rackLabel,
				want: "gang: Running Scheduled; 2 running (r2 2)\nlow1: 1 running (r1 1)",
			}},
		},
		"a rack that is full is freed as far as needed": { // TO8
			evicts: true,
			given: given(nodes("b-r1-", 17, "4cpu", func(n *corev1.Node) { n.Labels["example.com/block"], n.Labels[rackLabel] = "b", "r1" }),
				rackNodes("b", "r2", 3), fill("low", "r1", 68, priority("low")), fill("other", "r2", 3, priority("low"))),
			step: step{want: "low: 68 running\nother: 3 running"},
			then: []step{{
				do: rows(gang("gang", 11, pods(11, "1cpu", priority("high")), within("rack"))), by: rackLabel,
				want: "gang: Running Scheduled; 11 running (r1 11)\nlow: 57 running (r1 57)\nother: 3 running (r2 3)",
			}},
		},
		"the rack of the lowest priority is freed": { // TO9
			evicts: true,
			given: given(rackNodes("b", "r1", 2), rackNodes("b", "r2", 2),
				fill("mid", "r2", 2, priority("mid")), fill("high", "r1", 2, priority("high"))),
			step: step{want: "high: 2 running\nmid: 2 running"},
			then: []step{{
				do: rows(gang("gang", 2, pods(2, "1cpu", priority("top")), within("rack"))), by: rackLabel,
				want: "gang: Running Scheduled; 2 running (r2 2)\nhigh: 2 running (r1 2)",
			}},
		},
		"a disruption budget protects the rack": { // TO10
			evicts: true,
			given:  given(rackNodes("b", "r1", 4), rackNodes("b", "r2", 1), fill("low", "r1", 4, priority("low")), budgetAllows("low", 1)),
			step:   step{want: "low: 4 running"},
			then: []step{{
				do: rows(gang("gang", 2, pods(2, "1cpu", priority("high")), within("rack"))), by: rackLabel,
				want:   "gang: Pending NotEnoughResources; 2 waiting Unschedulable\nlow: 4 running (r1 4)",
				prints: map[string]string{"gang": "3 pods that could be evicted are protected by PodDisruptionBudgets"},
			}},
		},
		"another rack becomes free while victims end, and no third one is freed": { // TO11
			evicts: true,
			given: given(rackNodes("b", "r1", 2), rackNodes("b", "r2", 2), rackNodes("b", "r3", 2),
				fill("low", "r1", 2, priority("low"), lingering), fill("mid", "r3", 2, priority("mid")), fill("top", "r2", 2, priority("top"))),
			step: step{want: "low: 2 running\nmid: 2 running\ntop: 2 running"},
			then: []step{{
				do: rows(gang("gang", 2, pods(2, "1cpu", priority("high")), within("rack"))), by: rackLabel,
				want: "gang: Pending Preempting; 2 waiting Preempting\nlow: 2 ending\nmid: 2 running (r3 2)\ntop: 2 running (r2 2)",
			}, {
				do: rows(noPods("top")), by: rackLabel,
				want: "gang: Running Scheduled; 2 running (r2 2)\nlow: 2 ending\nmid: 2 running (r3 2)",
			}},
		},
		"the share permits the gang, and no rack could be freed": { // TO19
			evicts: true,
			given: given(queue("q1", 9), queue("q2", 1), rackNodes("b", "r1", 3), rackNodes("b", "r2", 3),
				gang("own1", 1, pods(1, "1cpu", inRackOf("r1")), in("q1")), gang("own2", 1, pods(1, "1cpu", inRackOf("r2")), in("q1")),
				gang("other1", 2, pods(2, "1cpu", inRackOf("r1")), in("q2")), gang("other2", 2, pods(2, "1cpu", inRackOf("r2")), in("q2"))),
			step: step{want: scheduled4},
			then: []step{{
				do: rows(gang("gang", 3, pods(3, "1cpu"), within("rack"), in("q1"))), want: "gang: Pending NotEnoughResources; 3 waiting Unschedulable" + scheduled4,
			}},
		},
		"a rack could be freed, and the share does not permit it until the weight changes": { // TO19
			evicts: true,
			given: given(queue("q1", 1), queue("q2", 1), rackNodes("b", "r1", 2), rackNodes("b", "r2", 2), rackNodes("b", "r3", 2),
				gang("other1", 2, pods(2, "1cpu", inRackOf("r1")), in("q2")), gang("own", 2, pods(2, "1cpu", inRackOf("r2")), in("q1"))),
			step: step{want: "other1: Running Scheduled; 2 running\nown: Running Scheduled; 2 running"},
			then: []step{{
				do:   rows(gang("other2", 2, pods(2, "1cpu", inRackOf("r3")), in("q2"))),
				want: "other1: Running Scheduled; 2 running\nother2: Running Scheduled; 2 running\nown: Running Scheduled; 2 running",
			}, {
				do: rows(gang("gang", 2, pods(2, "1cpu"), within("rack"), in("q1"))),
				want: `gang: Pending NotEnoughResources; 2 waiting Unschedulable
					other1: Running Scheduled; 2 running
					other2: Running Scheduled; 2 running
					own: Running Scheduled; 2 running`,
			}, {
				do: rows(queue("q1", 9)), by: rackLabel,
				want: `gang: Running Scheduled; 2 running (r3 2)
					other1: Running Scheduled; 2 running (r1 2)
					other2: Pending NotEnoughPods
					own: Running Scheduled; 2 running (r2 2)`,
			}},
		},
	})
}

// TestTopologyAfterLosses: pods that replace lost ones start in the rack of the gang. A gang that its rack cannot hold any more
// goes to another one as a whole, after a time (TO12).
func TestTopologyAfterLosses(t *testing.T) {
	gangOf := []part{pods(4, "1cpu"), within("rack")}
	play(t, map[string]scenario{
		"the rack has free nodes": { // TO12
			evicts: true,
			given:  rows(blocksAndRacks, rackNodes("b", "r1", 6), rackNodes("b", "r2", 7), gang("gang", 4, gangOf...)),
			step:   step{by: rackLabel, want: "gang: Running Scheduled; 4 running (r1 4)"},
			then: []step{{
				do: rows(lose("gang", "b-r1-1"), lose("gang", "b-r1-2"), again("gang", gangOf...)), by: rackLabel,
				want: "gang: Running Scheduled; 4 running (r1 4)",
			}},
		},
		"the rack is too small by now, and another one holds the gang": { // TO12
			evicts: true,
			args:   []string{"--gang-grace=2s"},
			given:  rows(blocksAndRacks, rackNodes("b", "r1", 4), rackNodes("b", "r2", 5), gang("gang", 4, gangOf...)),
			step:   step{by: rackLabel, want: "gang: Running Scheduled; 4 running (r1 4)"},
			then: []step{{
				do:   rows(lose("gang", "b-r1-1"), again("gang", gangOf...)),
				want: "gang: Pending NotEnoughPods; 1 waiting NotEnoughPods", // the other three are evicted
			}, {
				do: rows(again("gang", gangOf...)), by: rackLabel,
				want: "gang: Running Scheduled; 4 running (r2 4)",
			}},
		},
	})
}

// TestTopologyReservation: resources that become free in the rack of a gang that has waited long are kept for it, and those of
// another rack are not (TO18).
func TestTopologyReservation(t *testing.T) {
	play(t, map[string]scenario{
		"one node in each of two racks becomes free": {
			config: "starvationAfter: 1s\n" + evictingPolicy,
			given:  rows(blocksAndRacks, rackNodes("b", "r1", 2), rackNodes("b", "r2", 2), fill("old1", "r1", 1), fill("stay1", "r1", 1), fill("old2", "r2", 1), fill("stay2", "r2", 1)),
			step:   step{want: "old1: 1 running\nold2: 1 running\nstay1: 1 running\nstay2: 1 running"},
			then: []step{{
				do:   rows(gang("gang", 2, pods(2, "1cpu"), within("rack"))),
				want: "gang: Pending NotEnoughResources; 2 waiting Unschedulable\nold1: 1 running\nold2: 1 running\nstay1: 1 running\nstay2: 1 running",
			}, {
				do: rows(plain("small", 2, "1cpu"), noPods("old1"), noPods("old2")), by: rackLabel,
				want: "gang: Pending NotEnoughResources; 2 waiting Unschedulable\nsmall: 1 running, 1 waiting Unschedulable (r2 1)\nstay1: 1 running (r1 1)\nstay2: 1 running (r2 1)",
			}, {
				do: rows(noPods("stay1")), by: rackLabel,
				want: "gang: Running Scheduled; 2 running (r1 2)\nsmall: 1 running, 1 waiting Unschedulable (r2 1)\nstay2: 1 running (r2 1)",
			}},
		},
	})
}
