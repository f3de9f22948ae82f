// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

// state is the cluster as the watches show it. Its methods, except setNode and setQueue, only read.
type state struct {
	schedulerName string
	defaultQueue  string
	clock         *clock

	nodes  map[string]*node
	pods   map[types.UID]*corev1.Pod
	groups map[string]*v1alpha1.PodGroup // by namespace/name
	queues map[string]*queue
}

func newState(schedulerName, defaultQueue string, clock *clock) *state {
	return &state{
		schedulerName: schedulerName, defaultQueue: defaultQueue, clock: clock,
		nodes: map[string]*node{}, pods: map[types.UID]*corev1.Pod{}, groups: map[string]*v1alpha1.PodGroup{}, queues: map[string]*queue{},
	}
}

// node is the state of a node; it is kept after the node is deleted.
type node struct {
	object  *corev1.Node
	exists  bool
	changed time.Time // when it was last created, deleted, or changed between fit and unfit
	fit     bool      // it exists, is ready, and is schedulable
	foreign time.Time // when a pod of another scheduler was last bound to it
}

// queue is the state of a queue.
type queue struct {
	exists bool
	caps   []capability // the last one is current
}

// capability is a limit and the end of its validity.
type capability struct {
	limits corev1.ResourceList
	until  time.Time // zero for the current one
}

// setNode records the state of a node or its deletion. It returns whether the node was created, deleted, or changed
// between fit and unfit, and whether a node that could run pods was lost.
func (s *state) setNode(object *corev1.Node, gone bool) (changed, lost bool) {
	n := s.nodes[object.Name]
	if n == nil {
		n = &node{}
		s.nodes[object.Name] = n
	}
	fit := !gone && takesPods(object)
	changed = n.object == nil || n.exists == gone || n.fit != fit
	if changed {
		n.changed = s.clock.now
	}
	lost = n.exists && (gone || n.fit && !ready(object))
	n.object, n.exists, n.fit = object, !gone, fit
	return changed, lost
}

// setQueue records the state of a queue or its deletion. It returns the current capability, and whether it is a new one.
func (s *state) setQueue(object *v1alpha1.Queue, gone bool) (limits corev1.ResourceList, changed bool) {
	q := s.queues[object.Name]
	if q == nil {
		q = &queue{}
		s.queues[object.Name] = q
	}
	limits = object.Spec.Capability
	if gone {
		limits = nil // its pods count for the default queue
	}
	last := len(q.caps) - 1
	changed = last < 0 || q.exists == gone || !sameAmounts(q.caps[last].limits, limits)
	if changed {
		if last >= 0 {
			q.caps[last].until = s.clock.now
		}
		q.caps = append(q.caps, capability{limits: limits})
	}
	q.exists = !gone
	return limits, changed
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func takesPods(n *corev1.Node) bool {
	return ready(n) && !n.Spec.Unschedulable && len(n.Spec.Taints) == 0
}

func (s *state) ours(p *corev1.Pod) bool { return p.Spec.SchedulerName == s.schedulerName }

// used returns the sum of the requests of the pods on a node.
func (s *state) used(node string) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, p := range s.pods {
		if p.Spec.NodeName == node && !capacity.Ended(p) {
			capacity.Add(sum, capacity.Request(p))
		}
	}
	return sum
}

// held returns the requests of the pods of a queue on nodes that have existed for some time.
func (s *state) held(queue string) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, p := range s.pods {
		if !s.ours(p) || p.Spec.NodeName == "" || capacity.Ended(p) || p.Annotations[v1alpha1.AnnotationQueue] != queue {
			continue
		}
		if n := s.nodes[p.Spec.NodeName]; n != nil && n.exists && (n.fit || s.clock.now.Sub(n.changed) > Lag) {
			capacity.Add(sum, capacity.Request(p))
		}
	}
	return sum
}

// excess returns by how much a queue exceeds its capability in the resources that a pod of it requests, empty if it
// does not. A capability that was valid within Lag is sufficient, and pods on nodes that are or were lost do not count.
func (s *state) excess(name string, p *corev1.Pod) (text string) {
	q, held, asked := s.queues[name], s.held(name), capacity.Request(p)
	maps.DeleteFunc(held, func(resource corev1.ResourceName, _ resourceQuantity) bool { // a capability may have been reduced below the allocation
		amount := asked[resource]
		return amount.IsZero()
	})
	for i := len(q.caps) - 1; i >= 0; i-- {
		limit := q.caps[i]
		if !limit.until.IsZero() && s.clock.now.Sub(limit.until) > Lag {
			break
		}
		if text = capacity.Excess(held, limit.limits); text == "" {
			return ""
		}
	}
	return text
}

// members returns how many pods of a group hold a node, and how many have succeeded.
func (s *state) members(g *v1alpha1.PodGroup) (holding, succeeded int) {
	for _, p := range s.pods {
		if types.UID(p.Annotations[v1alpha1.AnnotationPodGroupUID]) != g.UID || p.Spec.NodeName == "" {
			continue
		}
		switch {
		case p.Status.Phase == corev1.PodSucceeded:
			succeeded++
		case !capacity.Ended(p) && p.DeletionTimestamp == nil:
			holding++
		}
	}
	return holding, succeeded
}

// waits reports whether a pod of the job is pending.
func (s *state) waits(key string) bool {
	for _, p := range s.pods {
		if s.ours(p) && p.Spec.NodeName == "" && jobKey(p) == key {
			return true
		}
	}
	return false
}

// outranked reports whether a pod of the same job has a higher priority.
func (s *state) outranked(p *corev1.Pod) bool {
	for _, other := range s.pods {
		if s.ours(other) && jobKey(other) == jobKey(p) && ptr.Deref(other.Spec.Priority, 0) > ptr.Deref(p.Spec.Priority, 0) {
			return true
		}
	}
	return false
}

func (s *state) waiting() map[string][]*corev1.Pod {
	jobs := map[string][]*corev1.Pod{}
	for _, p := range s.pods {
		if s.ours(p) && p.Spec.NodeName == "" && p.DeletionTimestamp == nil && !capacity.Ended(p) {
			jobs[jobKey(p)] = append(jobs[jobKey(p)], p)
		}
	}
	for _, pods := range jobs {
		slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	}
	return jobs
}

// unfinished returns the number of pods that are in transition: they will terminate, are terminating, or have a node
// and have not started.
func (s *state) unfinished(ends func(*corev1.Pod) bool) int {
	n := 0
	for _, p := range s.pods {
		if p.Spec.NodeName != "" && !capacity.Ended(p) && (ends(p) || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending) {
			n++
		}
	}
	return n
}

func (s *state) queueOf(key string, p *corev1.Pod) string {
	queue := p.Labels[v1alpha1.LabelQueue]
	if g := s.groups[key]; g != nil {
		queue = g.Spec.Queue
	}
	if queue == "" {
		return s.defaultQueue
	}
	return queue
}

// concerned returns the keys of a job and of the nodes on which it could run.
func (s *state) concerned(key string, pods []*corev1.Pod) []string {
	return []string{"job " + key, "queue " + s.queueOf(key, pods[0])}
}

// available returns the free resources of a schedulable node, nil for other nodes.
func (s *state) available(node string) corev1.ResourceList {
	n := s.nodes[node]
	if n == nil || !n.fit {
		return nil
	}
	left := n.object.Status.Allocatable.DeepCopy()
	capacity.Subtract(left, s.used(node))
	return left
}

// fit tries the simplest placement: each pod on the first node with enough resources.
func (s *state) fit(pods []*corev1.Pod, queue string) bool {
	q := s.queues[queue]
	if q == nil || !q.exists {
		return false
	}
	held, left := s.held(queue), map[string]corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		if r := s.available(name); r != nil {
			left[name] = r
		}
	}
	for _, p := range pods {
		request := capacity.Request(p)
		node := s.firstWith(left, p, request)
		capacity.Add(held, request)
		if node == "" || capacity.Excess(held, q.caps[len(q.caps)-1].limits) != "" {
			return false
		}
		capacity.Subtract(left[node], request)
	}
	return true
}

func (s *state) firstWith(left map[string]corev1.ResourceList, p *corev1.Pod, request corev1.ResourceList) string {
	for _, node := range slices.Sorted(maps.Keys(left)) {
		suits := true
		for key, value := range p.Spec.NodeSelector {
			suits = suits && s.nodes[node].object.Labels[key] == value
		}
		if suits && capacity.Lacking(request, left[node]) == "" {
			return node
		}
	}
	return ""
}

// excuse returns the messages that explain why a job is pending.
func (s *state) excuse(key string, pods []*corev1.Pod) string {
	var messages []string
	if g := s.groups[key]; g != nil {
		if condition := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionPodGroupScheduled); condition != nil && condition.Status != "True" {
			messages = append(messages, condition.Reason+": "+condition.Message)
		}
	}
	for _, condition := range pods[0].Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue {
			messages = append(messages, condition.Reason+": "+condition.Message)
		}
	}
	return strings.Join(messages, "; ")
}
