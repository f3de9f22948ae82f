package checker

import (
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

type resourceQuantity = resource.Quantity

// Pod shows a pod, or that it is gone.
func (c *Checker) Pod(at time.Time, p *corev1.Pod, gone bool) {
	c.now = at
	before := c.pods[p.UID]
	if before == nil {
		before = &corev1.Pod{}
		c.say(p, "is created")
	}
	if before.Spec.NodeName != "" && before.Spec.NodeName != p.Spec.NodeName {
		c.fail(Once, podKeys(p), "pod %s moved from node %s to %q", name(p), before.Spec.NodeName, p.Spec.NodeName)
	}
	c.pods[p.UID] = p
	if before.Spec.NodeName == "" && p.Spec.NodeName != "" {
		c.bound(p)
	}
	if c.ours(p) {
		c.follow(before, p, gone)
	} else if disrupted(p) && !disrupted(before) {
		c.fail(Justified, podKeys(p), "pod %s was evicted, which is not the scheduler's to evict", name(p))
	}
	if gone {
		c.say(p, "is gone")
		delete(c.pods, p.UID)
		delete(c.reported, p.UID)
		delete(c.early, p.UID)
	}
	c.checkStart(jobKey(p))
}

// follow looks at what has become of a pod of the scheduler.
func (c *Checker) follow(before, p *corev1.Pod, gone bool) {
	if before.Spec.NodeName == "" && before.DeletionTimestamp == nil {
		c.job(jobKey(p)).waited = c.now // until now at least
	}
	if disrupted(p) && !disrupted(before) {
		c.evicted(p)
	}
	leaves := (p.DeletionTimestamp != nil || gone) && before.DeletionTimestamp == nil
	if leaves && !disrupted(p) && !capacity.Ended(p) {
		c.summary.Deleted++
		c.say(p, "is deleted")
	}
	if leaves && !capacity.Ended(p) {
		c.invalidate(jobKey(p))
	}
	if p.Status.Phase == before.Status.Phase {
		return
	}
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		c.summary.Finished++
		c.say(p, "has ended well")
	case corev1.PodFailed:
		c.say(p, "has failed: "+p.Status.Reason+" "+p.Status.Message)
		c.invalidate(jobKey(p))
		c.rejected(p)
	}
}

// rejected looks for the fault when a kubelet has not admitted a pod.
func (c *Checker) rejected(p *corev1.Pod) {
	n := c.nodes[p.Spec.NodeName]
	if p.Status.Reason == "" || n == nil || c.now.Sub(n.foreign) < 2*Lag || c.now.Sub(n.changed) < 2*Lag {
		return
	}
	c.fail(Admitted, append([]string{"node " + p.Spec.NodeName}, podKeys(p)...), "node %s has turned pod %s away: %s %s", p.Spec.NodeName, name(p), p.Status.Reason, p.Status.Message)
}

// bound looks at a pod that has just got its node.
func (c *Checker) bound(p *corev1.Pod) {
	queueName, committed := p.Annotations[v1alpha1.AnnotationQueue]
	if committed { // so that those who look at the queue find the pod
		c.say(p, "gets node "+p.Spec.NodeName, "node "+p.Spec.NodeName, "queue "+queueName)
	} else {
		c.say(p, "gets node "+p.Spec.NodeName, "node "+p.Spec.NodeName)
	}
	n := c.nodes[p.Spec.NodeName]
	if !c.ours(p) {
		c.summary.Foreign++
		if n != nil {
			n.foreign = c.now
		}
		c.disturbed()
		c.counts[Once]++
		if committed {
			c.fail(Once, podKeys(p), "pod %s of another scheduler was bound by this one", name(p))
		}
		return
	}
	c.summary.Bound++
	c.counts[Once]++
	if _, group := p.Annotations[v1alpha1.AnnotationPodGroupUID]; !committed || !group {
		c.fail(Once, podKeys(p), "pod %s was bound by somebody else, or does not say where it counts", name(p))
	}
	c.rightPlace(p, n)
	c.withinCapacity(p, n)
	c.withinCap(p, queueName)
	c.served(jobKey(p))
	c.begin(p)
}

// rightPlace holds a pod to nodes that take pods, and to its node selector.
func (c *Checker) rightPlace(p *corev1.Pod, n *node) {
	c.counts[Place]++
	c.counts[Admitted]++
	switch {
	case n == nil:
		c.fail(Place, podKeys(p), "pod %s was bound to node %s, which has never been there", name(p), p.Spec.NodeName)
	case !n.fit && c.now.Sub(n.changed) > Lag:
		c.fail(Place, append([]string{"node " + p.Spec.NodeName}, podKeys(p)...), "pod %s was bound to node %s, which has taken no pods for %s",
			name(p), p.Spec.NodeName, c.now.Sub(n.changed).Round(time.Second))
	}
	if n == nil {
		return
	}
	for key, value := range p.Spec.NodeSelector {
		if n.object.Labels[key] != value {
			c.fail(Place, podKeys(p), "pod %s asks for nodes with %s=%s, and was bound to node %s", name(p), key, value, p.Spec.NodeName)
		}
	}
}

// withinCapacity holds a node to its room, as its kubelet counts: a pod takes room until it has ended or is gone.
func (c *Checker) withinCapacity(p *corev1.Pod, n *node) {
	if n == nil {
		return
	}
	c.counts[Capacity]++
	lacking := capacity.Lacking(c.used(p.Spec.NodeName), n.object.Status.Allocatable)
	switch {
	case lacking == "":
	case c.now.Sub(n.foreign) < Lag:
		c.summary.RacesLost++
	default:
		c.fail(Capacity, append([]string{"node " + p.Spec.NodeName}, podKeys(p)...), "node %s is too full with pod %s: %s", p.Spec.NodeName, name(p), lacking)
	}
}

// used is what pods take of a node.
func (c *Checker) used(node string) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, p := range c.pods {
		if p.Spec.NodeName == node && !capacity.Ended(p) {
			capacity.Add(sum, capacity.Request(p))
		}
	}
	return sum
}

// withinCap holds a queue to its capability when one of its pods is bound. What the queue allowed a moment
// ago counts as well, and pods do not whose node is or was away.
func (c *Checker) withinCap(p *corev1.Pod, name string) {
	q := c.queues[name]
	if q == nil || !q.exists {
		return
	}
	c.counts[Capability]++
	held, asked := c.held(name), capacity.Request(p)
	maps.DeleteFunc(held, func(resource corev1.ResourceName, _ resourceQuantity) bool { // a cap may have come down below what is held
		amount := asked[resource]
		return amount.IsZero()
	})
	var text string
	for i := len(q.caps) - 1; i >= 0; i-- {
		limit := q.caps[i]
		if !limit.until.IsZero() && c.now.Sub(limit.until) > Lag {
			break
		}
		if text = capacity.Excess(held, limit.limits); text == "" {
			return
		}
	}
	c.fail(Capability, append([]string{"queue " + name}, podKeys(p)...), "queue %s holds more than its capability with pod %s/%s: %s", name, p.Namespace, p.Name, text)
}

// held is what the pods of a queue hold on nodes that have been there for a while.
func (c *Checker) held(queue string) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, p := range c.pods {
		if !c.ours(p) || p.Spec.NodeName == "" || capacity.Ended(p) || p.Annotations[v1alpha1.AnnotationQueue] != queue {
			continue
		}
		if n := c.nodes[p.Spec.NodeName]; n != nil && n.exists && (n.fit || c.now.Sub(n.changed) > Lag) {
			capacity.Add(sum, capacity.Request(p))
		}
	}
	return sum
}

// Note shows an event that somebody wrote about a pod.
func (c *Checker) Note(at time.Time, e *eventsv1.Event) {
	c.now = at
	if e.ReportingController != c.schedulerName || e.Regarding.Kind != "Pod" {
		return
	}
	if e.Reason == v1alpha1.ReasonScheduled {
		c.reported[e.Regarding.UID]++
		if c.reported[e.Regarding.UID] == 2 {
			where := e.Regarding.Namespace + "/" + e.Regarding.Name
			c.fail(Once, []string{"pod " + where}, "two events say that pod %s was bound", where)
		}
		return
	}
	c.caused(e)
}

func (c *Checker) ours(p *corev1.Pod) bool { return p.Spec.SchedulerName == c.schedulerName }

// say puts a line about a pod into the journal.
func (c *Checker) say(p *corev1.Pod, what string, more ...string) {
	c.log.add(c.now, fmt.Sprintf("pod %s %s", name(p), what), append(podKeys(p), more...)...)
}

func name(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

func podKeys(p *corev1.Pod) []string {
	keys := []string{"pod " + name(p), "job " + jobKey(p)}
	if p.Spec.NodeName != "" {
		keys = append(keys, "node "+p.Spec.NodeName)
	}
	return keys
}

// jobKey names the job of a pod as the scheduler names it to others.
func jobKey(p *corev1.Pod) string {
	if group := p.Labels[v1alpha1.LabelPodGroup]; group != "" {
		return p.Namespace + "/" + group
	}
	return name(p)
}

// disrupted tells whether a pod was evicted by way of the Eviction API, which nobody else uses here.
func disrupted(p *corev1.Pod) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return strings.HasPrefix(condition.Reason, "EvictionByEvictionAPI")
		}
	}
	return false
}
