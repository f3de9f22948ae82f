// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// The kinds of Work.
const (
	Job        = "job"
	Deployment = "deployment"
	Pod        = "pod"
)

func jobs(list []*batchv1.Job, schedulerName, defaultQueue string) []Work {
	var work []Work
	for _, j := range list {
		if !withoutGroup(j.Spec.Template, schedulerName) {
			continue
		}
		work = append(work, Work{
			Kind: Job, Namespace: j.Namespace, Name: j.Name,
			Queue:   cmp.Or(j.Spec.Template.Labels[v1alpha1.LabelQueue], defaultQueue),
			Want:    int(ptr.Deref(j.Spec.Completions, 1)),
			Running: int(ptr.Deref(j.Status.Ready, 0)),
			Ended:   int(j.Status.Succeeded),
			Done:    completed(j),
		})
	}
	return work
}

func completed(j *batchv1.Job) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func deployments(list []*appsv1.Deployment, schedulerName, defaultQueue string) []Work {
	var work []Work
	for _, d := range list {
		if !withoutGroup(d.Spec.Template, schedulerName) {
			continue
		}
		want := int(ptr.Deref(d.Spec.Replicas, 1))
		work = append(work, Work{
			Kind: Deployment, Namespace: d.Namespace, Name: d.Name,
			Queue:   cmp.Or(d.Spec.Template.Labels[v1alpha1.LabelQueue], defaultQueue),
			Want:    want,
			Running: int(d.Status.AvailableReplicas),
			Done:    want > 0 && int(d.Status.AvailableReplicas) == want,
		})
	}
	return work
}

func singlePods(pods []*corev1.Pod, defaultQueue string) []Work {
	var work []Work
	for _, p := range pods {
		if groupName(p) != "" || metav1.GetControllerOf(p) != nil {
			continue
		}
		one := Work{
			Kind: Pod, Namespace: p.Namespace, Name: p.Name,
			Queue: cmp.Or(p.Labels[v1alpha1.LabelQueue], defaultQueue),
			Want:  1,
			Done:  p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodSucceeded,
		}
		switch p.Status.Phase {
		case corev1.PodRunning:
			one.Running = 1
		case corev1.PodSucceeded, corev1.PodFailed:
			one.Ended = 1
		}
		work = append(work, one)
	}
	return work
}

// withoutGroup reports whether pods of the template are the scheduler's and belong to no PodGroup.
func withoutGroup(t corev1.PodTemplateSpec, schedulerName string) bool {
	return t.Spec.SchedulerName == schedulerName && groupName(&corev1.Pod{ObjectMeta: t.ObjectMeta}) == ""
}
