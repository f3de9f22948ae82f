// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/snapshot"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

func TestGroups(t *testing.T) {
	t.Parallel()
	inGroup := func(p *corev1.Pod) { p.Labels = map[string]string{v1alpha1.LabelPodGroup: "g"} }
	for name, test := range map[string]struct {
		given []*corev1.Pod
		want  snapshot.Group // its counts
	}{
		"no pods":                          {},
		"pods that wait":                   {given: pods(pod(inGroup), pod(inGroup)), want: snapshot.Group{Members: 2}},
		"a pod with a node":                {given: pods(pod(inGroup, on("n"))), want: snapshot.Group{Members: 1, Bound: 1}},
		"a pod that has ended":             {given: pods(pod(inGroup, on("n"), in(corev1.PodSucceeded))), want: snapshot.Group{Members: 1, Bound: 1, Ended: 1}},
		"a pod that has failed":            {given: pods(pod(inGroup, on("n"), in(corev1.PodFailed))), want: snapshot.Group{Members: 1, Bound: 1, Ended: 1, Failed: 1}},
		"a pod that was evicted":           {given: pods(pod(inGroup, on("n"), in(corev1.PodFailed), disrupted)), want: snapshot.Group{}},
		"a pod that is being evicted":      {given: pods(pod(inGroup, on("n"), in(corev1.PodRunning), disrupted)), want: snapshot.Group{Members: 1, Bound: 1}},
		"a pod that never had a node":      {given: pods(pod(inGroup, in(corev1.PodFailed))), want: snapshot.Group{Members: 1, Ended: 1, Failed: 1}},
		"kube-batch's annotation":          {given: pods(pod(annotated(v1alpha1.AnnotationGroupName, "g"))), want: snapshot.Group{Members: 1}},
		"the label goes first":             {given: pods(pod(inGroup, annotated(v1alpha1.AnnotationGroupName, "h"))), want: snapshot.Group{Members: 1}},
		"a pod of another group":           {given: pods(pod(annotated(v1alpha1.AnnotationGroupName, "h")))},
		"a pod of another namespace":       {given: pods(pod(inGroup, func(p *corev1.Pod) { p.Namespace = "other" }))},
		"a pod of another scheduler":       {given: pods(pod(inGroup, func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }))},
		"pods in all states are all there": {given: pods(pod(inGroup), pod(inGroup, on("n")), pod(inGroup, on("n"), in(corev1.PodSucceeded))), want: snapshot.Group{Members: 3, Bound: 2, Ended: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "g"}, Spec: v1alpha1.PodGroupSpec{MinMember: 2}}
			group.Status.Phase = v1alpha1.PodGroupPending
			group.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodGroupScheduled, Status: metav1.ConditionFalse, Reason: "Why", Message: "because"}}
			want := test.want
			want.Namespace, want.Name, want.Queue, want.Min, want.Phase, want.Reason, want.Message = "s", "g", "default", 2, "Pending", "Why", "because"
			got := snapshot.Of(snapshot.Objects{Pods: test.given, Groups: []*v1alpha1.PodGroup{group}}, "ours", "default").Groups
			if diff := cmp.Diff([]snapshot.Group{want}, got); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAScheduledGroupHasNoReason(t *testing.T) {
	t.Parallel()
	group := &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g"}, Spec: v1alpha1.PodGroupSpec{Queue: "q"}}
	group.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodGroupScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled", Message: "all have a node"}}
	got := snapshot.Of(snapshot.Objects{Groups: []*v1alpha1.PodGroup{group}}, "ours", "default").Groups
	if diff := cmp.Diff([]snapshot.Group{{Name: "g", Queue: "q"}}, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// TestUsedResources: nodes count all pods on them, queues those of theirs that the scheduler has bound.
func TestUsedResources(t *testing.T) {
	t.Parallel()
	ofQueue := annotated(v1alpha1.AnnotationQueue, "q")
	objects := snapshot.Objects{
		Nodes:  []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: cpu("8")}}},
		Queues: []*v1alpha1.Queue{{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: v1alpha1.QueueSpec{Weight: 3, Capability: cpu("7")}, Status: v1alpha1.QueueStatus{Deserved: cpu("6"), Allocated: cpu("5")}}},
		Pods: pods(
			pod(on("n"), ofQueue),
			pod(on("n"), ofQueue, in(corev1.PodRunning)),
			pod(on("n"), ofQueue, in(corev1.PodSucceeded)),
			pod(ofQueue),
			pod(on("n"), annotated(v1alpha1.AnnotationQueue, "other")),
			pod(on("n"), func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }),
			pod(on("elsewhere"), ofQueue),
		),
	}
	got := snapshot.Of(objects, "ours", "default")
	want := snapshot.Snapshot{
		Nodes:  []snapshot.Node{{Name: "n", Allocatable: cpu("8"), Used: cpu("4")}},
		Queues: []snapshot.Queue{{Name: "q", Weight: 3, Capability: cpu("7"), Deserved: cpu("6"), Allocated: cpu("5"), Held: cpu("3")}},
	}
	got.Work = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scene (-want +got):\n%s", diff)
	}
}

func TestWorkWithoutAGroup(t *testing.T) {
	t.Parallel()
	template := func(labels map[string]string, scheduler string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{SchedulerName: scheduler}}
	}
	ours := template(map[string]string{v1alpha1.LabelQueue: "q"}, "ours")
	job := func(name string, t corev1.PodTemplateSpec, s batchv1.JobStatus) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Completions: ptr.To[int32](4), Template: t}, Status: s}
	}
	deployment := func(name string, t corev1.PodTemplateSpec, available int32) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Template: t},
			Status: appsv1.DeploymentStatus{AvailableReplicas: available}}
	}
	complete := batchv1.JobStatus{Succeeded: 4, Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
	named := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Name, p.Namespace = name, "" } }
	objects := snapshot.Objects{
		Jobs: []*batchv1.Job{
			job("runs", ours, batchv1.JobStatus{Ready: ptr.To[int32](3), Succeeded: 1}),
			job("complete", ours, complete),
			job("grouped", template(map[string]string{v1alpha1.LabelPodGroup: "g"}, "ours"), complete),
			job("foreign", template(nil, "default-scheduler"), complete),
		},
		Deployments: []*appsv1.Deployment{deployment("half", ours, 1), deployment("whole", template(nil, "ours"), 2), deployment("foreign", template(nil, ""), 2)},
		Pods: pods(
			pod(named("waits")),
			pod(named("runs"), on("n"), in(corev1.PodRunning)),
			pod(named("ended"), on("n"), in(corev1.PodSucceeded)),
			pod(named("failed"), on("n"), in(corev1.PodFailed)),
			pod(named("controlled"), func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "runs", Controller: ptr.To(true)}}
			}),
		),
	}
	want := []snapshot.Work{
		{Kind: "deployment", Name: "half", Queue: "q", Want: 2, Running: 1},
		{Kind: "deployment", Name: "whole", Queue: "default", Want: 2, Running: 2, Done: true},
		{Kind: "job", Name: "complete", Queue: "q", Want: 4, Ended: 4, Done: true},
		{Kind: "job", Name: "runs", Queue: "q", Want: 4, Running: 3, Ended: 1},
		{Kind: "pod", Name: "ended", Queue: "default", Want: 1, Ended: 1, Done: true},
		{Kind: "pod", Name: "failed", Queue: "default", Want: 1, Ended: 1},
		{Kind: "pod", Name: "runs", Queue: "default", Want: 1, Running: 1, Done: true},
		{Kind: "pod", Name: "waits", Queue: "default", Want: 1},
	}
	if diff := cmp.Diff(want, snapshot.Of(objects, "ours", "default").Work); diff != "" {
		t.Errorf("work (-want +got):\n%s", diff)
	}
}

func pods(list ...*corev1.Pod) []*corev1.Pod { return list }

// pod returns a pod of our scheduler that asks for one cpu and waits, but for the changes.
func pod(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "s"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	p.Spec.SchedulerName = "ours"
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpu("1")}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func disrupted(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
}

func in(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

func cpu(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
}
