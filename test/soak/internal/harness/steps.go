// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/checker"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/scenario"
)

// reconcilePeriod is the time between reconciliations of jobs.
const reconcilePeriod = 200 * time.Millisecond

// foreignPods is the namespace of the pods that a client without a scheduler binds.
const foreignPods = "default"

// Play starts the scheduler and carries out the steps at their times.
func (s *Harness) Play(ctx context.Context, steps []scenario.Step) error {
	began := time.Now()
	for _, step := range steps {
		if err := s.reconcileUntil(ctx, began.Add(step.At)); err != nil {
			return err
		}
		s.Check(func(c *checker.Checker, now time.Time) { c.Disturbed(now, "scenario: "+step.String(), keysOf(step)...) })
		if err := s.step(ctx, step); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return context.Cause(ctx)
}

// keysOf returns the keys of the objects that a step concerns.
func keysOf(step scenario.Step) []string {
	return []string{"node " + step.Name, "queue " + step.Name, "pod " + foreignPods + "/" + step.Name,
		"job team-a/" + step.Name, "job team-b/" + step.Name, "job team-c/" + step.Name}
}

// reconcileUntil reconciles jobs until a time.
func (s *Harness) reconcileUntil(ctx context.Context, end time.Time) error {
	for {
		if err := s.reconcile(ctx); err != nil && ctx.Err() == nil {
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

func (s *Harness) step(ctx context.Context, step scenario.Step) error {
	switch step.Kind {
	case scenario.Submit:
		return s.submit(ctx, step.Job)
	case scenario.Remove, scenario.Scale, scenario.Reduce, scenario.Budget:
		if j := s.jobNamed(step.Name); j != nil {
			return s.stepOfJob(ctx, j, step)
		}
		return nil
	case scenario.Unbudget:
		for _, namespace := range scenario.Namespaces() {
			if err := gone(s.client.PolicyV1().PodDisruptionBudgets(namespace).Delete(ctx, step.Name, metav1.DeleteOptions{})); err != nil {
				return err
			}
		}
		return nil
	case scenario.NodeLoss, scenario.Drain, scenario.Delete, scenario.Cordon, scenario.NodeReturn:
		return s.stepOfNode(ctx, step)
	case scenario.Queue:
		return s.queue(ctx, step.Name, step.Limit)
	case scenario.Unqueue:
		return gone(s.batch.SchedulingV1alpha1().Queues().Delete(ctx, step.Name, metav1.DeleteOptions{}))
	case scenario.Priority:
		if err := gone(s.client.SchedulingV1().PriorityClasses().Delete(ctx, step.Name, metav1.DeleteOptions{})); err != nil {
			return err
		}
		return s.priority(ctx, step.Name, int32(step.Size))
	case scenario.Foreign:
		return s.foreign(ctx, step)
	case scenario.JobDelete:
		return s.deletePod(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: foreignPods, Name: step.Name}}, false)
	case scenario.Term, scenario.Kill:
		s.watching.Go(func() { s.supervisor.restart(ctx, step.Kind == scenario.Kill, step.Pause) })
		return nil
	}
	return fmt.Errorf("unknown kind of step")
}

func (s *Harness) stepOfJob(ctx context.Context, j *job, step scenario.Step) error {
	switch step.Kind {
	case scenario.Remove:
		return s.remove(ctx, j)
	case scenario.Reduce:
		active, _, _ := s.podsOf(j)
		for _, name := range active[:min(step.Size, len(active))] {
			if err := s.deletePod(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: name}}, step.Size == 1); err != nil {
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
		_, err := s.batch.SchedulingV1alpha1().PodGroups(j.Namespace).Patch(ctx, j.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	stay := intstr.FromInt32(int32(step.Size))
	_, err := s.client.PolicyV1().PodDisruptionBudgets(j.Namespace).Create(ctx, &policyv1.PodDisruptionBudget{
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

func (s *Harness) stepOfNode(ctx context.Context, step scenario.Step) error {
	nodes := s.client.CoreV1().Nodes()
	patch := func(kind types.PatchType, text string, subresources ...string) error {
		_, err := nodes.Patch(ctx, step.Name, kind, []byte(text), metav1.PatchOptions{}, subresources...)
		return gone(err)
	}
	switch step.Kind {
	case scenario.Cordon:
		return patch(types.MergePatchType, `{"spec":{"unschedulable":true}}`)
	case scenario.Delete:
		return gone(nodes.Delete(ctx, step.Name, metav1.DeleteOptions{}))
	case scenario.NodeLoss: // like the node lifecycle controller
		if err := patch(types.StrategicMergePatchType, `{"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}`, "status"); err != nil {
			return err
		}
		return patch(types.MergePatchType, `{"spec":{"taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoSchedule"},{"key":"node.kubernetes.io/unreachable","effect":"NoExecute"}]}}`)
	case scenario.Drain:
		for _, p := range s.podsOn(step.Name) {
			if err := s.deletePod(ctx, p, true); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := nodes.Create(ctx, s.nodes[step.Name].DeepCopy(), metav1.CreateOptions{})
	if err == nil || !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err = patch(types.MergePatchType, `{"spec":{"taints":null,"unschedulable":null}}`); err != nil {
		return err
	}
	return patch(types.StrategicMergePatchType, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status")
}

func (s *Harness) podsOn(node string) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pods []*corev1.Pod
	for _, p := range s.pods {
		if p.Spec.NodeName == node {
			pods = append(pods, p)
		}
	}
	return pods
}

// queue creates or changes a queue. It applies because the API server delays a create, but not an apply, while the
// kind is new.
func (s *Harness) queue(ctx context.Context, name string, l scenario.Limit) error {
	capability := map[string]int{}
	if l.CPU > 0 {
		capability["cpu"] = l.CPU
	}
	if l.GPU > 0 {
		capability[string(gpu)] = l.GPU
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "Queue", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"weight": max(1, l.Weight), "capability": capability},
	})
	if err != nil {
		return err
	}
	force := true
	_, err = s.batch.SchedulingV1alpha1().Queues().Patch(ctx, name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "soak", Force: &force})
	return err
}

// foreign binds a pod without the scheduler, to a node with enough resources from the view of a client.
func (s *Harness) foreign(ctx context.Context, step scenario.Step) error {
	pod := newPod(step.Name, foreignPods, "plain", corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(step.Milli), resource.DecimalSI)})
	node, fits := scenario.Nodes()[step.Node], false
	s.Check(func(c *checker.Checker, _ time.Time) {
		fits = capacity.Lacking(capacity.Request(pod), c.Available(node)) == ""
	})
	if !fits {
		return nil
	}
	pods := s.client.CoreV1().Pods(foreignPods)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	return pods.Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}
