// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package snapshot turns the objects of a cluster into what the demo shows and verifies: PodGroups,
// queues, nodes, and the work that belongs to no PodGroup. It reads what any client can read;
// nothing comes from inside the scheduler.
package snapshot

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

// Snapshot is the cluster at one moment. All lists are sorted by name.
type Snapshot struct {
	Nodes  []Node
	Groups []Group
	Queues []Queue
	Work   []Work
}

// Node is a node with what the pods on it ask for.
type Node struct {
	Name              string
	Allocatable, Used corev1.ResourceList
}

// Group is a PodGroup with its pods.
type Group struct {
	Namespace, Name, Queue string

	// Min is spec.minMember; Members are the pods there are, Bound those of them that have
	// ever got a node, Ended those that have ended, and Failed those that have ended badly.
	Min, Members, Bound, Ended, Failed int

	// Phase, Reason and Message are the group's own words. Reason and Message are empty
	// when it is scheduled.
	Phase, Reason, Message string
}

// Started reports whether enough pods got a node for the gang to run.
func (g Group) Started() bool { return g.Bound >= g.Min }

// Partial reports whether some pods got a node, but too few.
func (g Group) Partial() bool { return g.Bound > 0 && g.Bound < g.Min }

// Done reports whether all existing pods have ended.
func (g Group) Done() bool { return g.Members > 0 && g.Ended == g.Members }

// Queue is a Queue with what its pods hold.
type Queue struct {
	Name   string
	Weight int

	// Capability is the cap. Deserved and Allocated are the queue's own words; Held is the
	// sum of what its pods on nodes ask for.
	Capability, Deserved, Allocated, Held corev1.ResourceList
}

// Work is a Job, a Deployment, or a pod without a controller, that belongs to no PodGroup.
type Work struct {
	Kind, Namespace, Name, Queue string

	// Want is how many pods should run or complete, Running and Ended how many do and did.
	Want, Running, Ended int

	// Done reports whether a Job has completed, a Deployment is fully available, a pod runs
	// or has ended well.
	Done bool
}

// Objects are what a scene is made of.
type Objects struct {
	Nodes       []*corev1.Node
	Pods        []*corev1.Pod
	Jobs        []*batchv1.Job
	Deployments []*appsv1.Deployment
	Groups      []*v1alpha1.PodGroup
	Queues      []*v1alpha1.Queue
}

// Of returns the snapshot of the objects. Pods and work of other schedulers than the
// given one are left out, except that their pods count as used resources of nodes.
func Of(o Objects, schedulerName, defaultQueue string) Snapshot {
	s := Snapshot{}
	for _, n := range o.Nodes {
		s.Nodes = append(s.Nodes, Node{Name: n.Name, Allocatable: n.Status.Allocatable, Used: held(o.Pods, func(p *corev1.Pod) bool {
			return p.Spec.NodeName == n.Name
		})})
	}
	ours := slices.DeleteFunc(slices.Clone(o.Pods), func(p *corev1.Pod) bool { return p.Spec.SchedulerName != schedulerName })
	for _, g := range o.Groups {
		s.Groups = append(s.Groups, groupOf(g, ours, defaultQueue))
	}
	for _, q := range o.Queues {
		s.Queues = append(s.Queues, queueOf(q, ours))
	}
	s.Work = append(s.Work, jobs(o.Jobs, schedulerName, defaultQueue)...)
	s.Work = append(s.Work, deployments(o.Deployments, schedulerName, defaultQueue)...)
	s.Work = append(s.Work, singlePods(ours, defaultQueue)...)
	s.sort()
	return s
}

func (s *Snapshot) sort() {
	slices.SortFunc(s.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Queues, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(s.Work, func(a, b Work) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
}

func groupOf(g *v1alpha1.PodGroup, pods []*corev1.Pod, defaultQueue string) Group {
	group := Group{
		Namespace: g.Namespace,
		Name:      g.Name,
		Queue:     cmp.Or(g.Spec.Queue, defaultQueue),
		Min:       int(g.Spec.MinMember),
		Phase:     string(g.Status.Phase),
	}
	condition := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionPodGroupScheduled)
	if condition != nil && condition.Status != metav1.ConditionTrue {
		group.Reason, group.Message = condition.Reason, condition.Message
	}
	for _, p := range pods {
		if p.Namespace != g.Namespace || groupName(p) != g.Name || evicted(p) {
			continue
		}
		group.Members++
		if p.Spec.NodeName != "" {
			group.Bound++
		}
		if capacity.Ended(p) {
			group.Ended++
		}
		if p.Status.Phase == corev1.PodFailed {
			group.Failed++
		}
	}
	return group
}

// evicted reports whether a pod has ended because it was evicted. It counts as one that does not exist any more: its
// controller creates another.
func evicted(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// groupName returns the name of the PodGroup that a pod asks for.
func groupName(p *corev1.Pod) string {
	return cmp.Or(p.Labels[v1alpha1.LabelPodGroup], p.Annotations[v1alpha1.AnnotationGroupName])
}

func queueOf(q *v1alpha1.Queue, pods []*corev1.Pod) Queue {
	return Queue{
		Name:       q.Name,
		Weight:     int(q.Spec.Weight),
		Capability: q.Spec.Capability,
		Deserved:   q.Status.Deserved,
		Allocated:  q.Status.Allocated,
		Held:       held(pods, func(p *corev1.Pod) bool { return p.Annotations[v1alpha1.AnnotationQueue] == q.Name }),
	}
}

// held sums up what those of the pods ask for that are on a node and have not ended.
func held(pods []*corev1.Pod, belongs func(*corev1.Pod) bool) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, p := range pods {
		if p.Spec.NodeName == "" || capacity.Ended(p) || p.DeletionTimestamp != nil || !belongs(p) {
			continue
		}
		capacity.Add(sum, resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}))
	}
	return sum
}
