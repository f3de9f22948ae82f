// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/checker"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/scenario"
)

// foreignPods is the namespace of the pods that a client without a scheduler binds.
const foreignPods = "default"

// player carries out the steps of a scenario.
type player struct {
	clients
	observer   *observer
	jobs       *controller
	supervisor *supervisor
	nodes      map[string]*corev1.Node // as they were created
}

// createObjects creates the initial objects.
func (p *player) createObjects(ctx context.Context) error {
	for _, class := range scenario.Priorities() {
		if err := p.priority(ctx, class, scenario.Value(class)); err != nil {
			return err
		}
	}
	for _, name := range scenario.Namespaces() {
		_, err := p.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			_, missing := p.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			return missing == nil, nil
		})
		if err != nil {
			return fmt.Errorf("waiting for the service account of namespace %s: %w", name, err)
		}
	}
	list, err := p.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, n := range list.Items {
		p.nodes[n.Name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}, Status: n.Status}
	}
	for _, name := range scenario.Nodes() {
		if p.nodes[name] == nil {
			return fmt.Errorf("there is no node %s", name)
		}
	}
	return nil
}

// keysOf returns the keys of the objects that a step concerns.
func keysOf(step scenario.Step) []string {
	return []string{"node " + step.Name, "queue " + step.Name, "pod " + foreignPods + "/" + step.Name,
		"job team-a/" + step.Name, "job team-b/" + step.Name, "job team-c/" + step.Name}
}

func (p *player) step(ctx context.Context, step scenario.Step) error {
	switch step.Kind {
	case scenario.Submit:
		return p.jobs.submit(ctx, step.Job)
	case scenario.Remove, scenario.Scale, scenario.Reduce, scenario.Budget:
		if j := p.jobs.named(step.Name); j != nil {
			return p.jobs.step(ctx, j, step)
		}
		return nil
	case scenario.Unbudget:
		for _, namespace := range scenario.Namespaces() {
			if err := gone(p.client.PolicyV1().PodDisruptionBudgets(namespace).Delete(ctx, step.Name, metav1.DeleteOptions{})); err != nil {
				return err
			}
		}
		return nil
	case scenario.NodeLoss, scenario.Drain, scenario.Delete, scenario.Cordon, scenario.NodeReturn:
		return p.stepOfNode(ctx, step)
	case scenario.Queue:
		return p.queue(ctx, step.Name, step.Limit)
	case scenario.Unqueue:
		return gone(p.batch.SchedulingV1alpha1().Queues().Delete(ctx, step.Name, metav1.DeleteOptions{}))
	case scenario.Priority:
		if err := gone(p.client.SchedulingV1().PriorityClasses().Delete(ctx, step.Name, metav1.DeleteOptions{})); err != nil {
			return err
		}
		return p.priority(ctx, step.Name, int32(step.Size))
	case scenario.Foreign:
		return p.foreign(ctx, step)
	case scenario.JobDelete:
		return p.deletePod(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: foreignPods, Name: step.Name}}, false)
	case scenario.Term, scenario.Kill:
		p.observer.watching.Go(func() { p.supervisor.restart(ctx, step.Kind == scenario.Kill, step.Pause) })
		return nil
	}
	return fmt.Errorf("unknown kind of step")
}

func (p *player) stepOfNode(ctx context.Context, step scenario.Step) error {
	nodes := p.client.CoreV1().Nodes()
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
		for _, pod := range p.observer.podsOn(step.Name) {
			if err := p.deletePod(ctx, pod, true); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := nodes.Create(ctx, p.nodes[step.Name].DeepCopy(), metav1.CreateOptions{})
	if err == nil || !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err = patch(types.MergePatchType, `{"spec":{"taints":null,"unschedulable":null}}`); err != nil {
		return err
	}
	return patch(types.StrategicMergePatchType, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status")
}

// queue creates or changes a queue. It applies because the API server delays a create, but not an apply, while the
// kind is new.
func (p *player) queue(ctx context.Context, name string, l scenario.Limit) error {
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
	_, err = p.batch.SchedulingV1alpha1().Queues().Patch(ctx, name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "soak", Force: &force})
	return err
}

// foreign binds a pod without the scheduler, to a node with enough resources from the view of a client.
func (p *player) foreign(ctx context.Context, step scenario.Step) error {
	pod := newPod(step.Name, foreignPods, "plain", corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(step.Milli), resource.DecimalSI)})
	node, fits := scenario.Nodes()[step.Node], false
	p.observer.Check(func(c *checker.Checker, _ time.Time) {
		fits = capacity.Lacking(capacity.Request(pod), c.Available(node)) == ""
	})
	if !fits {
		return nil
	}
	pods := p.client.CoreV1().Pods(foreignPods)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	return pods.Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}

func (p *player) priority(ctx context.Context, name string, value int32) error {
	_, err := p.client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value,
	}, metav1.CreateOptions{})
	return err
}
