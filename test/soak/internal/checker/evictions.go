// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

const (
	// planLasts is the maximum time between evictions of one plan.
	planLasts = 2 * time.Second
	// ineffectivePlan is how many consecutive plans may start no pod of their preemptor, without and with a
	// disturbance.
	ineffectivePlan, disturbedPlan = 2, 6
)

// job is a group or a pod without one, as a preemptor and as a victim.
type job struct {
	waited     time.Time // when a pod of it was last pending
	disturbed  time.Time // when another client last deleted or changed its pods
	plan       *plan     // the last plan for it
	inCooldown bool      // another queue reclaimed resources from it
}

// plan is a set of evictions for one job at one time.
type plan struct {
	began, last time.Time
	served      bool // a pod of the job was bound since
	undisturbed int  // consecutive plans without effect and without a disturbance
	ineffective int  // consecutive plans without effect
}

// eviction is an evicted pod whose reason is not known yet.
type eviction struct {
	at        time.Time
	pod       *corev1.Pod
	excused   bool // the scheduler was stopped before it could report the reason
	preemptor string
}

func (c *Checker) job(key string) *job {
	j := c.jobs[key]
	if j == nil {
		j = &job{}
		c.jobs[key] = j
	}
	return j
}

// evicted checks a pod that was just evicted.
func (c *Checker) evicted(p *corev1.Pod) {
	c.counts[Justified]++
	preemptor := p.Annotations[v1alpha1.AnnotationEvictedFor]
	c.say(p, fmt.Sprintf("is evicted for %q", preemptor), "job "+preemptor)
	keys := append(podKeys(p), "job "+preemptor)
	if preemptor == "" {
		c.fail(Justified, keys, "pod %s was evicted without the name of its preemptor", name(p))
		return
	}
	known, waits := c.jobs[preemptor], c.waits(preemptor)
	if !waits {
		c.summary.Late++
	}
	if known == nil || c.now.Sub(known.waited) > 2*Lag && !waits {
		c.fail(Justified, keys, "pod %s was evicted for %s, which has no pending pod", name(p), preemptor)
	}
	if preemptor == jobKey(p) && !c.outranked(p) {
		c.fail(Justified, keys, "pod %s was evicted for its own job", name(p))
	}
	c.evictions[p.UID] = &eviction{at: c.now, pod: p, preemptor: preemptor, excused: c.down}
	c.planned(preemptor, keys)
	if e := c.early[p.UID]; e != nil {
		delete(c.early, p.UID)
		c.caused(e)
	}
}

// waits reports whether a pod of the job is pending.
func (c *Checker) waits(key string) bool {
	for _, p := range c.pods {
		if c.ours(p) && p.Spec.NodeName == "" && jobKey(p) == key {
			return true
		}
	}
	return false
}

// outranked reports whether a pod of the same job has a higher priority.
func (c *Checker) outranked(p *corev1.Pod) bool {
	for _, other := range c.pods {
		if c.ours(other) && jobKey(other) == jobKey(p) && ptr.Deref(other.Spec.Priority, 0) > ptr.Deref(p.Spec.Priority, 0) {
			return true
		}
	}
	return false
}

// planned counts plans for a job that had no effect.
func (c *Checker) planned(preemptor string, keys []string) {
	c.counts[Effective]++
	j := c.job(preemptor)
	last := j.plan
	if last != nil && c.now.Sub(last.last) < planLasts {
		last.last = c.now
		return
	}
	j.plan = &plan{began: c.now, last: c.now}
	if last == nil || last.served || j.disturbed.After(last.began) {
		return
	}
	c.summary.IneffectivePlans++
	j.plan.ineffective = last.ineffective + 1
	if !c.disturbance.After(last.began) {
		j.plan.undisturbed = last.undisturbed + 1
	}
	if j.plan.undisturbed >= ineffectivePlan || j.plan.ineffective >= disturbedPlan {
		c.fail(Effective, append([]string{"job " + preemptor}, keys...), "%d consecutive plans evicted pods for %s without binding a pod of it", j.plan.ineffective, preemptor)
	}
}

// served records that a pod of a job was bound.
func (c *Checker) served(key string) {
	if j := c.job(key); j.plan != nil {
		j.plan.served = true
	}
}

// caused records the event with the reason of an eviction. Events have a separate watch, which may be ahead of the
// watch of pods.
func (c *Checker) caused(e *eventsv1.Event) {
	switch e.Reason {
	case "Preempted", "Reclaimed", v1alpha1.ReasonGangDegraded:
	default:
		return
	}
	uid := e.Regarding.UID
	victim := c.evictions[uid]
	if victim == nil {
		if c.pods[uid] != nil {
			c.early[uid] = e
		}
		return
	}
	c.summary.Evictions[e.Reason]++
	delete(c.evictions, uid)
	if e.Reason == "Reclaimed" {
		c.job(jobKey(victim.pod)).inCooldown = true
	}
	c.say(victim.pod, "was evicted: "+e.Reason+", "+e.Note)
}

// overdueCauses reports evictions without an event.
func (c *Checker) overdueCauses() {
	for uid, e := range c.evictions {
		e.excused = e.excused || c.down || c.upAt.After(e.at)
		if c.now.Sub(e.at) <= CauseGrace {
			continue
		}
		delete(c.evictions, uid)
		if e.excused {
			c.summary.Evictions["reason lost in a restart"]++
			c.job(jobKey(e.pod)).inCooldown = true // possibly
			continue
		}
		c.fail(Justified, podKeys(e.pod), "pod %s was evicted for %s without an event", name(e.pod), e.preemptor)
	}
}
