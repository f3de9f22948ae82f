// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/scenario"
)

const (
	// reconcilePeriod is the time between reconciliations of jobs.
	reconcilePeriod = 200 * time.Millisecond

	jobLabel = "soak/job"
	gpu      = corev1.ResourceName("example.com/gpu")
)

// job is a job and the pods created for it.
type job struct {
	scenario.Job
	serial int
	made   map[string]bool // by name; true once a watch has shown the pod
}

// clients are those of an administrator.
type clients struct {
	client kubernetes.Interface
	batch  versioned.Interface
}

func (c clients) deletePod(ctx context.Context, p *corev1.Pod, now bool) error {
	o := metav1.DeleteOptions{}
	if now {
		o.GracePeriodSeconds = ptr.To[int64](0)
	}
	return gone(c.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, o))
}

// controller owns the jobs, and creates and deletes their pods.
type controller struct {
	clients
	observer *observer
	jobs     []*job // in the order of their creation
}

// reconcile creates pods for jobs like a controller: as many as desired, including replacements of failed and deleted
// ones.
func (c *controller) reconcile(ctx context.Context) error {
	for _, j := range c.jobs {
		if err := c.reconcileJob(ctx, j); err != nil {
			return fmt.Errorf("job %s: %w", j.Name, err)
		}
	}
	return nil
}

// reconcileUntil reconciles jobs until a time.
func (c *controller) reconcileUntil(ctx context.Context, end time.Time) error {
	for {
		if err := c.reconcile(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		pause := min(reconcilePeriod, time.Until(end))
		if pause <= 0 {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *controller) reconcileJob(ctx context.Context, j *job) error {
	active, succeeded, failed := c.podsOf(j)
	for _, p := range failed {
		if err := c.deletePod(ctx, p, false); err != nil {
			return err
		}
	}
	for n := len(active) + succeeded; n < j.Size; n++ {
		name := j.Name + "-" + strconv.Itoa(j.serial)
		j.serial++
		_, err := c.client.CoreV1().Pods(j.Namespace).Create(ctx, podOf(j.Job, name), metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return nil // its priority class does not exist now
		}
		if err != nil {
			return err
		}
		j.made[name] = false
	}
	for n := len(active) + succeeded; n > j.Size && len(active) > 0; n-- {
		last := active[len(active)-1]
		active = active[:len(active)-1]
		if err := c.deletePod(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: last}}, false); err != nil {
			return err
		}
	}
	return nil
}

// podsOf returns the pods of a job by state, the active ones by age.
func (c *controller) podsOf(j *job) (active []string, succeeded int, failed []*corev1.Pod) {
	c.observer.mu.Lock()
	defer c.observer.mu.Unlock()
	for name, seen := range j.made {
		p := c.observer.pods[j.Namespace+"/"+name]
		switch {
		case p == nil && seen:
			delete(j.made, name)
			continue
		case p == nil:
			active = append(active, name)
			continue
		}
		j.made[name] = true
		switch {
		case p.Status.Phase == corev1.PodSucceeded:
			succeeded++
		case p.DeletionTimestamp != nil:
		case capacity.Ended(p):
			failed = append(failed, p)
		default:
			active = append(active, name)
		}
	}
	number := func(name string) int {
		n, _ := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
		return n
	}
	slices.SortFunc(active, func(a, b string) int { return number(a) - number(b) })
	return active, succeeded, failed
}

// gone ignores a NotFound error.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func podOf(j scenario.Job, name string) *corev1.Pod {
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(j.Milli), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(j.Memory)<<20, resource.BinarySI),
	}
	if j.GPU > 0 {
		requests[gpu] = *resource.NewQuantity(int64(j.GPU), resource.DecimalSI)
	}
	p := newPod(name, j.Namespace, scheduler.Name, requests)
	p.Labels = map[string]string{jobLabel: j.Name}
	p.Spec.PriorityClassName = j.Priority
	switch {
	case j.Gang:
		p.Labels[v1alpha1.LabelPodGroup] = j.Name
	case j.Queue != "":
		p.Labels[v1alpha1.LabelQueue] = j.Queue
	}
	if j.Zone != "" {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: j.Zone}
	}
	p.Annotations = map[string]string{annotation.TerminateAfter: j.Terminate.String()}
	if j.RunFor > 0 {
		p.Annotations[annotation.RunFor] = j.RunFor.String()
	}
	return p
}

func newPod(name, namespace, schedulerName string, requests corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{SchedulerName: schedulerName, Containers: []corev1.Container{{
			Name: "main", Image: "image", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
		}}},
	}
}

// submit creates a job, and its group if it is a gang.
func (c *controller) submit(ctx context.Context, wanted scenario.Job) error {
	c.jobs = append(c.jobs, &job{Job: wanted, made: map[string]bool{}})
	if !wanted.Gang {
		return nil
	}
	_, err := c.batch.SchedulingV1alpha1().PodGroups(wanted.Namespace).Create(ctx, &v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: wanted.Name, Namespace: wanted.Namespace},
		Spec:       v1alpha1.PodGroupSpec{MinMember: int32(wanted.Min), Queue: wanted.Queue},
	}, metav1.CreateOptions{})
	return err
}

// remove deletes a job with its pods and its group.
func (c *controller) remove(ctx context.Context, j *job) error {
	c.jobs = slices.DeleteFunc(c.jobs, func(other *job) bool { return other == j })
	err := c.client.CoreV1().Pods(j.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: jobLabel + "=" + j.Name})
	if err == nil && j.Gang {
		err = gone(c.batch.SchedulingV1alpha1().PodGroups(j.Namespace).Delete(ctx, j.Name, metav1.DeleteOptions{}))
	}
	if err == nil {
		err = gone(c.client.PolicyV1().PodDisruptionBudgets(j.Namespace).Delete(ctx, j.Name, metav1.DeleteOptions{}))
	}
	return err
}

func (c *controller) named(name string) *job {
	for _, j := range c.jobs {
		if j.Name == name {
			return j
		}
	}
	return nil
}

// step carries out a step that changes a job.
func (c *controller) step(ctx context.Context, j *job, step scenario.Step) error {
	switch step.Kind {
	case scenario.Remove:
		return c.remove(ctx, j)
	case scenario.Reduce:
		active, _, _ := c.podsOf(j)
		for _, name := range active[:min(step.Size, len(active))] {
			if err := c.deletePod(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: name}}, step.Size == 1); err != nil {
				return err
			}
		}
		return nil
	case scenario.Scale:
		j.Size = step.Size
		if !j.Gang || j.Min == step.Min {
			return nil
		}
		j.Min = step.Min
		patch := fmt.Sprintf(`{"spec":{"minMember":%d}}`, step.Min)
		_, err := c.batch.SchedulingV1alpha1().PodGroups(j.Namespace).Patch(ctx, j.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	stay := intstr.FromInt32(int32(step.Size))
	_, err := c.client.PolicyV1().PodDisruptionBudgets(j.Namespace).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &stay, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{jobLabel: j.Name}},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
