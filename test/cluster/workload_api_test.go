// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// TestWorkloadAPI checks that the API for groups of pods is served only on request, also by a control plane that served
// the same cluster without it before.
func TestWorkloadAPI(t *testing.T) {
	c, client := start(t, cluster.Options{Nodes: 1, ControllerManager: true, Restartable: true})
	namespace := newNamespace(t, client, "groups")
	group := &schedulingv1alpha2.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "gang", Namespace: namespace},
		Spec: schedulingv1alpha2.PodGroupSpec{SchedulingPolicy: schedulingv1alpha2.PodGroupSchedulingPolicy{
			Gang: &schedulingv1alpha2.GangSchedulingPolicy{MinCount: 2},
		}, DisruptionMode: ptr.To(schedulingv1alpha2.DisruptionModePod)},
	}
	groups := client.SchedulingV1alpha2().PodGroups(namespace)
	if _, err := groups.Create(t.Context(), group, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("without the option: got error %v, want not found", err)
	}
	if got := groupOf(t, client, namespace, "before"); got != "" {
		t.Fatalf("without the option: the pod keeps group %q", got)
	}

	c.Kill()
	err := c.Restart(t.Context(), func(o *cluster.Options) {
		o.WorkloadAPI, o.FeatureGates = true, []string{"WorkloadWithJob=true"}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = groups.Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	read, err := groups.Get(t.Context(), "gang", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(group.Spec, read.Spec); diff != "" {
		t.Errorf("PodGroup (-created +read):\n%s", diff)
	}
	if got := groupOf(t, client, namespace, "after"); got != "gang" {
		t.Errorf("the pod has group %q, want gang", got)
	}
	if err = groups.Delete(t.Context(), "gang", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, client, namespace, "after")
	eventually(t, "the PodGroup is gone after its last pod", func(ctx context.Context) (bool, error) {
		_, err := groups.Get(ctx, "gang", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	testWorkloadOfJob(t, client, namespace)
}

// groupOf creates a pod that names the PodGroup gang, and returns the group that the API server has stored.
func groupOf(t *testing.T, client kubernetes.Interface, namespace, name string) string {
	t.Helper()
	pod := newPod(name, "", nil)
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("gang")}
	create(t, client, namespace, pod)
	read, err := client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if read.Spec.SchedulingGroup == nil {
		return ""
	}
	return ptr.Deref(read.Spec.SchedulingGroup.PodGroupName, "")
}

// testWorkloadOfJob checks that the Job controller creates a gang for an indexed Job.
func testWorkloadOfJob(t *testing.T, client kubernetes.Interface, namespace string) {
	_, err := client.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: batchv1.JobSpec{
			Completions: ptr.To[int32](2), Parallelism: ptr.To[int32](2), CompletionMode: ptr.To(batchv1.IndexedCompletion),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "image"}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pods of the Job name its gang", func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=job"})
		if err != nil || len(pods.Items) != 2 || pods.Items[0].Spec.SchedulingGroup == nil {
			return false, err
		}
		name := ptr.Deref(pods.Items[0].Spec.SchedulingGroup.PodGroupName, "")
		group, err := client.SchedulingV1alpha2().PodGroups(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		gang := group.Spec.SchedulingPolicy.Gang
		return gang != nil && gang.MinCount == 2 && metav1.GetControllerOf(group).Kind == "Job", nil
	})
}
