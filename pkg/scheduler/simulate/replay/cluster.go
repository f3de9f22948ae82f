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

// surroundings are what a trace changes besides jobs: nodes, queues, and pods of other schedulers.
type surroundings struct {
	*replay
	given map[string]bool          // the names of nodes of the input
	pods  map[types.UID]*trace.Pod // of other schedulers, that have not ended
}

func newSurroundings(r *replay, nodes []*v1.Node) *surroundings {
	s := &surroundings{replay: r, given: map[string]bool{}, pods: map[types.UID]*trace.Pod{}}
	for _, n := range nodes {
		s.given[n.Name] = true
	}
	return s
}

// nodesAtBeginning returns the nodes that the trace defines at its beginning, without those that are given.
func (s *surroundings) nodesAtBeginning() []*v1.Node {
	var nodes []*v1.Node
	seen := map[string]bool{}
	for i := range s.Trace.Nodes {
		if e := &s.Trace.Nodes[i]; e.At == 0 && e.Defines() && e.State != trace.NodeDown && !s.given[e.Node] && !seen[e.Node] {
			seen[e.Node] = true
			nodes = append(nodes, e.Object())
		}
	}
	return nodes
}

// schedule puts the changes of nodes, queues and pods of other schedulers on the agenda.
func (s *surroundings) schedule() error {
	defined := maps.Clone(s.given)
	for i := range s.Trace.Nodes {
		e := &s.Trace.Nodes[i]
		if defined[e.Node] = defined[e.Node] || e.Defines(); !defined[e.Node] {
			return fmt.Errorf("the trace changes a node %q, which is not there", e.Node)
		}
		at := nodeUp
		if e.State == trace.NodeDown {
			at = nodeDown
		}
		s.agenda.add(e.At, at, func() {
			if e.Defines() && !s.given[e.Node] {
				s.nodes[e.Node] = e.Object()
			}
			s.changeNode(s.nodes[e.Node], e.State)
		})
	}
	own := map[string]bool{}
	for _, q := range s.Queues {
		own[q.Name] = true
	}
	for _, e := range s.Trace.Record.Queues {
		if !own[e.Queue] {
			s.agenda.add(e.At, queueChanged, func() { s.changeQueue(e) })
		}
	}
	for i := range s.Trace.Record.Pods {
		s.agenda.add(s.Trace.Record.Pods[i].At, podOfOthers, func() { s.addPod(i) })
	}
	return nil
}

func (s *surroundings) changeQueue(e trace.QueueEvent) {
	if e.Spec == nil {
		s.cluster.Events().DeleteQueue(e.Queue)
		return
	}
	s.cluster.Events().SetQueue(newQueue(e.Queue, *e.Spec))
}

func newQueue(name string, spec v1alpha1.QueueSpec) *v1alpha1.Queue {
	return &v1alpha1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("queue-" + name), CreationTimestamp: metav1.NewTime(epoch)}, Spec: spec,
	}
}

// addPod adds a pod that another scheduler has bound.
func (s *surroundings) addPod(i int) {
	p := &s.Trace.Record.Pods[i]
	if !s.usage.isUp(p.Node) {
		return
	}
	name := fmt.Sprintf("other-%08d", i)
	uid := types.UID(name)
	s.pods[uid] = p
	s.usage.add(p.Request, 1)
	s.recorder.use(p.Node, p.Request, 1)
	s.cluster.Events().SetPod(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, CreationTimestamp: metav1.NewTime(s.clock.Now())},
		Spec: v1.PodSpec{
			SchedulerName: "another-scheduler", NodeName: p.Node,
			Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: p.Request}}},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	})
	if !p.Unended {
		s.agenda.add(s.clock.at+p.Run, podEnd, func() { s.removePod(uid) })
	}
}

// lose removes the pods of other schedulers on a node that is down.
func (s *surroundings) lose(node string) {
	for _, uid := range slices.Sorted(maps.Keys(s.pods)) {
		if s.pods[uid].Node == node {
			s.removePod(uid)
		}
	}
}

// removePod removes a pod of another scheduler if it is still there.
func (s *surroundings) removePod(uid types.UID) {
	p := s.pods[uid]
	if p == nil {
		return
	}
	delete(s.pods, uid)
	s.usage.add(p.Request, -1)
	s.recorder.use(p.Node, p.Request, -1)
	s.cluster.Events().DeletePod(uid)
}
