// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// members are pods of one kind in a row.
type members struct {
	count   int
	request string
	node    string // empty for pending pods
	change  func(*v1.Pod)
	options []PodOption
}

func (m members) addTo(d *declaration) { d.members = append(d.members, m) }

// Pending members have no node.
func Pending(count int, request string, options ...PodOption) Part {
	return members{count, request, "", func(*v1.Pod) {}, options}
}

// BestEffort members are pending and have no requests.
func BestEffort(count int, options ...PodOption) Part { return Pending(count, "", options...) }

// Gated members have a scheduling gate.
func Gated(count int, request string, options ...PodOption) Part {
	return members{count, request, "", func(p *v1.Pod) {
		p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/hold"}}
	}, options}
}

// Bound members have a node and do not run yet.
func Bound(count int, request, node string, options ...PodOption) Part {
	return members{count, request, node, func(*v1.Pod) {}, options}
}

// Running members run on a node.
func Running(count int, request, node string, options ...PodOption) Part {
	return members{count, request, node, inPhase(v1.PodRunning), options}
}

// Releasing members run on a node and are terminating.
func Releasing(count int, request, node string, options ...PodOption) Part {
	return members{count, request, node, func(p *v1.Pod) {
		p.Status.Phase = v1.PodRunning
		p.DeletionTimestamp = &metav1.Time{Time: p.CreationTimestamp.Time}
	}, options}
}

// Succeeded members are in phase Succeeded.
func Succeeded(count int, request, node string, options ...PodOption) Part {
	return members{count, request, node, inPhase(v1.PodSucceeded), options}
}

// Failed members are in phase Failed.
func Failed(count int, request, node string, options ...PodOption) Part {
	return members{count, request, node, inPhase(v1.PodFailed), options}
}

func inPhase(phase v1.PodPhase) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Status.Phase = phase }
}

// addMembers creates the pods of a row. The annotations of pods with a node record that this scheduler bound them.
func (o *objects) addMembers(row string, d *declaration) {
	o.t.Helper()
	for _, m := range d.members {
		request := o.amounts(row, m.request)
		if m.node != "" {
			o.needNode(row, m.node)
		}
		for range m.count {
			number := o.numbers[d.title]
			o.numbers[d.title]++
			pod := o.newPod(d, number, request)
			if m.node != "" {
				pod.Spec.NodeName = m.node
				if !d.foreign {
					pod.Annotations[v1alpha1.AnnotationQueue] = o.queueOf(d)
					pod.Annotations[v1alpha1.AnnotationPodGroupUID] = d.groupUID
				}
			}
			m.change(pod)
			for _, option := range slices.Concat(d.all, m.options, d.last) {
				option.change(pod)
			}
			o.nameNew(row, pod, fmt.Sprintf("%s-%d", d.title, number))
			o.setPod(pod)
		}
	}
}

// nameNew rejects a second pod with the same name, like an API server.
func (o *objects) nameNew(row string, pod *v1.Pod, name string) {
	o.t.Helper()
	for _, other := range o.pods {
		if other.Namespace == pod.Namespace && other.Name == pod.Name {
			o.t.Fatalf("%s: namespace %s has a pod %q already", row, pod.Namespace, pod.Name)
		}
	}
	o.name(pod, name)
}

func (o *objects) queueOf(d *declaration) string {
	if d.queue == "" {
		return defaultQueue
	}
	return d.queue
}

func (o *objects) newPod(d *declaration, number int, request v1.ResourceList) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: o.meta(d.namespace, fmt.Sprintf("%s-%d", d.name, number)),
		Spec: v1.PodSpec{
			SchedulerName: schedulerName,
			Containers:    []v1.Container{{Name: "main", Image: "example.com/work", Resources: v1.ResourceRequirements{Requests: request}}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
}
