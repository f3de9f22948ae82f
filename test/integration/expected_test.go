// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestExpectedPods starts two applications as the Spark operator creates them, whose drivers create executors: no driver
// starts before its executors would find resources, and another scheduler process keeps what is reserved (IP3).
func TestExpectedPods(t *testing.T) {
	h := newHarness(t, noControllers)
	h.applyFiles("scheduler-plugins.crd.yaml")
	h.grantSource("scheduler-plugins")
	h.do(nodes("n", 1, "10cpu"), queue("default", 1))
	h.do(gang("busy", 1, pods(1, "2cpu")))
	policy := "expect: 1h\n" + policyOf("own", "scheduler-plugins")
	h.start("--scheduler-conf=" + h.file("policy.yaml", policy))
	h.eventually(func() error { return h.bound(namespace, "busy-0") })

	plugins := h.schedulerPlugins()
	for _, app := range []string{"one", "two"} {
		plugins.group(namespace, app, `{"minMember":1,"minResources":{"cpu":"9"}}`)
		plugins.members(namespace, app, 1, "1cpu")
	}
	const message = "the gang fits, but not the pods that are expected: spec.minResources requests 8 cpu for them, of which suitable nodes have 7 available"
	h.eventually(func() error {
		return errors.Join(h.waits(namespace, "one-0", "Unschedulable", message), h.waits(namespace, "two-0", "Unschedulable", message))
	})

	h.must(h.client.CoreV1().Pods(namespace).Delete(h.ctx, "busy-0", *metav1.NewDeleteOptions(0)))
	h.eventually(func() error { return h.bound(namespace, "one-0") })
	h.do(gang("other", 1, pods(1, "2cpu")))
	const reserved = "0/1 nodes are available: 1 reserved for another PodGroup"
	h.eventually(func() error { return h.waits(namespace, "other-0", "Unschedulable", reserved) })

	h.stop()
	h.start("--scheduler-conf=" + h.file("policy.yaml", policy))
	for _, name := range []string{"one-exec-1", "one-exec-2", "one-exec-3"} {
		_, err := h.client.CoreV1().Pods(namespace).Create(h.ctx, plugins.member(namespace, name, "one", "2cpu"), metav1.CreateOptions{})
		h.must(err)
	}
	h.eventually(func() error { return h.bound(namespace, "one-0", "one-exec-1", "one-exec-2", "one-exec-3") })
	h.must(h.waits(namespace, "other-0", "Unschedulable", reserved))

	h.replace("policy.yaml", policyOf("own", "scheduler-plugins"))
	h.eventually(func() error {
		return h.bound(namespace, "one-0", "one-exec-1", "one-exec-2", "one-exec-3", "other-0", "two-0")
	})
}
