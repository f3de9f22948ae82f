// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// changes changes objects as kubelets, users and administrators do. Names are those of the rows.
type changes struct{ *objects }

// Start sets the phase of bound pods to Running: the named ones, or all.
func (o changes) Start(pods ...string) {
	o.t.Helper()
	o.phase(v1.PodRunning, v1.PodPending, pods)
}

// Succeed sets the phase of pods to Succeeded: the named ones, or all that run.
func (o changes) Succeed(pods ...string) {
	o.t.Helper()
	o.phase(v1.PodSucceeded, v1.PodRunning, pods)
}

// Fail sets the phase of pods to Failed: the named ones, or all that run.
func (o changes) Fail(pods ...string) {
	o.t.Helper()
	o.phase(v1.PodFailed, v1.PodRunning, pods)
}

func (o changes) phase(to, from v1.PodPhase, pods []string) {
	o.t.Helper()
	if len(pods) == 0 {
		for _, p := range o.sortedPods() {
			if p.Spec.NodeName != "" && p.Status.Phase == from {
				pods = append(pods, o.names[string(p.UID)])
			}
		}
	}
	for _, name := range pods {
		o.edit(name, inPhase(to))
	}
}

// Release starts the deletion of pods; they hold their resources until Delete.
func (o changes) Release(pods ...string) { o.Ending(0, pods...) }

// Ending starts the deletion of pods with a grace period.
func (o changes) Ending(grace time.Duration, pods ...string) {
	o.t.Helper()
	for _, name := range pods {
		o.edit(name, func(p *v1.Pod) {
			end := metav1.NewTime(o.clock.Now().Add(grace))
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &end, ptr.To(int64(grace/time.Second))
		})
	}
}

// Ungate removes the scheduling gates of pods.
func (o changes) Ungate(pods ...string) {
	o.t.Helper()
	for _, name := range pods {
		o.edit(name, func(p *v1.Pod) { p.Spec.SchedulingGates = nil })
	}
}

// Relabel sets a label of a pod; an empty value removes it.
func (o changes) Relabel(pod, key, value string) {
	o.t.Helper()
	o.edit(pod, func(p *v1.Pod) {
		if p.Labels[key] = value; value == "" {
			delete(p.Labels, key)
		}
	})
}

// DeleteGroup removes a PodGroup; its pods stay.
func (o changes) DeleteGroup(name string) {
	o.t.Helper()
	g := o.group(name)
	o.removeGroup(name, g)
}

// DeleteNode removes a node; its pods stay.
func (o changes) DeleteNode(name string) {
	o.t.Helper()
	if o.nodes[name] == nil {
		o.t.Fatalf("DeleteNode(%q): no such node", name)
	}
	delete(o.nodes, name)
	o.enqueue("node "+name, func(m *model.Cluster) { m.Events().DeleteNode(name) })
}

// DeleteQueue removes a queue; its groups stay.
func (o changes) DeleteQueue(name string) {
	o.t.Helper()
	if o.queues[name] == nil {
		o.t.Fatalf("DeleteQueue(%q): no such queue", name)
	}
	delete(o.queues, name)
	o.enqueue("queue "+name, func(m *model.Cluster) { m.Events().DeleteQueue(name) })
}

// EditNode changes a node.
func (o changes) EditNode(name string, change func(*v1.Node)) {
	o.t.Helper()
	old := o.nodes[name]
	if old == nil {
		o.t.Fatalf("EditNode(%q): no such node", name)
	}
	n := old.DeepCopy()
	change(n)
	o.setNode(n)
}

// EditQueue changes a queue.
func (o changes) EditQueue(name string, change func(*v1alpha1.Queue)) {
	o.t.Helper()
	old := o.queues[name]
	if old == nil {
		o.t.Fatalf("EditQueue(%q): no such queue", name)
	}
	q := old.DeepCopy()
	change(q)
	o.setQueue(q)
}
