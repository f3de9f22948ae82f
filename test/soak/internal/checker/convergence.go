// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

// Available returns the free resources of a schedulable node, nil for other nodes.
func (c *Checker) Available(node string) corev1.ResourceList {
	n := c.nodes[node]
	if n == nil || !n.fit {
		return nil
	}
	left := n.object.Status.Allocatable.DeepCopy()
	capacity.Subtract(left, c.used(node))
	return left
}

// Waiting returns the jobs with pending pods and their messages, in the order of names.
func (c *Checker) Waiting() []string {
	var all []string
	for key, pods := range c.waiting() {
		all = append(all, fmt.Sprintf("%s: %d pods pending: %s", key, len(pods), c.excuse(key, pods)))
	}
	slices.Sort(all)
	return all
}

// Unfinished returns the number of pods that are in transition: they will terminate, are terminating, or have a node
// and have not started.
func (c *Checker) Unfinished(ends func(*corev1.Pod) bool) int {
	n := 0
	for _, p := range c.pods {
		if p.Spec.NodeName != "" && !capacity.Ended(p) && (ends(p) || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending) {
			n++
		}
	}
	return n
}

// Converged checks an idle cluster: no pending job fits.
func (c *Checker) Converged() {
	jobs := c.waiting()
	for _, key := range slices.Sorted(maps.Keys(jobs)) {
		c.counts[Fits]++
		pods := jobs[key]
		needed, queue := 1, c.queueOf(key, pods[0])
		if g := c.groups[key]; g != nil {
			holding, succeeded := c.members(g)
			needed = max(1, int(g.object.Spec.MinMember)-holding-succeeded)
		}
		if len(pods) < needed || !c.fit(pods[:needed], queue) || c.mayWait(key, pods) {
			continue
		}
		c.fail(Fits, c.concerned(key, pods), "%s needs %d more pods and is pending although they fit: %s", key, needed, c.excuse(key, pods))
	}
}

// AllRun checks a cluster in which everything fits: all pods run, and no gang is partial.
func (c *Checker) AllRun() {
	jobs := c.waiting()
	for _, key := range slices.Sorted(maps.Keys(jobs)) {
		c.fail(Fits, c.concerned(key, jobs[key]), "everything fits, and %d pods of %s are pending: %s", len(jobs[key]), key, c.excuse(key, jobs[key]))
	}
	for _, p := range c.pods {
		if !c.ours(p) || p.Spec.NodeName == "" {
			continue
		}
		c.counts[Fits]++
		if p.Status.Phase == corev1.PodPending || p.DeletionTimestamp != nil {
			c.fail(Fits, podKeys(p), "pod %s has node %s and does not run", name(p), p.Spec.NodeName)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.groups)) {
		g := c.groups[key]
		if holding, succeeded := c.members(g); holding > 0 && holding+succeeded < int(g.object.Spec.MinMember) {
			c.fail(Whole, []string{"job " + key}, "gang %s stays partial with %d pods of %d", key, holding+succeeded, g.object.Spec.MinMember)
		}
	}
}

// Empty reports whether there are no pods and no groups.
func (c *Checker) Empty() bool { return len(c.pods) == 0 && len(c.groups) == 0 }

func (c *Checker) waiting() map[string][]*corev1.Pod {
	jobs := map[string][]*corev1.Pod{}
	for _, p := range c.pods {
		if c.ours(p) && p.Spec.NodeName == "" && p.DeletionTimestamp == nil && !capacity.Ended(p) {
			jobs[jobKey(p)] = append(jobs[jobKey(p)], p)
		}
	}
	for _, pods := range jobs {
		slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	}
	return jobs
}

// concerned returns the keys of a job and of the nodes on which it could run.
func (c *Checker) concerned(key string, pods []*corev1.Pod) []string {
	return []string{"job " + key, "queue " + c.queueOf(key, pods[0])}
}

func (c *Checker) queueOf(key string, p *corev1.Pod) string {
	queue := p.Labels[v1alpha1.LabelQueue]
	if g := c.groups[key]; g != nil {
		queue = g.object.Spec.Queue
	}
	if queue == "" {
		return c.defaultQueue
	}
	return queue
}

// fit tries the simplest placement: each pod on the first node with enough resources.
func (c *Checker) fit(pods []*corev1.Pod, queue string) bool {
	q := c.queues[queue]
	if q == nil || !q.exists {
		return false
	}
	held, left := c.held(queue), map[string]corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		if r := c.Available(name); r != nil {
			left[name] = r
		}
	}
	for _, p := range pods {
		request := capacity.Request(p)
		node := c.firstWith(left, p, request)
		capacity.Add(held, request)
		if node == "" || capacity.Excess(held, q.caps[len(q.caps)-1].limits) != "" {
			return false
		}
		capacity.Subtract(left[node], request)
	}
	return true
}

func (c *Checker) firstWith(left map[string]corev1.ResourceList, p *corev1.Pod, request corev1.ResourceList) string {
	for _, node := range slices.Sorted(maps.Keys(left)) {
		suits := true
		for key, value := range p.Spec.NodeSelector {
			suits = suits && c.nodes[node].object.Labels[key] == value
		}
		if suits && capacity.Lacking(request, left[node]) == "" {
			return node
		}
	}
	return ""
}

// reserved reports whether a message says that resources are reserved, for this gang or for another one.
func reserved(message string) bool {
	return strings.Contains(message, "; reserved: ") || strings.Contains(message, "reserved for another PodGroup")
}

// mayWait reports whether a job may be pending although it fits: the resources are reserved for a gang that has
// waited long, or its queue had borrowed them and they were reclaimed.
func (c *Checker) mayWait(key string, pods []*corev1.Pod) bool {
	excuse := c.excuse(key, pods)
	return c.job(key).inCooldown || strings.HasPrefix(excuse, v1alpha1.ReasonOverShare) || reserved(excuse)
}

// excuse returns the messages that explain why a job is pending.
func (c *Checker) excuse(key string, pods []*corev1.Pod) string {
	var messages []string
	if g := c.groups[key]; g != nil {
		if condition := meta.FindStatusCondition(g.object.Status.Conditions, v1alpha1.ConditionPodGroupScheduled); condition != nil && condition.Status != "True" {
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
