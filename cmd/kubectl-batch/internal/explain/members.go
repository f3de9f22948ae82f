// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// exception is what keeps some members, other than the reason of their group.
type exception struct {
	reason, message string
	count           int
	others          int // of them, with another message
}

// exceptions returns the members that the reason of the PodGroup does not cover, by reason: those of the most members first.
func (f *Facts) exceptions() []exception {
	var found []exception
	for i := range f.Pods {
		reason, message := f.exception(&f.Pods[i])
		if reason == "" {
			continue
		}
		at := slices.IndexFunc(found, func(e exception) bool { return e.reason == reason })
		if at < 0 {
			at = len(found)
			found = append(found, exception{reason: reason, message: message})
		}
		found[at].count++
		if message != found[at].message {
			found[at].others++
		}
	}
	slices.SortFunc(found, func(a, b exception) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.reason, b.reason))
	})
	return found
}

// exceptionTexts returns a paragraph for each reason of exceptions.
func (f *Facts) exceptionTexts() []string {
	var paragraphs []string
	for _, e := range f.exceptions() {
		paragraphs = append(paragraphs, e.text())
	}
	return paragraphs
}

func (e exception) text() string {
	text := fmt.Sprintf("%d %s", e.count, e.reason)
	if e.message != "" {
		text += ": " + e.message
	}
	if e.others > 0 {
		text += fmt.Sprintf(" (%d of them with another message)", e.others)
	}
	return text
}

// exception is empty for a member that runs, or waits as its group does.
func (f *Facts) exception(p *corev1.Pod) (reason, message string) {
	condition := podScheduled(p)
	switch {
	case p.DeletionTimestamp != nil:
		return "being deleted", ""
	case !waits(p):
		return "", ""
	case foreign(p):
		return "not counted", "spec.schedulerName is " + p.Spec.SchedulerName + ". " + adviceForeignScheduler
	case len(p.Spec.SchedulingGates) > 0:
		return "gated", "first gate: " + p.Spec.SchedulingGates[0].Name
	case condition == nil:
		return "not processed yet", ""
	case f.covers(condition):
		return "", ""
	}
	return condition.Reason, condition.Message
}

// covers reports whether the condition of the PodGroup contains what that of a pod says.
func (f *Facts) covers(pod *corev1.PodCondition) bool {
	group := meta.FindStatusCondition(f.Group.Status.Conditions, v1alpha1.ConditionPodGroupScheduled)
	switch {
	case group == nil:
		return false
	case pod.Reason == corev1.PodReasonUnschedulable &&
		(group.Reason == v1alpha1.ReasonNotEnoughResources || group.Reason == v1alpha1.ReasonExceedsClusterCapacity):
		return true
	}
	return pod.Reason == group.Reason || strings.Contains(group.Message, pod.Message)
}
