// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// GPU is the extended resource that pods with GPUs request.
const GPU corev1.ResourceName = "nvidia.com/gpu"

// creators is the number of concurrent creations.
const creators = 16

// Gang is a group of equal pods that start together.
type Gang struct {
	Name        string
	Size        int
	CPUs        int64             // that each pod requests; 0: 1
	GPUs        int64             // that each pod requests of a device class
	Annotations map[string]string // of the pods
	// PriorityClass is that of the pods; empty for the default.
	PriorityClass string
	// Furnished pods have typical fields that a scheduler does not need.
	Furnished bool
}

// Gangs returns equal gangs, numbered from 0.
func Gangs(count, size int) []Gang {
	gangs := make([]Gang, count)
	for i := range gangs {
		gangs[i] = Gang{Name: fmt.Sprintf("gang-%04d", i), Size: size}
	}
	return gangs
}

// Pod returns a member; the first is number 0.
func (g Gang) Pod(member int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("%s-%03d", g.Name, member),
			Labels:      map[string]string{v1alpha1.LabelPodGroup: g.Name},
			Annotations: g.Annotations,
		},
		Spec: corev1.PodSpec{
			SchedulerName:     scheduler.Name,
			PriorityClassName: g.PriorityClass,
			Containers: []corev1.Container{{Name: "main", Image: "image", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(max(g.CPUs, 1), resource.DecimalSI)},
			}}},
		},
	}
	if g.GPUs > 0 {
		resources, gpus := &pod.Spec.Containers[0].Resources, *resource.NewQuantity(g.GPUs, resource.DecimalSI)
		resources.Requests[GPU], resources.Limits = gpus, corev1.ResourceList{GPU: gpus}
	}
	if g.Furnished {
		furnish(pod)
	}
	return pod
}

// Pods returns all members of all gangs, gang by gang.
func Pods(gangs []Gang) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, g := range gangs {
		for member := range g.Size {
			pods = append(pods, g.Pod(member))
		}
	}
	return pods
}

// Workload creates, deletes, observes and checks the pods and groups of a measurement, as an administrator.
type Workload struct {
	Client kubernetes.Interface
	Batch  versioned.Interface

	progress Progress
}

// Submit creates all groups, then all pods, gang by gang.
func (w *Workload) Submit(ctx context.Context, gangs ...Gang) error {
	if err := w.CreateGroups(ctx, gangs...); err != nil {
		return err
	}
	return w.Create(ctx, Pods(gangs))
}

// furnish adds typical fields to a pod.
func furnish(pod *corev1.Pod) {
	main := &pod.Spec.Containers[0]
	main.Command = []string{"/usr/bin/python3", "-m", "train", "--config=/etc/train/config.yaml"}
	for i := range 10 {
		main.Env = append(main.Env, corev1.EnvVar{Name: fmt.Sprintf("TRAIN_SETTING_%d", i), Value: "a value as long as such values are"})
	}
	for _, name := range []string{"config", "scratch"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/var/" + name})
	}
}

// Remove deletes the pods of gangs without a grace period, and their groups. It ignores objects that do not exist.
func (w *Workload) Remove(ctx context.Context, gangs ...Gang) error {
	pods := Pods(gangs)
	if err := each(ctx, len(pods), func(i int) error { return w.Delete(ctx, pods[i].Name) }); err != nil {
		return err
	}
	return each(ctx, len(gangs), func(i int) error { return w.DeleteGroup(ctx, gangs[i].Name) })
}

// Delete deletes a pod immediately. It is no error if the pod no longer exists.
func (w *Workload) Delete(ctx context.Context, pod string) error {
	return ignoreNotFound(w.Client.CoreV1().Pods(Namespace).Delete(ctx, pod, *metav1.NewDeleteOptions(0)))
}

// DeleteGroup deletes a PodGroup. It is no error if it no longer exists.
func (w *Workload) DeleteGroup(ctx context.Context, name string) error {
	return ignoreNotFound(w.Batch.SchedulingV1alpha1().PodGroups(Namespace).Delete(ctx, name, metav1.DeleteOptions{}))
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// CreateGroups creates the groups of gangs, without pods.
func (w *Workload) CreateGroups(ctx context.Context, gangs ...Gang) error {
	return each(ctx, len(gangs), func(i int) error { return w.createGroup(ctx, gangs[i]) })
}

// createGroup applies a group: the API server delays a create, but not an apply, while the kind is new.
func (w *Workload) createGroup(ctx context.Context, g Gang) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "PodGroup",
		"metadata": map[string]any{"name": g.Name},
		"spec":     map[string]any{"minMember": g.Size},
	})
	if err != nil {
		return err
	}
	_, err = w.Batch.SchedulingV1alpha1().PodGroups(Namespace).Patch(ctx, g.Name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: "testbed"})
	return err
}

// Create creates pods in order, several at a time.
func (w *Workload) Create(ctx context.Context, pods []*corev1.Pod) error {
	return each(ctx, len(pods), func(i int) error {
		_, err := w.Client.CoreV1().Pods(Namespace).Create(ctx, pods[i], metav1.CreateOptions{})
		return err
	})
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

// Findings counts what is bound incorrectly.
type Findings struct {
	PartialGangs       int `json:"partial_gangs"`       // some pods have a node, but fewer than minMember
	OvercommittedNodes int `json:"overcommitted_nodes"` // requests of pods exceed the capacity
	RejectedPods       int `json:"rejected_pods"`       // by kubelets
}

// Problem describes the first finding; empty if there is none.
func (f Findings) Problem() string {
	switch {
	case f.PartialGangs > 0:
		return fmt.Sprintf("%d gangs are bound in part", f.PartialGangs)
	case f.OvercommittedNodes > 0:
		return fmt.Sprintf("%d nodes are overcommitted", f.OvercommittedNodes)
	case f.RejectedPods > 0:
		return fmt.Sprintf("%d pods were rejected by their nodes", f.RejectedPods)
	}
	return ""
}

// Inspect checks the bound pods of the gangs.
func (w *Workload) Inspect(ctx context.Context, gangs []Gang) (Findings, error) {
	pods, err := w.Client.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return Findings{}, fmt.Errorf("listing pods: %w", err)
	}
	nodes, err := w.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return Findings{}, fmt.Errorf("listing nodes: %w", err)
	}
	return inspect(nodes.Items, pods.Items, gangs), nil
}

func inspect(nodes []corev1.Node, pods []corev1.Pod, gangs []Gang) Findings {
	f := Findings{PartialGangs: partialGangs(pods, gangs), OvercommittedNodes: overcommitted(nodes, pods)}
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodFailed {
			f.RejectedPods++
		}
	}
	return f
}

func partialGangs(pods []corev1.Pod, gangs []Gang) int {
	bound := map[string]int{}
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			bound[pods[i].Labels[v1alpha1.LabelPodGroup]]++
		}
	}
	partial := 0
	for _, g := range gangs {
		if n := bound[g.Name]; n > 0 && n < g.Size {
			partial++
		}
	}
	return partial
}

// overcommitted counts nodes whose pods request more than the capacity of any resource, including the number of pods.
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
			if _, lists := nodes[i].Status.Allocatable[name]; !lists && name == GPU {
				continue // devices, which claims allocate
			}
			if amount.Cmp(nodes[i].Status.Allocatable[name]) > 0 {
				over++
				break
			}
		}
	}
	return over
}
