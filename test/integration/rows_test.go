// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// Labels by which a picture sorts pods and groups. They mean nothing to the scheduler.
const (
	jobLabel = "test/job"
	setLabel = "test/set"
)

// creators is how many objects of a row are created at the same time.
const creators = 16

// A row makes or changes something in the cluster of a case, as an administrator. It fails the
// test if the API server does not agree.
type row func(*harness)

func rows(list ...row) []row { return list }

// nodes are count nodes, prefix1 and so on, each with the given allocatable resources.
func nodes(prefix string, count int, allocatable string, edits ...func(*corev1.Node)) row {
	return func(h *harness) {
		h.each(count, func(i int) error {
			name := fmt.Sprint(prefix, i+1)
			_, err := h.client.CoreV1().Nodes().Create(h.ctx, newNode(name, allocatable, edits...), metav1.CreateOptions{})
			return err
		})
	}
}

// node is one node.
func node(name, allocatable string, edits ...func(*corev1.Node)) row {
	return func(h *harness) {
		_, err := h.client.CoreV1().Nodes().Create(h.ctx, newNode(name, allocatable, edits...), metav1.CreateOptions{})
		h.must(err)
	}
}

func newNode(name, allocatable string, edits ...func(*corev1.Node)) *corev1.Node {
	list := resources(allocatable)
	for resource, otherwise := range resources("64Gi 110pods") {
		if _, given := list[resource]; !given {
			list[resource] = otherwise
		}
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Capacity: list, Allocatable: list,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func inZone(zone string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone }
}

func tainted(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

// untaint removes all taints of all nodes.
func untaint(h *harness) {
	list, err := h.client.CoreV1().Nodes().List(h.ctx, metav1.ListOptions{})
	h.must(err)
	for _, n := range list.Items {
		_, err := h.client.CoreV1().Nodes().Patch(h.ctx, n.Name, types.MergePatchType,
			[]byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
		h.must(err)
	}
}

// queue is a queue with a weight; edits come after.
func queue(name string, weight int32, edits ...func(*v1alpha1.Queue)) row {
	return func(h *harness) {
		q := &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.QueueSpec{Weight: weight}}
		for _, edit := range edits {
			edit(q)
		}
		h.apply(q, v1alpha1.SchemeGroupVersion.WithKind("Queue"))
	}
}

// atMost caps a queue.
func atMost(capability string) func(*v1alpha1.Queue) {
	return func(q *v1alpha1.Queue) { q.Spec.Capability = resources(capability) }
}

// noQueue removes a queue.
func noQueue(name string) row {
	return func(h *harness) {
		h.must(h.batch.SchedulingV1alpha1().Queues().Delete(h.ctx, name, metav1.DeleteOptions{}))
	}
}

// priorityClass is a priority that pods and groups can name.
func priorityClass(name string, value int32) row {
	return func(h *harness) {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		_, err := h.client.SchedulingV1().PriorityClasses().Create(h.ctx, class, metav1.CreateOptions{})
		h.must(err)
	}
}

// part is something of a gang: pods, or a property of its group.
type part func(*gangParts)

type gangParts struct {
	group *v1alpha1.PodGroup
	pods  []*corev1.Pod
}

// gang is a PodGroup of which min pods start together, with its pods.
func gang(name string, min int32, parts ...part) row {
	return func(h *harness) {
		group(name, min, parts...)(h)
		members(name, parts...)(h)
	}
}

// group is a PodGroup without its pods.
func group(name string, min int32, parts ...part) row {
	return func(h *harness) {
		g := &gangParts{group: &v1alpha1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{jobLabel: name}},
			Spec:       v1alpha1.PodGroupSpec{MinMember: min},
		}}
		for _, p := range parts {
			p(g)
		}
		h.apply(g.group, v1alpha1.SchemeGroupVersion.WithKind("PodGroup"))
	}
}

// members are the pods of a gang, without its PodGroup.
func members(name string, parts ...part) row {
	return func(h *harness) {
		g := &gangParts{group: &v1alpha1.PodGroup{}}
		for _, p := range parts {
			p(g)
		}
		for _, p := range g.pods {
			p.Name = name + "-" + p.Name
			p.Labels[v1alpha1.LabelPodGroup] = name
			if p.Labels[jobLabel] == "" {
				p.Labels[jobLabel] = name
			}
		}
		h.create(g.pods)
	}
}

// in puts a group into a queue.
func in(queue string) part { return func(g *gangParts) { g.group.Spec.Queue = queue } }

// ofClass gives a group a priority class.
func ofClass(name string) part { return func(g *gangParts) { g.group.Spec.PriorityClassName = name } }

// labelled has pictures show the group with others as one job. It comes after the pods.
func labelled(job string) part {
	return func(g *gangParts) {
		g.group.Labels = map[string]string{jobLabel: job}
		for _, p := range g.pods {
			p.Labels[jobLabel] = job
		}
	}
}

// pods are count equal pods that each ask for the request; edits come after.
func pods(count int, request string, edits ...func(*corev1.Pod)) part {
	return set("", count, request, edits...)
}

// set is pods with a name of their own in pictures, for gangs of several kinds of pods.
func set(name string, count int, request string, edits ...func(*corev1.Pod)) part {
	return func(g *gangParts) {
		prefix := name
		if name != "" {
			prefix += "-"
		}
		for i := range count {
			pod := newPod(prefix+fmt.Sprint(i), request, edits...)
			pod.Labels[setLabel] = name
			g.pods = append(g.pods, pod)
		}
	}
}

// plain are pods without a PodGroup, with names of job-0 and so on.
func plain(job string, count int, request string, edits ...func(*corev1.Pod)) row {
	return func(h *harness) {
		var list []*corev1.Pod
		for i := range count {
			pod := newPod(fmt.Sprint(job, "-", i), request, edits...)
			pod.Labels[jobLabel] = job
			list = append(list, pod)
		}
		h.create(list)
	}
}

func newPod(name, request string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec:       podSpec(request),
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func podSpec(request string) corev1.PodSpec {
	asked := corev1.ResourceRequirements{Requests: resources(request)}
	if gpus, ok := asked.Requests["nvidia.com/gpu"]; ok { // must have a limit
		asked.Limits = corev1.ResourceList{"nvidia.com/gpu": gpus}
	}
	return corev1.PodSpec{
		SchedulerName: scheduler.Name,
		Containers:    []corev1.Container{{Name: "main", Image: "image", Resources: asked}},
	}
}

// resources reads "1.5cpu 2Gi 1gpu 110pods"; empty is nothing at all.
func resources(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for field := range strings.FieldsSeq(text) {
		if number, ok := strings.CutSuffix(field, "cpu"); ok {
			list[corev1.ResourceCPU] = resource.MustParse(number)
		} else if number, ok := strings.CutSuffix(field, "gpu"); ok {
			list["nvidia.com/gpu"] = resource.MustParse(number)
		} else if number, ok := strings.CutSuffix(field, "pods"); ok {
			list[corev1.ResourcePods] = resource.MustParse(number)
		} else {
			list[corev1.ResourceMemory] = resource.MustParse(field)
		}
	}
	return list
}

// each calls f for 0 to count-1, several at a time, and fails the test if one of them fails.
func (h *harness) each(count int, f func(i int) error) {
	h.t.Helper()
	errs := make([]error, count)
	workqueue.ParallelizeUntil(h.ctx, creators, count, func(i int) { errs[i] = f(i) })
	for _, err := range errs {
		h.must(err)
	}
}

func (h *harness) create(pods []*corev1.Pod) {
	h.t.Helper()
	h.each(len(pods), func(i int) error {
		_, err := h.client.CoreV1().Pods(pods[i].Namespace).Create(h.ctx, pods[i], metav1.CreateOptions{})
		return err
	})
}
