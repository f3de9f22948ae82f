// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package fakecluster

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// SchedulerName is the scheduler of all pods that Member and Gang return.
const SchedulerName = "batch-scheduler"

// Node returns a node with 8 CPUs.
func Node(name string) *v1.Node {
	allocatable := v1.ResourceList{v1.ResourceCPU: resource.MustParse("8"), v1.ResourcePods: resource.MustParse("110")}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name)},
		Status:     v1.NodeStatus{Capacity: allocatable, Allocatable: allocatable},
	}
}

// PodGroup returns a PodGroup of the default queue.
func PodGroup(name string, minMember int32) *v1alpha1.PodGroup {
	return &v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("group-" + name), Generation: 1},
		Spec:       v1alpha1.PodGroupSpec{MinMember: minMember},
	}
}

// Queue returns a queue of weight 1.
func Queue(name string) *v1alpha1.Queue {
	return &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("queue-" + name)}, Spec: v1alpha1.QueueSpec{Weight: 1}}
}

// Member returns a pending pod of a PodGroup, of none if group is empty. It requests one CPU.
func Member(group, name string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("pod-" + name), Generation: 1},
		Spec: v1.PodSpec{
			SchedulerName: SchedulerName,
			Containers: []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")},
			}}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	if group != "" {
		pod.Labels = map[string]string{v1alpha1.LabelPodGroup: group}
	}
	return pod
}

// With returns a changed copy of a pod.
func With(pod *v1.Pod, change func(*v1.Pod)) *v1.Pod {
	pod = pod.DeepCopy()
	change(pod)
	return pod
}

// Gang returns a PodGroup with its members, which are all needed to start and named after it.
func Gang(name string, size int) []runtime.Object {
	objects := []runtime.Object{PodGroup(name, int32(size))}
	for i := range size {
		objects = append(objects, Member(name, fmt.Sprintf("%s-%d", name, i)))
	}
	return objects
}

// Objects returns queue default, the nodes n1 and n2, and the given objects.
func Objects(lists ...[]runtime.Object) []runtime.Object {
	all := []runtime.Object{Queue("default"), Node("n1"), Node("n2")}
	return append(all, slices.Concat(lists...)...)
}
