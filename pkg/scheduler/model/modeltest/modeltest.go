// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package modeltest creates small models and their objects, for tests of what reads a model without a cluster: the
// framework, the node indexes, and what actions are built from. Scenarios of plugins and actions use schedtest instead.
package modeltest

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

const schedulerName = "ours"

// NewCluster returns a model with queues of weight 1, the first of which is the default queue. Without arguments it has
// one queue, with the name default.
func NewCluster(queues ...string) *model.Cluster {
	if len(queues) == 0 {
		queues = []string{"default"}
	}
	c := model.NewCluster(model.Options{SchedulerNames: []string{schedulerName}, DefaultQueue: api.QueueID(queues[0])})
	for _, name := range queues {
		c.Events().SetQueue(&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1alpha1.QueueSpec{Weight: 1}})
	}
	return c
}

// Node returns a node with an amount of cpus and 10 pods.
func Node(name string, cpus int, changes ...func(*v1.Node)) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{}}}
	n.Status.Allocatable = amount(cpus)
	MaxPods(10)(n)
	for _, change := range changes {
		change(n)
	}
	return n
}

// MaxPods sets the number of pods of a node.
func MaxPods(count int) func(*v1.Node) {
	return func(n *v1.Node) { n.Status.Allocatable[v1.ResourcePods] = resource.MustParse(strconv.Itoa(count)) }
}

// Pod returns a pending pod in the namespace ns that requests an amount of cpus. Its UID is its name.
func Pod(name string, cpus int, changes ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{
			SchedulerName: schedulerName,
			Containers:    []v1.Container{{Resources: v1.ResourceRequirements{Requests: amount(cpus)}}},
		},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// On sets the node of a pod.
func On(node string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.NodeName = node } }

// InGroup makes a pod a member of a PodGroup.
func InGroup(name string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Labels = map[string]string{v1alpha1.LabelPodGroup: name} }
}

// Group returns a PodGroup in the namespace ns. Its UID is its name.
func Group(name string, minMember int, changes ...func(*v1alpha1.PodGroup)) *v1alpha1.PodGroup {
	g := &v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       v1alpha1.PodGroupSpec{MinMember: int32(minMember)},
	}
	for _, change := range changes {
		change(g)
	}
	return g
}

func amount(cpus int) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(int64(cpus), resource.DecimalSI)}
}
