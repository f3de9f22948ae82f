// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestObjectsOfVolcanoStay: a scheduler that replaces volcano-scheduler counts the pods that run in their PodGroup and its
// queue, and schedules those that wait, with all objects as they are.
func TestObjectsOfVolcanoStay(t *testing.T) {
	h := newHarness(t, noControllers)
	h.applyFiles("volcano.crd.yaml")
	h.grantSource("volcano")
	h.do(nodes("n", 3, "1cpu"), queue("research", 1))
	volcano := h.volcano()
	named := func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }
	volcano.group(namespace, "before", `{"minMember":2,"queue":"research"}`)
	volcano.members(namespace, "before", 2, "1cpu", named)
	for i := range 2 { // as volcano-scheduler does
		h.must(h.client.CoreV1().Pods(namespace).Bind(h.ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("before-", i)}, Target: corev1.ObjectReference{Kind: "Node", Name: fmt.Sprint("n", i+1)},
		}, metav1.CreateOptions{}))
	}
	volcano.group(namespace, "after", `{"minMember":2,"queue":"research"}`)
	volcano.members(namespace, "after", 2, "1cpu", named)

	h.start("--scheduler-name=batch-scheduler,volcano", h.sourcePolicy("own", "volcano"))
	h.eventually(func() error {
		return errors.Join(
			volcano.status(namespace, "before", map[string]string{"phase": "Running", "running": "2"}),
			h.waits(namespace, "after-0", "Unschedulable", "nodes are available"))
	})
	h.eventually(func() error {
		q, err := h.view.queues.Get("research")
		if err != nil {
			return err
		}
		return difference("2", q.Status.Allocated.Cpu().String())
	})
	h.must(h.client.CoreV1().Pods(namespace).Delete(h.ctx, "before-0", metav1.DeleteOptions{}))
	h.eventually(func() error {
		return volcano.status(namespace, "after", map[string]string{"phase": "Running", "running": "2"})
	})
	h.must(h.bound(namespace, "after-0", "after-1", "before-1"))
}

// TestGroupOfVolcanoJob: the PodGroup that the Job controller of Volcano creates becomes Inqueue, for which the controller
// waits: the names of quotas in minResources do not count (IV4). Its pods, as the controller creates them then, start
// with the minimum of their task.
func TestGroupOfVolcanoJob(t *testing.T) {
	h := newHarness(t, noControllers)
	h.applyFiles("volcano.crd.yaml", "volcano-job.yaml")
	h.grantSource("volcano")
	h.do(nodes("n", 3, "1cpu"))
	h.start("--scheduler-name=batch-scheduler,volcano", h.sourcePolicy("own", "volcano"))
	const name = "simulate-4e395d1b-a53a-4fef-a92a-6d89b9fe7946"
	volcano := h.volcano()
	h.eventually(func() error { return volcano.status(namespace, name, map[string]string{"phase": "Inqueue"}) })
	for i := range 3 {
		pod := volcano.member(namespace, fmt.Sprint("simulate-main-", i), name, "1cpu")
		pod.Labels = map[string]string{"volcano.sh/job-name": "simulate", "volcano.sh/task-index": fmt.Sprint(i)}
		pod.Annotations["volcano.sh/task-spec"] = "main"
		pod.Spec.SchedulerName = "volcano"
		_, err := h.client.CoreV1().Pods(namespace).Create(h.ctx, pod, metav1.CreateOptions{})
		h.must(err)
		if i == 1 {
			h.eventually(func() error {
				return h.waits(namespace, "simulate-main-0", "NotEnoughPods", "2 of 3 pods that must start together exist; subgroup main has 2 of 3 pods")
			})
		}
	}
	h.eventually(func() error { return h.bound(namespace, "simulate-main-0", "simulate-main-1", "simulate-main-2") })
}
