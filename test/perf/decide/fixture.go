// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

const (
	namespace     = "default"
	schedulerName = "batch-scheduler"

	// gpusPerNode is the number of GPUs of a node, and so the number of pods of one GPU that fill it.
	gpusPerNode = 8
)

// The priority classes of all fixtures.
const (
	low      = "low"
	high     = "high"
	critical = "system-cluster-critical"
)

func priorityOf(class string) int32 {
	return map[string]int32{low: 100, high: 1000, critical: 2_000_000_000}[class]
}

// fixture holds objects in the form of the API server. Every object is created one second after the previous one.
// Models do not modify objects, so one fixture serves many models.
type fixture struct {
	clock   time.Time
	queues  []*v1alpha1.Queue
	nodes   []*v1.Node
	groups  []*v1alpha1.PodGroup
	pods    []*v1.Pod
	running int // number of running pods

	topologies []*v1alpha1.Topology

	// Of drivers:
	classes []resourcev1.DeviceClass
	slices  []resourcev1.ResourceSlice
	claims  []resourcev1.ResourceClaim
}

// newFixture returns a fixture with equal nodes.
func newFixture(nodes int) *fixture {
	w := &fixture{clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	allocatable := amounts(64, 512, gpusPerNode)
	allocatable[v1.ResourcePods] = resource.MustParse("110")
	for i := range nodes {
		node := &v1.Node{
			ObjectMeta: w.meta(fmt.Sprintf("node-%04d", i)),
			Status: v1.NodeStatus{
				Allocatable: allocatable, Capacity: allocatable,
				Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
			},
		}
		node.Namespace, node.Labels[v1.LabelHostname] = "", node.Name
		w.nodes = append(w.nodes, node)
	}
	return w
}

// amounts returns a resource list of cores, GiB and GPUs.
func amounts(cpus, gibibytes, gpus int64) v1.ResourceList {
	list := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewQuantity(cpus, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(gibibytes<<30, resource.BinarySI),
	}
	if gpus > 0 {
		list["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	return list
}

func (w *fixture) meta(name string) metav1.ObjectMeta {
	w.clock = w.clock.Add(time.Second)
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(w.clock),
		Labels: map[string]string{}, Annotations: map[string]string{},
	}
}

// gpus returns the number of GPUs of all nodes.
func (w *fixture) gpus() int { return len(w.nodes) * gpusPerNode }

func (w *fixture) addQueue(name string, weight int32) {
	queue := &v1alpha1.Queue{ObjectMeta: w.meta(name), Spec: v1alpha1.QueueSpec{Weight: weight}}
	queue.Namespace = ""
	w.queues = append(w.queues, queue)
}

// job is a PodGroup with equal pods.
type job struct {
	name, queue string
	class       string // of the group and its pods; system classes only of the pods
	min, size   int
	gpus        int64 // per pod, with cpu and memory in proportion; 0: one core and no GPU
	runs        bool  // on the nodes, round-robin; else all pods are pending

	asks  v1.ResourceList // requests of each pod; nil: from gpus
	alter func(*v1.Pod)   // further changes of the pods; nil: none
}

// single is a job of one pod with one GPU.
func single(name, queue, class string) job {
	return job{name: name, queue: queue, class: class, min: 1, size: 1, gpus: 1}
}

func (j job) running() job {
	j.runs = true
	return j
}

func (w *fixture) add(j job) {
	group := &v1alpha1.PodGroup{
		ObjectMeta: w.meta(j.name),
		Spec:       v1alpha1.PodGroupSpec{MinMember: int32(j.min), Queue: j.queue},
	}
	if j.class != critical {
		group.Spec.PriorityClassName = j.class
	}
	w.groups = append(w.groups, group)
	for i := range j.size {
		pod := newPod(w.meta(fmt.Sprintf("%s-%04d", j.name, i)), j)
		if j.runs {
			pod.Spec.NodeName = w.nodes[w.running%len(w.nodes)].Name
			pod.Status.Phase = v1.PodRunning
			pod.Annotations[v1alpha1.AnnotationQueue] = j.queue
			pod.Annotations[v1alpha1.AnnotationPodGroupUID] = string(group.UID)
			w.running++
		}
		w.pods = append(w.pods, pod)
	}
}

func newPod(meta metav1.ObjectMeta, j job) *v1.Pod {
	requests := amounts(4*j.gpus, 32*j.gpus, j.gpus)
	switch {
	case j.asks != nil:
		requests = j.asks
	case j.gpus == 0:
		requests = amounts(1, 1, 0)
	}
	priority := priorityOf(j.class)
	meta.Labels[v1alpha1.LabelPodGroup] = j.name
	pod := &v1.Pod{
		ObjectMeta: meta,
		Spec: v1.PodSpec{
			SchedulerName: schedulerName, PriorityClassName: j.class, Priority: &priority,
			Containers: []v1.Container{{Name: "main", Image: "image", Resources: v1.ResourceRequirements{Requests: requests}}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	if j.alter != nil {
		j.alter(pod)
	}
	return pod
}

// ended returns the pod in phase Succeeded.
func ended(pod *v1.Pod) *v1.Pod {
	copied := *pod
	copied.Status.Phase = v1.PodSucceeded
	return &copied
}

// model returns a new model with all objects.
func (w *fixture) model() *model.Cluster {
	c := model.NewCluster(model.Options{SchedulerNames: []string{schedulerName}, DefaultQueue: "default"})
	c.Events().SetNamespace(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	for _, name := range []string{low, high, critical} {
		c.Events().SetPriorityClass(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: priorityOf(name)})
	}
	w.applyTo(c)
	return c
}

// applyTo adds the objects to a model.
func (w *fixture) applyTo(c *model.Cluster) {
	for _, q := range w.queues {
		c.Events().SetQueue(q)
	}
	for _, n := range w.nodes {
		c.Events().SetNode(n)
	}
	for _, t := range w.topologies {
		model.TopologiesOf(c).Set(t)
	}
	for _, g := range w.groups {
		c.Events().SetPodGroup(g)
	}
	for _, p := range w.pods {
		c.Events().SetPod(p)
	}
	c.Events().Recompute()
}
