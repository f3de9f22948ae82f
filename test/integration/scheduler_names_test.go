// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSchedulerNames: a scheduler with several names schedules the pods of all of them, also within one gang, and no
// others. If another client binds such a pod, an event and a metric say so.
func TestSchedulerNames(t *testing.T) {
	h := newHarness(t, noControllers)
	metrics, args := h.newScraper()
	h.do(threeNodes, queue("q", 1))
	h.start(append(args, "--scheduler-name=batch-scheduler,volcano")...)
	contested := func() int {
		all, err := metrics.read(h)
		h.must(err)
		return all.count("batch_scheduler_pods_bound_by_others_total", func(l map[string]string) bool { return l["scheduler_name"] == "volcano" })
	}

	named := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.SchedulerName = name }
	}
	h.do(gang("mixed", 2, set("ours", 1, "1cpu"), set("theirs", 1, "1cpu", named("volcano")), in("q")))
	h.do(gang("others", 1, pods(1, "1cpu", named("someone")), in("q")))
	h.eventually(func() error { return h.groupIs("mixed", "Running Scheduled: 0 pending, 2 running") })
	if n := contested(); n != 0 {
		t.Errorf("%d pods are counted that the scheduler itself has bound", n)
	}

	h.do(members("late", pods(1, "1cpu", named("volcano")))) // there is no PodGroup, so the scheduler does not bind it
	h.must(h.client.CoreV1().Pods(namespace).Bind(h.ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "late-0"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"},
	}, metav1.CreateOptions{}))
	h.eventually(func() error { return h.event("NameContested", "schedules pods with the schedulerName volcano") })
	h.eventually(func() error { return difference(1, contested()) })
	pod, err := h.client.CoreV1().Pods(namespace).Get(h.ctx, "others-0", metav1.GetOptions{})
	h.must(err)
	if pod.Spec.NodeName != "" {
		t.Errorf("a pod of another scheduler is on %s", pod.Spec.NodeName)
	}
}
