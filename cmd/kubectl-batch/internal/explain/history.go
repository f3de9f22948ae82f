// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// remembered is how many moments the output contains.
const remembered = 12

// moment is something that has happened.
type moment struct {
	at   time.Time
	step step
	text string
}

// step orders what happened within one second, because the times of objects are in seconds.
type step int

const (
	stepCreated   step = iota
	stepPodsExist      // pods are created
	stepPending        // the condition is False
	stepDecided        // the events, which have times of their own
	stepBound
	stepScheduled // the condition is True
	stepDeleted
	stepFinished
)

// history are moments, the newest last.
type history []moment

// historyOf returns what the objects and the events report about the past. Events alone are not enough, because they
// expire after an hour and are not always readable.
func historyOf(f *Facts) history {
	var h history
	if f.Group != nil {
		h.addGroup(f.Group)
	}
	h.addPods(f.Pods)
	for i := range f.Events {
		h.add(happened(&f.Events[i]), stepDecided, describe(&f.Events[i]))
	}
	slices.SortStableFunc(h, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.at.Unix(), b.at.Unix()), cmp.Compare(a.step, b.step), a.at.Compare(b.at), cmp.Compare(a.text, b.text))
	})
	return h
}

func (h *history) add(at time.Time, s step, text string) { *h = append(*h, moment{at, s, text}) }

// lines returns the last moments with their ages.
func (h history) lines(age func(metav1.Time) string) []string {
	var lines []string
	if left := len(h) - remembered; left > 0 {
		lines = append(lines, fmt.Sprintf("(%d earlier entries)", left))
		h = h[left:]
	}
	for _, m := range h {
		lines = append(lines, age(metav1.NewTime(m.at.Truncate(time.Second)))+" ago "+m.text)
	}
	return lines
}

// addGroup adds what a PodGroup reports about the past.
func (h *history) addGroup(g *v1alpha1.PodGroup) {
	h.add(g.CreationTimestamp.Time, stepCreated, "the PodGroup was created")
	for _, c := range g.Status.Conditions {
		if c.Type == v1alpha1.ConditionPodGroupScheduled && c.Status == metav1.ConditionTrue {
			h.add(c.LastTransitionTime.Time, stepScheduled, "it was scheduled")
		} else if c.Type == v1alpha1.ConditionPodGroupScheduled {
			h.add(c.LastTransitionTime.Time, stepPending, "it became pending")
		}
	}
}

// addPods adds what pods report about the past: of several pods the last.
func (h *history) addPods(all []corev1.Pod) {
	for _, milestone := range []struct {
		step step
		what string
		when func(*corev1.Pod) time.Time // zero for a pod that has not come so far
	}{
		{stepPodsExist, "created", func(p *corev1.Pod) time.Time { return p.CreationTimestamp.Time }},
		{stepBound, "bound to a node", bound},
		{stepDeleted, "deleted", deletionTime},
		{stepFinished, "finished", ended},
	} {
		pods, last := 0, time.Time{}
		for i := range all {
			if at := milestone.when(&all[i]); !at.IsZero() {
				pods++
				last = latest(last, at)
			}
		}
		switch {
		case pods == 1:
			h.add(last, milestone.step, "1 pod was "+milestone.what)
		case pods > 1:
			h.add(last, milestone.step, fmt.Sprintf("the last of %d pods was %s", pods, milestone.what))
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// bound is when a pod got its node.
func bound(p *corev1.Pod) time.Time {
	if c := podScheduled(p); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// deletionTime returns when a pod was deleted. DeletionTimestamp is the time at which it should have ended.
func deletionTime(p *corev1.Pod) time.Time {
	if p.DeletionTimestamp == nil {
		return time.Time{}
	}
	return p.DeletionTimestamp.Add(-time.Duration(ptr.Deref(p.DeletionGracePeriodSeconds, 0)) * time.Second)
}

// ended is when the last container of a pod ended that has ended as a whole.
func ended(p *corev1.Pod) time.Time {
	var last time.Time
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		return last
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			last = latest(last, c.State.Terminated.FinishedAt.Time)
		}
	}
	return last
}

func describe(e *corev1.Event) string {
	who := ""
	if e.InvolvedObject.Kind == "Pod" {
		who = "pod " + e.InvolvedObject.Name + " "
	}
	times := ""
	if n := occurrences(e); n > 1 {
		times = fmt.Sprintf(" (%d times)", n)
	}
	return who + e.Reason + times + ": " + e.Message
}

// happened is when an event was last seen. Which field says so depends on the API it was made by.
func happened(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

func occurrences(e *corev1.Event) int32 {
	if e.Series != nil {
		return e.Series.Count
	}
	return e.Count
}
