// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

const ourScheduler = "batch-scheduler"

func newTestCluster() *model.Cluster {
	return model.NewCluster(model.Options{SchedulerNames: []string{ourScheduler}, DefaultQueue: "default"})
}

// dawn is when the first object of a test was created.
var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// amountsOf makes a ResourceList from pairs of name and quantity.
func amountsOf(pairs ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

type podChange func(*v1.Pod)

// aPod is a waiting pod of ours with the UID "uid-<name>" that asks for one cpu.
func aPod(name string, changes ...podChange) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(dawn),
			Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: v1.PodSpec{
			SchedulerName: ourScheduler,
			Containers:    []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: amountsOf("cpu", "1")}}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func requesting(pairs ...string) podChange {
	return func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests = amountsOf(pairs...) }
}

func withLabel(key, value string) podChange {
	return func(p *v1.Pod) { p.Labels[key] = value }
}

func annotated(key, value string) podChange {
	return func(p *v1.Pod) { p.Annotations[key] = value }
}

func inGroup(name string) podChange { return withLabel(v1alpha1.LabelPodGroup, name) }

// ownedBy gives the pod a controller of that name, with the UID "uid-<name>".
func ownedBy(name string) podChange {
	return func(p *v1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Name: name, UID: types.UID("uid-" + name), Controller: &yes}}
	}
}

func on(node string) podChange {
	return func(p *v1.Pod) { p.Spec.NodeName = node }
}

// boundBy writes what our Binding writes.
func boundBy(queue, groupUID, node string) podChange {
	return func(p *v1.Pod) {
		p.Spec.NodeName = node
		p.Annotations[v1alpha1.AnnotationQueue] = queue
		p.Annotations[v1alpha1.AnnotationPodGroupUID] = groupUID
	}
}

func inPhase(phase v1.PodPhase) podChange {
	return func(p *v1.Pod) { p.Status.Phase = phase }
}

func withDeadline(seconds int64) podChange {
	return func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = &seconds }
}

// startedAt sets status.startTime, in seconds after dawn.
func startedAt(seconds int) podChange {
	return func(p *v1.Pod) {
		at := metav1.NewTime(dawn.Add(time.Duration(seconds) * time.Second))
		p.Status.StartTime = &at
	}
}

// scheduledAt sets the condition that the API server sets with the node, in seconds after dawn.
func scheduledAt(seconds int) podChange {
	return func(p *v1.Pod) {
		p.Status.Conditions = []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(dawn.Add(time.Duration(seconds) * time.Second)),
		}}
	}
}

func deleting(p *v1.Pod) {
	now := metav1.NewTime(dawn.Add(time.Hour))
	p.DeletionTimestamp = &now
}

func gated(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "hold"}} }

func foreign(p *v1.Pod) { p.Spec.SchedulerName = "default-scheduler" }

func prioritized(n int32) podChange {
	return func(p *v1.Pod) { p.Spec.Priority = &n }
}

func nominatedTo(node string) podChange {
	return func(p *v1.Pod) { p.Status.NominatedNodeName = node }
}

func aNode(name string, pairs ...string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}},
		Status:     v1.NodeStatus{Allocatable: amountsOf(append(pairs, "pods", "110")...)},
	}
}

func notReady(n *v1.Node) *v1.Node {
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse}}
	return n
}

// aGroup is a group in queue with the UID "uid-<name>".
func aGroup(name, queue string, minMember int32) *v1alpha1.PodGroup {
	return &v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(dawn)},
		Spec:       v1alpha1.PodGroupSpec{MinMember: minMember, Queue: queue},
	}
}

func aQueue(name string) *v1alpha1.Queue {
	return &v1alpha1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(dawn)},
		Spec:       v1alpha1.QueueSpec{Weight: 1},
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func nameOf(n *api.NodeInfo) string {
	if n == nil {
		return ""
	}
	return n.Name
}
