package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

const (
	namespace = "default"

	// creators is how many objects are created at the same time.
	creators = 16
)

// createGangs creates all groups, then all pods, gang by gang.
func createGangs(ctx context.Context, c *cluster.Cluster, client kubernetes.Interface, o options) error {
	batch, err := versioned.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	if err := each(ctx, o.gangs, func(i int) error { return createGroup(ctx, batch, i, o.size) }); err != nil {
		return err
	}
	return createPods(ctx, client, o)
}

// createGroup applies a group: unlike a create, the API server does not hold that back when the
// kind is new.
func createGroup(ctx context.Context, batch versioned.Interface, number, size int) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "PodGroup",
		"metadata": map[string]any{"name": gangName(number)},
		"spec":     map[string]any{"minMember": size},
	})
	if err != nil {
		return err
	}
	_, err = batch.SchedulingV1alpha1().PodGroups(namespace).Patch(ctx, gangName(number), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: "drain"})
	return err
}

func createPods(ctx context.Context, client kubernetes.Interface, o options) error {
	return each(ctx, o.pods(), func(i int) error {
		_, err := client.CoreV1().Pods(namespace).Create(ctx, newPod(i/o.size, i%o.size), metav1.CreateOptions{})
		return err
	})
}

func gangName(number int) string { return fmt.Sprintf("gang-%04d", number) }

func newPod(gang, member int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("%s-%03d", gangName(gang), member),
			Labels: map[string]string{v1alpha1.LabelPodGroup: gangName(gang)},
		},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler.Name,
			Containers: []corev1.Container{{Name: "main", Image: "image", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}}},
		},
	}
}

// each calls f for 0 to count-1, several at a time, and returns the first error.
func each(ctx context.Context, count int, f func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, creators, count, func(i int) {
		if err := f(i); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// partialGangs counts gangs of which some pods have a node, but fewer than size.
func partialGangs(pods []corev1.Pod, size int) int {
	bound := map[string]int{}
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			bound[pods[i].Labels[v1alpha1.LabelPodGroup]]++
		}
	}
	partial := 0
	for _, n := range bound {
		if n < size {
			partial++
		}
	}
	return partial
}

// overcommitted counts nodes whose pods ask for more than there is of anything, their number
// included.
func overcommitted(nodes []corev1.Node, pods []corev1.Pod) int {
	used := map[string]corev1.ResourceList{}
	for i := range pods {
		node := pods[i].Spec.NodeName
		if used[node] == nil {
			used[node] = corev1.ResourceList{}
		}
		asked := resourcehelper.PodRequests(&pods[i], resourcehelper.PodResourcesOptions{})
		asked[corev1.ResourcePods] = resource.MustParse("1")
		for name, amount := range asked {
			sum := used[node][name]
			sum.Add(amount)
			used[node][name] = sum
		}
	}
	over := 0
	for i := range nodes {
		for name, amount := range used[nodes[i].Name] {
			if amount.Cmp(nodes[i].Status.Allocatable[name]) > 0 {
				over++
				break
			}
		}
	}
	return over
}
