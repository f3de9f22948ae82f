// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// object is a pointer to an API object.
type object interface {
	comparable
	metav1.Object
}

// kind defines how the objects of one kind are fed into the model.
type kind[T object] struct {
	name string
	rank int8
	// set and remove change the model; called from the scheduling goroutine.
	set    func(*Cache, T)
	remove func(*Cache, T)

	// changed is called in the scheduling goroutine before a state of an object is applied. before is nil for a new object,
	// and after itself if the model is built again. It may be nil.
	changed func(c *Cache, before, after T)

	// wakes reports whether a change could let a task be placed, so that a cycle is due. before is
	// nil for a new object, after is nil for a deleted one.
	wakes func(before, after T) bool

	// observe informs the writers and the back-offs; called from a handler. It may be nil.
	observe func(c *Cache, obj T, deleted bool)
}

// The ranks of kinds: Rebuild applies objects in this order, so that most exist before others refer
// to them.
const (
	rankNamespace int8 = iota
	rankPriorityClass
	rankQueue
	rankTopology
	rankPodGroup
	rankOwner
	rankDeviceResources // not an object: what device classes provide
	rankNodeDevices     // nor this one: the devices of a node
	rankDeviceClaims    // nor this one: the devices that a claim requests
	rankNode
	rankBudget
	rankPod
	rankExternal // not in the model
)

// podKind returns the kind of pods, as the scheduler with these names needs them.
func podKind(schedulerNames []string) *kind[*v1.Pod] {
	return &kind[*v1.Pod]{
		name: "pod", rank: rankPod,
		set:    func(c *Cache, pod *v1.Pod) { c.model.Events().SetPod(pod) },
		remove: func(c *Cache, pod *v1.Pod) { c.model.Events().DeletePod(pod.UID) },
		changed: func(c *Cache, before, after *v1.Pod) {
			if contested(schedulerNames, before, after) {
				c.options.Metrics.PodsBoundByOthers(after.Spec.SchedulerName, 1)
				c.recorder.NameContested(after)
			}
			reportAmbiguous(c, schedulerNames, before, after)
			reportRunTime(c, schedulerNames, before, after)
		},
		wakes: func(before, after *v1.Pod) bool { return podWakes(schedulerNames, before, after) },
		observe: func(c *Cache, pod *v1.Pod, deleted bool) {
			if deleted {
				c.binder.Forget(pod.UID)
				c.evictor.Forget(pod.UID)
			}
			c.statuses.ObservePod(pod, deleted)
		},
	}
}

// podWakes reports whether a change of a pod could let a task be placed. It leaves out what follows
// from the scheduler's own writes, and what frees no resources: confirmed binds, conditions, and
// bound pods that start to run.
func podWakes(schedulerNames []string, before, after *v1.Pod) bool {
	switch {
	case after == nil:
		return !ended(before)
	case ended(after):
		return before != nil && !ended(before)
	case after.Spec.NodeName != "":
		return false
	case !slices.Contains(schedulerNames, after.Spec.SchedulerName):
		return before != nil && before.Status.NominatedNodeName != after.Status.NominatedNodeName
	case len(after.Spec.SchedulingGates) > 0 || after.DeletionTimestamp != nil:
		return false
	}
	return before == nil || !api.EqualRequests(before, after)
}

// contested reports whether another client has bound a pod that this scheduler should schedule. The binds of this scheduler
// carry a commitment.
func contested(schedulerNames []string, before, after *v1.Pod) bool {
	return before != nil && before.Spec.NodeName == "" && after.Spec.NodeName != "" && api.CommitmentOf(after) == nil &&
		slices.Contains(schedulerNames, after.Spec.SchedulerName)
}

// ended reports whether a pod has succeeded or failed; it uses no resources any more.
func ended(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

func nodeKind() *kind[*v1.Node] {
	return &kind[*v1.Node]{
		name: "node", rank: rankNode,
		set:    func(c *Cache, node *v1.Node) { c.model.Events().SetNode(node) },
		remove: func(c *Cache, node *v1.Node) { c.model.Events().DeleteNode(node.Name) },
		changed: func(c *Cache, before, after *v1.Node) {
			if before != after && after.Annotations[v1alpha1.AnnotationUnavailableFrom] != "" {
				reportUnavailableFrom(c, before, after)
			}
		},
		wakes: func(before, after *v1.Node) bool {
			return before == nil || after == nil || !api.EqualNodes(before, after)
		},
	}
}

func budgetKind() *kind[*policyv1.PodDisruptionBudget] {
	return &kind[*policyv1.PodDisruptionBudget]{
		name: "poddisruptionbudget", rank: rankBudget,
		set:    func(c *Cache, b *policyv1.PodDisruptionBudget) { c.model.Events().SetBudget(b) },
		remove: func(c *Cache, b *policyv1.PodDisruptionBudget) { c.model.Events().DeleteBudget(b.Namespace, b.Name) },
		wakes: func(before, after *policyv1.PodDisruptionBudget) bool {
			return after == nil || before != nil && after.Status.DisruptionsAllowed > before.Status.DisruptionsAllowed
		},
	}
}

func namespaceKind() *kind[*v1.Namespace] {
	return &kind[*v1.Namespace]{
		name: "namespace", rank: rankNamespace,
		set:    func(c *Cache, ns *v1.Namespace) { c.model.Events().SetNamespace(ns) },
		remove: func(c *Cache, ns *v1.Namespace) { c.model.Events().DeleteNamespace(ns.Name) },
		wakes: func(before, after *v1.Namespace) bool {
			return before == nil || after == nil || before.Status.Phase != after.Status.Phase ||
				!equality.Semantic.DeepEqual(before.Labels, after.Labels)
		},
	}
}

func priorityClassKind() *kind[*schedulingv1.PriorityClass] {
	return &kind[*schedulingv1.PriorityClass]{
		name: "priorityclass", rank: rankPriorityClass,
		set:    func(c *Cache, class *schedulingv1.PriorityClass) { c.model.Events().SetPriorityClass(class) },
		remove: func(c *Cache, class *schedulingv1.PriorityClass) { c.model.Events().DeletePriorityClass(class.Name) },
		wakes: func(before, after *schedulingv1.PriorityClass) bool {
			return before == nil || after == nil || before.Value != after.Value
		},
	}
}

func podGroupKind() *kind[*v1alpha1.PodGroup] {
	return &kind[*v1alpha1.PodGroup]{
		name: "podgroup", rank: rankPodGroup,
		set: func(c *Cache, g *v1alpha1.PodGroup) { c.model.Events().SetPodGroup(g) },
		remove: func(c *Cache, g *v1alpha1.PodGroup) {
			c.model.Events().DeletePodGroup(g.Namespace+"/"+g.Name, g.UID)
		},
		wakes: func(before, after *v1alpha1.PodGroup) bool {
			return before == nil || after == nil || !equality.Semantic.DeepEqual(before.Spec, after.Spec)
		},
		observe: func(c *Cache, g *v1alpha1.PodGroup, deleted bool) { c.statuses.ObservePodGroup(g.UID, deleted) },
	}
}

// otherGroupKind returns the kind of PodGroups of other APIs. The model gets those of the sources in force.
func otherGroupKind() *kind[*groupapi.Object] {
	return &kind[*groupapi.Object]{
		name: "podgroup of another API", rank: rankPodGroup,
		set: func(c *Cache, o *groupapi.Object) {
			if c.groupSources.Has(o.Source) {
				c.model.Events().SetGroup(o.Group)
			}
		},
		remove: func(c *Cache, o *groupapi.Object) { c.model.Events().DeleteGroup(o.Key(), o.UID) },
		wakes: func(before, after *groupapi.Object) bool {
			return before == nil || after == nil || !api.EqualGroups(before.Group, after.Group)
		},
		observe: func(c *Cache, o *groupapi.Object, deleted bool) { c.statuses.ObserveOtherGroup(o.UID, deleted) },
	}
}

func queueKind() *kind[*v1alpha1.Queue] {
	return &kind[*v1alpha1.Queue]{
		name: "queue", rank: rankQueue,
		set:    func(c *Cache, q *v1alpha1.Queue) { c.model.Events().SetQueue(q) },
		remove: func(c *Cache, q *v1alpha1.Queue) { c.model.Events().DeleteQueue(q.Name) },
		wakes: func(before, after *v1alpha1.Queue) bool {
			return before == nil || after == nil || !equality.Semantic.DeepEqual(before.Spec, after.Spec)
		},
		observe: func(c *Cache, q *v1alpha1.Queue, deleted bool) { c.statuses.ObserveQueue(q.UID, deleted) },
	}
}
