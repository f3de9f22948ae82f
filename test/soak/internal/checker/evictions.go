// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

const (
	// planLasts is the maximum time between evictions of one plan.
	planLasts = 2 * time.Second
	// ineffectivePlan is how many consecutive plans may start no pod of their preemptor, without and with a
	// disturbance.
	ineffectivePlan, disturbedPlan = 2, 6
)

// jobs are the jobs by namespace/name of the group or of the pod without one.
type jobs map[string]*job

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

// of returns a job, and creates it the first time.
func (all jobs) of(key string) *job {
	j := all[key]
	if j == nil {
		j = &job{}
		all[key] = j
	}
	return j
}

// evictions are the evictions whose event has not arrived, and the events whose eviction has not. It checks that each
// eviction has a reason, and that it has an effect.
type evictions struct {
	clock  *clock
	state  *state
	record *record
	jobs   jobs

	unexplained map[types.UID]*eviction
	early       map[types.UID]*eventsv1.Event // of pods that do not show the eviction yet
}

func newEvictions(clock *clock, state *state, record *record, jobs jobs) *evictions {
	return &evictions{
		clock: clock, state: state, record: record, jobs: jobs,
		unexplained: map[types.UID]*eviction{}, early: map[types.UID]*eventsv1.Event{},
	}
}

// evicted checks a pod that was just evicted.
func (e *evictions) evicted(p *corev1.Pod) {
	e.record.counts[Justified]++
	preemptor := p.Annotations[v1alpha1.AnnotationEvictedFor]
	e.record.say(p, fmt.Sprintf("is evicted for %q", preemptor), "job "+preemptor)
	keys := append(podKeys(p), "job "+preemptor)
	if preemptor == "" {
		e.record.fail(Justified, keys, "pod %s was evicted without the name of its preemptor", name(p))
		return
	}
	known, waits := e.jobs[preemptor], e.state.waits(preemptor)
	if !waits {
		e.record.summary.Late++
	}
	if known == nil || e.clock.now.Sub(known.waited) > 2*Lag && !waits {
		e.record.fail(Justified, keys, "pod %s was evicted for %s, which has no pending pod", name(p), preemptor)
	}
	if preemptor == jobKey(p) && !e.state.outranked(p) {
		e.record.fail(Justified, keys, "pod %s was evicted for its own job", name(p))
	}
	e.unexplained[p.UID] = &eviction{at: e.clock.now, pod: p, preemptor: preemptor, excused: e.clock.down}
	e.planned(preemptor, keys)
	if event := e.early[p.UID]; event != nil {
		delete(e.early, p.UID)
		e.caused(event)
	}
}

// planned counts plans for a job that had no effect.
func (e *evictions) planned(preemptor string, keys []string) {
	e.record.counts[Effective]++
	j := e.jobs.of(preemptor)
	last := j.plan
	if last != nil && e.clock.now.Sub(last.last) < planLasts {
		last.last = e.clock.now
		return
	}
	j.plan = &plan{began: e.clock.now, last: e.clock.now}
	if last == nil || last.served || j.disturbed.After(last.began) {
		return
	}
	e.record.summary.IneffectivePlans++
	j.plan.ineffective = last.ineffective + 1
	if !e.clock.disturbance.After(last.began) {
		j.plan.undisturbed = last.undisturbed + 1
	}
	if j.plan.undisturbed >= ineffectivePlan || j.plan.ineffective >= disturbedPlan {
		e.record.fail(Effective, append([]string{"job " + preemptor}, keys...), "%d consecutive plans evicted pods for %s without binding a pod of it", j.plan.ineffective, preemptor)
	}
}

// served records that a pod of a job was bound.
func (e *evictions) served(key string) {
	if j := e.jobs.of(key); j.plan != nil {
		j.plan.served = true
	}
}

// caused records the event with the reason of an eviction. Events have a separate watch, which may be ahead of the
// watch of pods.
func (e *evictions) caused(event *eventsv1.Event) {
	switch event.Reason {
	case v1alpha1.EvictedByPreemption, v1alpha1.EvictedByReclaim, v1alpha1.ReasonGangDegraded, v1alpha1.EvictedByOverrun:
	default:
		return
	}
	uid := event.Regarding.UID
	victim := e.unexplained[uid]
	if victim == nil {
		if e.state.pods[uid] != nil {
			e.early[uid] = event
		}
		return
	}
	e.record.summary.Evictions[event.Reason]++
	delete(e.unexplained, uid)
	if event.Reason == "Reclaimed" {
		e.jobs.of(jobKey(victim.pod)).inCooldown = true
	}
	e.record.say(victim.pod, "was evicted: "+event.Reason+", "+event.Note)
}

// overdueCauses reports evictions without an event.
func (e *evictions) overdueCauses() {
	for uid, victim := range e.unexplained {
		victim.excused = victim.excused || e.clock.down || e.clock.upAt.After(victim.at)
		if e.clock.now.Sub(victim.at) <= CauseGrace {
			continue
		}
		delete(e.unexplained, uid)
		if victim.excused {
			e.record.summary.Evictions["reason lost in a restart"]++
			e.jobs.of(jobKey(victim.pod)).inCooldown = true // possibly
			continue
		}
		e.record.fail(Justified, podKeys(victim.pod), "pod %s was evicted for %s without an event", name(victim.pod), victim.preemptor)
	}
}
