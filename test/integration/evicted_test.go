// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestEvictedPodGroupsSaySo: a gang is reclaimed, a gang is preempted, and a PodGroup loses surplus pods. The evicted
// pods have no controller. When they do not exist any more, the PodGroups still tell their owners what happened: by a
// condition that outlives the scheduler, by an event, and in the output of the plugin.
func TestEvictedPodGroupsSaySo(t *testing.T) {
	h := newHarness(t, noControllers)
	metrics, args := h.newScraper()
	args = append(args, "--scheduler-conf="+h.file("policy.yaml", evictingPolicy))
	h.do(threeNodes, queue("qa", 1), queue("qb", 1), priorityClass("low", 1), priorityClass("mid", 50), priorityClass("high", 100),
		gang("vict", 12, pods(12, "1cpu"), in("qa")))
	h.start(args...)
	h.awaitStable(`vict: Running Scheduled; 12 running`, "")
	h.do(gang("rival", 6, pods(6, "1cpu", priority("high")), in("qb")))
	h.awaitStable(`
		rival: Running Scheduled; 6 running
		vict: Pending NotEnoughPods`, "")
	h.do(gang("lender", 6, pods(6, "1cpu", priority("low")), in("qb")))
	h.awaitStable(`
		lender: Running Scheduled; 6 running
		rival: Running Scheduled; 6 running
		vict: Pending NotEnoughPods`, "")
	h.do(gang("vip", 6, pods(6, "1cpu", priority("mid")), in("qb")))
	h.awaitStable(`
		lender: Pending NotEnoughPods
		rival: Running Scheduled; 6 running
		vict: Pending NotEnoughPods
		vip: Running Scheduled; 6 running`, "")
	h.remove(jobLabel+"=vip", 1)
	h.do(gang("hog", 2, pods(4, "1cpu", priority("low")), in("qb")))
	h.do(gang("late", 4, pods(4, "1cpu", priority("mid")), in("qb")))
	const end = `
		hog: Running Scheduled; 2 running
		late: Running Scheduled; 4 running
		lender: Pending NotEnoughPods
		rival: Running Scheduled; 6 running
		vict: Pending NotEnoughPods`
	h.awaitStable(end, "")

	want := map[string]string{
		"vict":   "True Reclaimed: the gang (12 pods) was evicted by reclaim at TIME for default/rival (queue qb, priority 100)",
		"lender": "True Preempted: the gang (6 pods) was evicted by preempt at TIME for default/vip (queue qb, priority 50)",
		"hog":    "False Preempted: 2 surplus pods were evicted by preempt at TIME for default/late (queue qb, priority 50); the gang continues to run",
	}
	h.eventually(func() error { return differ(want, h.evictedConditions()) })
	for name := range want {
		h.eventually(func() error { return h.podGroupEvent(name, " evicted by ") })
	}
	ada := h.newPlugin()
	ada.eventuallySays("why vict --events", "Evicted: Reclaimed: the gang (12 pods) was evicted by reclaim at", "for default/rival (queue qb, priority 100)",
		"Advice: Its pods were evicted")
	ada.eventuallySays("why hog", "Evicted: Preempted: 2 surplus pods were evicted by preempt at")
	h.eventually(func() error {
		return h.podGroupEvent("rival", "12 pods evicted by reclaim to free resources for this PodGroup: 12 of default/vict")
	})
	ada.eventuallySays("get podgroups -o wide", "Reclaimed: the gang (12 pods) was evicted by reclaim", "Preempted: 2 surplus pods were evicted by preempt")
	h.eventually(func() error {
		all, err := metrics.read(h)
		if err != nil {
			return err
		}
		count := func(extent string) int {
			return all.count("batch_scheduler_podgroup_evictions_total", func(labels map[string]string) bool { return labels["extent"] == extent })
		}
		if gangs, surplus := count("gang"), count("surplus"); gangs != 2 || surplus != 1 {
			return fmt.Errorf("%d gangs and %d times surplus counted, want 2 and 1", gangs, surplus)
		}
		return nil
	})

	h.stop()
	h.start(args...)
	h.do(group("vict", 11, in("qa"))) // so that the scheduler writes the status
	h.eventually(func() error {
		if message := h.view.message("vict"); !strings.Contains(message, "0 of 11 pods") {
			return fmt.Errorf("the message about vict is %q", message)
		}
		return nil
	})
	h.awaitStable(end, "")
	if err := differ(want, h.evictedConditions()); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

// eventuallySays waits until the command prints all the parts, which may be wrapped.
func (p plugin) eventuallySays(line string, parts ...string) {
	p.w.t.Helper()
	p.w.eventually(func() error {
		out, ok := p.run(strings.Fields(line)...)
		words := strings.Join(strings.Fields(out), " ")
		for _, part := range parts {
			if !ok || !strings.Contains(words, part) {
				return fmt.Errorf("%s: exit code 0 is %t, and the output has to contain %q:\n%s", line, ok, part, out)
			}
		}
		return nil
	})
}

// evictedConditions returns the conditions Evicted by PodGroup, without the time.
func (h *harness) evictedConditions() map[string]string {
	list, err := h.batch.SchedulingV1alpha1().PodGroups(namespace).List(h.ctx, metav1.ListOptions{})
	h.must(err)
	conditions := map[string]string{}
	for i := range list.Items {
		if c := meta.FindStatusCondition(list.Items[i].Status.Conditions, v1alpha1.ConditionEvicted); c != nil {
			words := strings.Fields(c.Message)
			for i := 1; i < len(words); i++ {
				if words[i-1] == "at" {
					words[i] = "TIME"
				}
			}
			conditions[list.Items[i].Name] = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, strings.Join(words, " "))
		}
	}
	return conditions
}

// podGroupEvent returns an error unless a PodGroup has an event with the text.
func (h *harness) podGroupEvent(name, text string) error {
	list, err := h.client.CoreV1().Events(namespace).List(h.ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.kind": "PodGroup", "involvedObject.name": name}.String(),
	})
	if err != nil {
		return err
	}
	var messages []string
	for _, e := range list.Items {
		messages = append(messages, e.Message)
		if strings.Contains(e.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("no event %q about PodGroup %s, but %q", text, name, messages)
}
