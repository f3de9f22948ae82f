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
	text string
}

// history prints the last moments with their ages, the newest last: from the objects, because events
// expire after an hour and are not always readable, and from the events.
func (f *Facts) history(s *textWriter) {
	moments := f.milestones()
	for i := range f.Events {
		moments = append(moments, moment{happened(&f.Events[i]), describe(&f.Events[i])})
	}
	slices.SortStableFunc(moments, func(a, b moment) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.text, b.text))
	})
	var lines []string
	if left := len(moments) - remembered; left > 0 {
		lines = append(lines, fmt.Sprintf("(%d earlier entries)", left))
		moments = moments[left:]
	}
	for _, m := range moments {
		lines = append(lines, f.age(metav1.NewTime(m.at))+" ago "+m.text)
	}
	s.add("History", lines...)
}

// milestones are what the objects say of the past: of several pods the last.
func (f *Facts) milestones() []moment {
	var found []moment
	if g := f.Group; g != nil {
		found = append(found, moment{g.CreationTimestamp.Time, "the PodGroup was created"})
		for _, c := range g.Status.Conditions {
			if c.Type == v1alpha1.ConditionPodGroupScheduled && c.Status == metav1.ConditionTrue {
				found = append(found, moment{c.LastTransitionTime.Time, "it was scheduled"})
			} else if c.Type == v1alpha1.ConditionPodGroupScheduled {
				found = append(found, moment{c.LastTransitionTime.Time, "it became pending"})
			}
		}
	}
	for _, milestone := range []struct {
		what string
		when func(*corev1.Pod) time.Time // zero for a pod that has not come so far
	}{
		{"created", func(p *corev1.Pod) time.Time { return p.CreationTimestamp.Time }},
		{"bound to a node", bound},
		{"deleted", deletionTime},
		{"finished", ended},
	} {
		pods, last := 0, time.Time{}
		for i := range f.Pods {
			if at := milestone.when(&f.Pods[i]); !at.IsZero() {
				pods++
				last = latest(last, at)
			}
		}
		switch {
		case pods == 1:
			found = append(found, moment{last, "1 pod was " + milestone.what})
		case pods > 1:
			found = append(found, moment{last, fmt.Sprintf("the last of %d pods was %s", pods, milestone.what)})
		}
	}
	return found
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
