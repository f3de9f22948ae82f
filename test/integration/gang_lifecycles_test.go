// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// docs/design/upstream-scenarios.md lists the scenarios of these tests: those of the tests of scheduler-plugins and of
// kube-scheduler that are about objects, each in a cluster where the scenarios follow each other.

// join creates one pod of a group, or a pod without a group.
func (a otherAPI) join(group, name, request string, edits ...func(*corev1.Pod)) {
	a.h.t.Helper()
	pod := newPod(name, request, edits...)
	if group != "" {
		pod = a.member(namespace, name, group, request, edits...)
	}
	_, err := a.h.client.CoreV1().Pods(namespace).Create(a.h.ctx, pod, metav1.CreateOptions{})
	a.h.must(err)
}

// setPhase sets the phase of pods that run, as their kubelet does.
func (h *harness) setPhase(phase corev1.PodPhase, pods ...string) {
	h.t.Helper()
	for _, name := range pods {
		_, err := h.client.CoreV1().Pods(namespace).Patch(h.ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase), metav1.PatchOptions{}, "status")
		h.must(err)
	}
}

// deleteNow removes pods at once; without names, all.
func (h *harness) deleteNow(pods ...string) {
	h.t.Helper()
	if len(pods) == 0 {
		list, err := h.podsWith("")
		h.must(err)
		for i := range list {
			pods = append(pods, list[i].Name)
		}
	}
	for _, name := range pods {
		h.must(h.terminate(name))
	}
}

// boundNow waits until these pods have a node, and no others.
func (h *harness) boundNow(pods ...string) {
	h.t.Helper()
	h.eventually(func() error { return h.bound(namespace, pods...) })
}

// waitNow waits until pods wait for a reason.
func (h *harness) waitNow(reason, part string, pods ...string) {
	h.t.Helper()
	for _, name := range pods {
		h.eventually(func() error { return h.waits(namespace, name, reason, part) })
	}
}

// TestLifecyclesOfSchedulerPlugins: phases and counts of PodGroups of scheduler-plugins from their creation to the end of their
// pods, and gangs that compete.
func TestLifecyclesOfSchedulerPlugins(t *testing.T) {
	h := newHarness(t, noControllers)
	h.applyFiles("scheduler-plugins.crd.yaml")
	h.grantSource("scheduler-plugins")
	h.do(node("n", "4cpu"), priorityClass("high", 100))
	h.start("--scheduler-conf=" + h.file("policy.yaml", "groupSources: [scheduler-plugins]\n"+evictingPolicy))
	plugins := h.schedulerPlugins()
	shows := func(name, phase string, running, succeeded, failed int) {
		t.Helper()
		h.eventually(func() error {
			return plugins.status(namespace, name, map[string]string{
				"phase": phase, "running": fmt.Sprint(running), "succeeded": fmt.Sprint(succeeded), "failed": fmt.Sprint(failed),
			})
		})
	}

	plugins.group(namespace, "late", `{"minMember":5,"scheduleTimeoutSeconds":1}`) // the time-out ends during this test
	plugins.members(namespace, "late", 5, "1cpu")
	h.waitNow("Unschedulable", "would not fit the empty nodes", "late-0", "late-4")
	shows("late", "Scheduling", 0, 0, 0)

	plugins.group(namespace, "train", `{"minMember":3}`)
	plugins.join("", "single", "0cpu")
	shows("train", "Pending", 0, 0, 0)
	plugins.members(namespace, "train", 2, "1cpu")
	h.waitNow("NotEnoughPods", "2 of 3 pods", "train-0", "train-1")
	shows("train", "Pending", 0, 0, 0)
	plugins.join("train", "train-2", "1cpu")
	h.boundNow("single", "train-0", "train-1", "train-2")
	shows("train", "Running", 3, 0, 0)
	h.setPhase(corev1.PodSucceeded, "train-0")
	shows("train", "Running", 2, 1, 0)
	h.setPhase(corev1.PodFailed, "train-1") // unlike there: another pod can take its place
	shows("train", "Unknown", 1, 1, 1)
	plugins.join("train", "train-3", "1cpu")
	shows("train", "Running", 2, 1, 1)
	h.setPhase(corev1.PodSucceeded, "train-2", "train-3")
	shows("train", "Finished", 0, 3, 1)
	h.deleteNow("train-0", "train-1", "train-2", "train-3", "single")
	shows("train", "Finished", 0, 0, 0)

	plugins.group(namespace, "elastic", `{"minMember":2}`)
	plugins.members(namespace, "elastic", 4, "1cpu")
	shows("elastic", "Running", 4, 0, 0)
	h.setPhase(corev1.PodSucceeded, "elastic-0", "elastic-1") // unlike there: others run
	shows("elastic", "Running", 2, 2, 0)
	h.setPhase(corev1.PodFailed, "elastic-2", "elastic-3")
	shows("elastic", "Finished", 0, 2, 2)
	plugins.group(namespace, "broken", `{"minMember":2}`)
	plugins.members(namespace, "broken", 2, "1cpu")
	shows("broken", "Running", 2, 0, 0)
	h.setPhase(corev1.PodFailed, "broken-0", "broken-1")
	shows("broken", "Failed", 0, 0, 2)

	plugins.group(namespace, "quick", `{"minMember":2}`)
	plugins.members(namespace, "quick", 2, "1cpu", runningFor("1ms"))
	shows("quick", "Finished", 0, 2, 0)

	h.must(h.terminate("late-4"))
	h.waitNow("NotEnoughPods", "4 of 5 pods", "late-0", "late-3")
	shows("late", "Pending", 0, 0, 0)
	plugins.join("late", "late-4", "1cpu")
	shows("late", "Scheduling", 0, 0, 0)

	plugins.group(namespace, "first", `{"minMember":3}`)
	plugins.group(namespace, "second", `{"minMember":3}`)
	for i := range 3 {
		plugins.join("first", fmt.Sprint("first-", i), "1cpu")
		plugins.join("second", fmt.Sprint("second-", i), "1cpu")
	}
	shows("first", "Running", 3, 0, 0)
	h.waitNow("Unschedulable", "nodes are available", "second-0", "second-1", "second-2")
	shows("second", "Scheduling", 0, 0, 0)
	plugins.group(namespace, "urgent", `{"minMember":2}`)
	plugins.members(namespace, "urgent", 2, "1cpu", priority("high"))
	shows("urgent", "Running", 2, 0, 0)
	shows("first", "Pending", 0, 0, 0) // its pods have no controller that creates them again
	h.eventually(func() error { return h.podGroupEvent("first", "the gang (3 pods) was evicted by preempt") })
	shows("second", "Scheduling", 0, 0, 0)
	h.do(node("m", "6cpu"))
	shows("late", "Running", 5, 0, 0)
	shows("second", "Running", 3, 0, 0)
	for _, name := range []string{"train", "late", "first", "second"} {
		plugins.onlyStatus(namespace, name)
	}
}

// TestLifecyclesOfKubernetes: PodGroups of Kubernetes that wait for their pods, for resources and for victims, and the pods of
// groups without a gang.
func TestLifecyclesOfKubernetes(t *testing.T) {
	h := newHarness(t, cluster.Options{WorkloadAPI: true, FeatureGates: []string{"GangScheduling=true", "WorkloadAwarePreemption=true"}})
	h.grantSource("native")
	h.do(node("n", "4cpu"), priorityClass("lower", 5), priorityClass("low", 10), priorityClass("high", 100))
	h.start("--scheduler-conf=" + h.file("policy.yaml", "groupSources: [native]\n"+evictingPolicy))
	native := h.native()
	shows := func(name, want, part string) {
		t.Helper()
		h.eventually(func() error { return native.scheduledCondition(name, want, part) })
	}
	const missing = `PodGroup %q of Kubernetes (scheduling.k8s.io) does not exist`

	// A gang waits for its group, for resources, and for a pod that is deleted meanwhile.
	native.join("", "blocker", "2cpu")
	h.boundNow("blocker")
	native.members(namespace, "a", 3, "1cpu")
	h.waitNow("GroupNotFound", fmt.Sprintf(missing, "a"), "a-0", "a-1", "a-2")
	native.group(namespace, "a", `{"schedulingPolicy":{"gang":{"minCount":3}}}`)
	h.waitNow("Unschedulable", "nodes are available", "a-0", "a-1", "a-2")
	shows("a", "False/Unschedulable", "needs 3 more pods of 1 cpu, 2 of them could start now")
	h.deleteNow("a-1")
	h.waitNow("NotEnoughPods", "2 of 3 pods", "a-0", "a-2")
	shows("a", "False/Unschedulable", "2 of 3 pods")
	native.join("a", "a-1", "1cpu")
	h.waitNow("Unschedulable", "nodes are available", "a-0", "a-1", "a-2")
	h.must(h.bound(namespace, "blocker"))
	h.deleteNow("blocker")
	h.boundNow("a-0", "a-1", "a-2")
	shows("a", "True/Scheduled", "all 3 pods")
	h.deleteNow()

	// Surplus waits, and starts when a pod is deleted.
	native.join("", "blocker", "1cpu")
	h.boundNow("blocker")
	native.members(namespace, "b", 4, "1cpu")
	native.group(namespace, "b", `{"schedulingPolicy":{"gang":{"minCount":3}}}`)
	shows("b", "True/Scheduled", "")
	h.eventually(func() error { return h.bound(namespace, "b-0", "b-1", "b-2", "blocker") })
	h.waitNow("Unschedulable", "nodes are available", "b-3")
	h.deleteNow("blocker")
	h.boundNow("b-0", "b-1", "b-2", "b-3")
	h.deleteNow()

	// The older of two groups starts, whatever the order of the pods; the other one follows.
	native.group(namespace, "c", `{"schedulingPolicy":{"gang":{"minCount":3}}}`)
	h.eventually(native.olderThanNow("c"))
	native.group(namespace, "d", `{"schedulingPolicy":{"gang":{"minCount":3}}}`)
	native.join("", "blocker", "4cpu")
	h.boundNow("blocker")
	for i := range 3 {
		native.join("d", fmt.Sprint("d-", i), "1cpu")
		native.join("c", fmt.Sprint("c-", i), "1cpu")
	}
	h.waitNow("Unschedulable", "nodes are available", "c-2", "d-2")
	h.deleteNow("blocker")
	h.boundNow("c-0", "c-1", "c-2")
	shows("c", "True/Scheduled", "")
	shows("d", "False/Unschedulable", "needs 3 more pods of 1 cpu, 1 of them could start now")
	h.deleteNow("c-0", "c-1", "c-2")
	h.boundNow("d-0", "d-1", "d-2")
	shows("d", "True/Scheduled", "")
	h.deleteNow()

	// Preemption for a gang: not more than it needs, and of the lowest priority.
	native.join("", "low-0", "1cpu", priority("low"))
	native.join("", "low-1", "1cpu", priority("low"))
	native.join("", "lower-0", "1cpu", priority("lower"))
	native.join("", "lower-1", "1cpu", priority("lower"))
	h.boundNow("low-0", "low-1", "lower-0", "lower-1")
	native.group(namespace, "e", `{"schedulingPolicy":{"gang":{"minCount":2}},"priorityClassName":"high"}`)
	native.members(namespace, "e", 2, "1cpu", priority("high"))
	h.boundNow("e-0", "e-1", "low-0", "low-1")
	shows("e", "True/Scheduled", "")
	h.eventually(func() error { return h.event("Preempted", "Evicted for default/e") })
	h.deleteNow()

	// Pods of a group without a gang wait for it, start one by one, and preempt one by one.
	native.join("", "blocker", "2cpu", priority("low"))
	h.boundNow("blocker")
	native.members(namespace, "f", 3, "1cpu", priority("low"))
	h.waitNow("GroupNotFound", fmt.Sprintf(missing, "f"), "f-0", "f-1", "f-2")
	native.group(namespace, "f", `{"schedulingPolicy":{"basic":{}}}`)
	h.boundNow("blocker", "f-0", "f-1")
	h.waitNow("Unschedulable", "nodes are available", "f-2")
	native.join("f", "f-urgent", "1cpu", priority("high"))
	h.eventually(func() error {
		return errors.Join(h.bound(namespace, "blocker", "f-0", "f-urgent"), h.waits(namespace, "f-2", "Unschedulable", "nodes are available"))
	})
	h.deleteNow("blocker")
	h.boundNow("f-0", "f-2", "f-urgent")
	h.deleteNow()

	// Several gangs whose pods are created at the same time.
	var created sync.WaitGroup
	for _, name := range []string{"g", "h"} {
		native.group(namespace, name, `{"schedulingPolicy":{"gang":{"minCount":2}}}`)
		for i := range 2 {
			created.Go(func() { native.join(name, fmt.Sprint(name, "-", i), "1cpu") })
		}
	}
	created.Wait()
	h.boundNow("g-0", "g-1", "h-0", "h-1")
	for _, name := range []string{"a", "e", "g"} {
		native.onlyStatus(namespace, name)
	}
}

// olderThanNow waits until an object that is created now is younger than a group: creation times are in seconds.
func (a otherAPI) olderThanNow(name string) func() error {
	return func() error {
		object, err := a.resource.Namespace(namespace).Get(a.h.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now, err := a.h.client.CoreV1().Pods(namespace).Create(a.h.ctx, newPod("clock", "0cpu"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && !object.GetCreationTimestamp().Time.Before(now.CreationTimestamp.Time) {
			err = errors.New("the same second")
		}
		return err
	}
}
