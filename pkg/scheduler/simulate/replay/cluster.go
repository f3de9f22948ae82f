// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// Changes of the cluster in a trace: nodes, queues, and pods of other schedulers.

// nodesAtBeginning returns the nodes that the trace defines at its beginning, without those that are given.
func nodesAtBeginning(t *trace.Trace, given map[string]bool) []*v1.Node {
	var nodes []*v1.Node
	seen := map[string]bool{}
	for i := range t.Nodes {
		if e := &t.Nodes[i]; e.At == 0 && e.Defines() && e.State != trace.NodeDown && !given[e.Node] && !seen[e.Node] {
			seen[e.Node] = true
			nodes = append(nodes, e.Object())
		}
	}
	return nodes
}

// addClusterEvents puts the changes of nodes, queues and pods of other schedulers on the agenda.
func (r *replay) addClusterEvents() error {
	defined := maps.Clone(r.given)
	for i := range r.Trace.Nodes {
		e := &r.Trace.Nodes[i]
		if defined[e.Node] = defined[e.Node] || e.Defines(); !defined[e.Node] {
			return fmt.Errorf("the trace changes a node %q, which is not there", e.Node)
		}
		at := nodeUp
		if e.State == trace.NodeDown {
			at = nodeDown
		}
		r.agenda.add(e.At, at, func() {
			if e.Defines() && !r.given[e.Node] {
				r.nodes[e.Node] = e.Object()
			}
			r.changeNode(r.nodes[e.Node], e.State)
		})
	}
	own := map[string]bool{}
	for _, q := range r.Queues {
		own[q.Name] = true
	}
	for _, e := range r.Trace.Record.Queues {
		if !own[e.Queue] {
			r.agenda.add(e.At, queueChanged, func() { r.changeQueue(e) })
		}
	}
	for i := range r.Trace.Record.Pods {
		r.agenda.add(r.Trace.Record.Pods[i].At, podOfOthers, func() { r.addOther(i) })
	}
	return nil
}

func (r *replay) isUp(node string) bool {
	_, up := r.usage.up[node]
	return up
}

func (r *replay) changeQueue(e trace.QueueEvent) {
	if e.Spec == nil {
		r.cluster.Events().DeleteQueue(e.Queue)
		return
	}
	r.cluster.Events().SetQueue(newQueue(e.Queue, *e.Spec))
}

func newQueue(name string, spec v1alpha1.QueueSpec) *v1alpha1.Queue {
	return &v1alpha1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("queue-" + name), CreationTimestamp: metav1.NewTime(epoch)}, Spec: spec,
	}
}

// addOther adds a pod that another scheduler has bound.
func (r *replay) addOther(i int) {
	p := &r.Trace.Record.Pods[i]
	if !r.isUp(p.Node) {
		return
	}
	name := fmt.Sprintf("other-%08d", i)
	uid := types.UID(name)
	r.other[uid] = p
	r.usage.add(p.Request, 1)
	r.cluster.Events().SetPod(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, CreationTimestamp: metav1.NewTime(r.clock.Now())},
		Spec: v1.PodSpec{
			SchedulerName: "another-scheduler", NodeName: p.Node,
			Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: p.Request}}},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	})
	if !p.Unended {
		r.agenda.add(r.clock.at+p.Run, podEnd, func() { r.removeOther(uid) })
	}
}

// loseOthers removes the pods of other schedulers on a node that is down.
func (r *replay) loseOthers(node string) {
	for _, uid := range slices.Sorted(maps.Keys(r.other)) {
		if r.other[uid].Node == node {
			r.removeOther(uid)
		}
	}
}

// removeOther removes a pod of another scheduler if it is still there.
func (r *replay) removeOther(uid types.UID) {
	p := r.other[uid]
	if p == nil {
		return
	}
	delete(r.other, uid)
	r.usage.add(p.Request, -1)
	r.cluster.Events().DeletePod(uid)
}
