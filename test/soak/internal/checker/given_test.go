// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package checker_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/checker"
)

// event is a set of changes at a time after the start.
type event struct {
	after   time.Duration
	observe func(*checker.Checker, time.Time)
}

// at combines changes at the same time.
func at(after time.Duration, shows ...func(*checker.Checker, time.Time)) event {
	return event{after, func(c *checker.Checker, now time.Time) {
		for _, show := range shows {
			show(c, now)
		}
	}}
}

func node(name, cpus string, changes ...func(*corev1.Node)) func(*checker.Checker, time.Time) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse(cpus), "gpu": resource.MustParse("1"), "pods": resource.MustParse("9")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(n)
	}
	return func(c *checker.Checker, now time.Time) { c.Node(now, n, false) }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

func queue(name, cpus string) func(*checker.Checker, time.Time) {
	q := &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if cpus != "" {
		q.Spec.Capability = corev1.ResourceList{"cpu": resource.MustParse(cpus)}
	}
	return func(c *checker.Checker, now time.Time) { c.Queue(now, q, false) }
}

func group(name string, min int32, changes ...func(*v1alpha1.PodGroup)) func(*checker.Checker, time.Time) {
	g := &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("group " + name)}}
	g.Spec.MinMember, g.Spec.Queue = min, "q"
	for _, change := range changes {
		change(g)
	}
	return func(c *checker.Checker, now time.Time) { c.Group(now, g, false) }
}

func overShare(g *v1alpha1.PodGroup) {
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodGroupScheduled, Status: "False", Reason: "OverShare"}}
}

// member is a pod of a group, of one cpu.
func member(group, name string, changes ...func(*corev1.Pod)) func(*checker.Checker, time.Time) {
	return pod(name, append([]func(*corev1.Pod){func(p *corev1.Pod) {
		p.Labels = map[string]string{v1alpha1.LabelPodGroup: group}
	}}, changes...)...)
}

func pod(name string, changes ...func(*corev1.Pod)) func(*checker.Checker, time.Time) {
	p := made(name, changes...)
	return func(c *checker.Checker, now time.Time) { c.Pod(now, p, false) }
}

func gone(name string, changes ...func(*corev1.Pod)) func(*checker.Checker, time.Time) {
	p := made(name, changes...)
	return func(c *checker.Checker, now time.Time) { c.Pod(now, p, true) }
}

func made(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Annotations: map[string]string{}}}
	p.Spec.SchedulerName = "batch"
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
	p.Status.Phase = corev1.PodPending
	for _, change := range changes {
		change(p)
	}
	return p
}

// on sets a node to which the scheduler has bound the pod.
func on(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName = node
		p.Annotations[v1alpha1.AnnotationQueue] = "q"
		p.Annotations[v1alpha1.AnnotationPodGroupUID] = ""
		if group := p.Labels[v1alpha1.LabelPodGroup]; group != "" {
			p.Annotations[v1alpha1.AnnotationPodGroupUID] = "group " + group
		}
	}
}

// put sets a node to which another client has bound the pod.
func put(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func foreign(p *corev1.Pod) { p.Spec.SchedulerName = "other" }

func phase(phase corev1.PodPhase, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = phase, reason }
}

func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: start} }

func important(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](7) }

func zone(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": name} }
}

// evicted marks a pod as evicted for a job.
func evicted(preemptor string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
		if preemptor != "" {
			p.Annotations[v1alpha1.AnnotationEvictedFor] = preemptor
		}
		terminating(p)
	}
}

func says(pod, reason string) func(*checker.Checker, time.Time) {
	e := &eventsv1.Event{ReportingController: "batch", Reason: reason}
	e.Regarding = corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: pod, UID: types.UID(pod)}
	return func(c *checker.Checker, now time.Time) { c.Note(now, e) }
}

func scheduler(up bool) func(*checker.Checker, time.Time) {
	return func(c *checker.Checker, now time.Time) { c.Scheduler(now, up) }
}

func tick(c *checker.Checker, now time.Time) { c.Tick(now) }

func converged(c *checker.Checker, _ time.Time) { c.Converged() }

func allRun(c *checker.Checker, _ time.Time) { c.AllRun() }

// asks sets the requests of a pod to one of a resource, without cpu.
func asks(name corev1.ResourceName) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse("1")}
	}
}
