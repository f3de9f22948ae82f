// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

type resourceQuantity = resource.Quantity

// Pod records the state of a pod or its deletion.
func (c *Checker) Pod(at time.Time, p *corev1.Pod, gone bool) {
	c.clock.now = at
	before := c.state.pods[p.UID]
	if before == nil {
		before = &corev1.Pod{}
		c.record.say(p, "is created")
	}
	if before.Spec.NodeName != "" && before.Spec.NodeName != p.Spec.NodeName {
		c.record.fail(Once, podKeys(p), "pod %s moved from node %s to %q", name(p), before.Spec.NodeName, p.Spec.NodeName)
	}
	c.state.pods[p.UID] = p
	if before.Spec.NodeName == "" && p.Spec.NodeName != "" {
		c.bound(p)
	}
	if c.state.ours(p) {
		c.follow(before, p, gone)
	} else if disrupted(p) && !disrupted(before) {
		c.record.fail(Justified, podKeys(p), "pod %s of another scheduler was evicted", name(p))
	}
	if gone {
		c.record.say(p, "is gone")
		delete(c.state.pods, p.UID)
		delete(c.reported, p.UID)
		delete(c.evictions.early, p.UID)
	}
	c.starts.complete(jobKey(p))
}

// follow checks a change of a pod of the scheduler.
func (c *Checker) follow(before, p *corev1.Pod, gone bool) {
	if before.Spec.NodeName == "" && before.DeletionTimestamp == nil {
		c.jobs.of(jobKey(p)).waited = c.clock.now // at least until now
	}
	if disrupted(p) && !disrupted(before) {
		c.evictions.evicted(p)
	}
	leaves := (p.DeletionTimestamp != nil || gone) && before.DeletionTimestamp == nil
	if leaves && !disrupted(p) && !capacity.Ended(p) {
		c.record.summary.Deleted++
		c.record.say(p, "is deleted")
	}
	if leaves && !capacity.Ended(p) {
		c.starts.invalidate(jobKey(p))
	}
	if p.Status.Phase == before.Status.Phase {
		return
	}
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		c.record.summary.Finished++
		c.record.say(p, "has ended well")
	case corev1.PodFailed:
		c.record.say(p, "has failed: "+p.Status.Reason+" "+p.Status.Message)
		c.starts.invalidate(jobKey(p))
		c.rejected(p)
	}
}

// rejected checks whether the scheduler is responsible for a pod that a kubelet did not admit.
func (c *Checker) rejected(p *corev1.Pod) {
	n := c.state.nodes[p.Spec.NodeName]
	if p.Status.Reason == "" || n == nil || c.clock.now.Sub(n.foreign) < 2*Lag || c.clock.now.Sub(n.changed) < 2*Lag {
		return
	}
	c.record.fail(Admitted, append([]string{"node " + p.Spec.NodeName}, podKeys(p)...), "node %s rejected pod %s: %s %s", p.Spec.NodeName, name(p), p.Status.Reason, p.Status.Message)
}

// bound checks a pod that was just bound.
func (c *Checker) bound(p *corev1.Pod) {
	queueName, committed := p.Annotations[v1alpha1.AnnotationQueue]
	if committed { // so that the journal of the queue contains the pod
		c.record.say(p, "is bound to node "+p.Spec.NodeName, "node "+p.Spec.NodeName, "queue "+queueName)
	} else {
		c.record.say(p, "is bound to node "+p.Spec.NodeName, "node "+p.Spec.NodeName)
	}
	n := c.state.nodes[p.Spec.NodeName]
	if !c.state.ours(p) {
		c.record.summary.Foreign++
		if n != nil {
			n.foreign = c.clock.now
		}
		c.clock.disturbed()
		c.record.counts[Once]++
		if committed {
			c.record.fail(Once, podKeys(p), "pod %s of another scheduler was bound by this one", name(p))
		}
		return
	}
	c.record.summary.Bound++
	c.record.counts[Once]++
	if _, group := p.Annotations[v1alpha1.AnnotationPodGroupUID]; !committed || !group {
		c.record.fail(Once, podKeys(p), "pod %s was bound by another client, or has no queue and group annotations", name(p))
	}
	c.rightPlace(p, n)
	c.withinCapacity(p, n)
	c.withinCap(p, queueName)
	c.evictions.served(jobKey(p))
	c.starts.begin(p)
}

// rightPlace checks that a pod is on a schedulable node that matches its node selector.
func (c *Checker) rightPlace(p *corev1.Pod, n *node) {
	c.record.counts[Place]++
	c.record.counts[Admitted]++
	switch {
	case n == nil:
		c.record.fail(Place, podKeys(p), "pod %s was bound to node %s, which has never existed", name(p), p.Spec.NodeName)
	case !n.fit && c.clock.now.Sub(n.changed) > Lag:
		c.record.fail(Place, append([]string{"node " + p.Spec.NodeName}, podKeys(p)...), "pod %s was bound to node %s, which has been unschedulable for %s",
			name(p), p.Spec.NodeName, c.clock.now.Sub(n.changed).Round(time.Second))
	}
	if n == nil {
		return
	}
	for key, value := range p.Spec.NodeSelector {
		if n.object.Labels[key] != value {
			c.record.fail(Place, podKeys(p), "pod %s requires nodes with %s=%s and was bound to node %s", name(p), key, value, p.Spec.NodeName)
		}
	}
}

// withinCapacity checks the capacity of a node, as the kubelet does: a pod counts until it has ended or is deleted.
func (c *Checker) withinCapacity(p *corev1.Pod, n *node) {
	if n == nil {
		return
	}
	c.record.counts[Capacity]++
	lacking := capacity.Lacking(c.state.used(p.Spec.NodeName), n.object.Status.Allocatable)
	switch {
	case lacking == "":
	case c.clock.now.Sub(n.foreign) < Lag:
		c.record.summary.RacesLost++
	default:
		c.record.fail(Capacity, append([]string{"node " + p.Spec.NodeName}, podKeys(p)...), "node %s is overcommitted with pod %s: %s", p.Spec.NodeName, name(p), lacking)
	}
}

// withinCap checks the capability of a queue when one of its pods is bound.
func (c *Checker) withinCap(p *corev1.Pod, name string) {
	if q := c.state.queues[name]; q == nil || !q.exists {
		return
	}
	c.record.counts[Capability]++
	if text := c.state.excess(name, p); text != "" {
		c.record.fail(Capability, append([]string{"queue " + name}, podKeys(p)...), "queue %s exceeds its capability with pod %s/%s: %s", name, p.Namespace, p.Name, text)
	}
}

// Note records an event about a pod.
func (c *Checker) Note(at time.Time, e *eventsv1.Event) {
	c.clock.now = at
	if e.ReportingController != c.state.schedulerName || e.Regarding.Kind != "Pod" {
		return
	}
	if e.Reason == v1alpha1.ReasonScheduled {
		c.reported[e.Regarding.UID]++
		if c.reported[e.Regarding.UID] == 2 {
			where := e.Regarding.Namespace + "/" + e.Regarding.Name
			c.record.fail(Once, []string{"pod " + where}, "two events report that pod %s was bound", where)
		}
		return
	}
	c.evictions.caused(e)
}

func name(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

func podKeys(p *corev1.Pod) []string {
	keys := []string{"pod " + name(p), "job " + jobKey(p)}
	if p.Spec.NodeName != "" {
		keys = append(keys, "node "+p.Spec.NodeName)
	}
	return keys
}

// jobKey returns the name of the pod's job in annotations.
func jobKey(p *corev1.Pod) string {
	if group := p.Labels[v1alpha1.LabelPodGroup]; group != "" {
		return p.Namespace + "/" + group
	}
	return name(p)
}

// disrupted reports whether a pod was evicted through the Eviction API, which only the scheduler uses here.
func disrupted(p *corev1.Pod) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return strings.HasPrefix(condition.Reason, "EvictionByEvictionAPI")
		}
	}
	return false
}
