// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// volcanoShown reads phase, counts, and which of the conditions Scheduled and Unschedulable is True.
func volcanoShown(status []byte) (v1alpha1.PodGroupStatus, error) {
	var s volcanoPodGroupStatus
	err := json.Unmarshal(status, &s)
	shown := v1alpha1.PodGroupStatus{Running: s.Running, Succeeded: s.Succeeded, Failed: s.Failed}
	switch s.Phase {
	case "":
	case volcanoRunning:
		shown.Phase = v1alpha1.PodGroupRunning
	case volcanoUnknown:
		shown.Phase = v1alpha1.PodGroupUnknown
	case volcanoCompleted:
		shown.Phase = v1alpha1.PodGroupFinished
	default: // Pending and Inqueue
		shown.Phase = v1alpha1.PodGroupPending
	}
	for _, c := range s.Conditions {
		if c.Status != string(metav1.ConditionTrue) || c.Type != volcanoScheduled && c.Type != volcanoUnschedulable {
			continue
		}
		is := metav1.ConditionFalse
		if c.Type == volcanoScheduled {
			is = metav1.ConditionTrue
		}
		shown.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionPodGroupScheduled, Status: is, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		}}
	}
	return shown, err
}

// volcanoStatus writes phase, counts and the conditions Scheduled and Unschedulable, of which one is True.
func volcanoStatus(shown []byte, want *api.PodGroupReport, now metav1.Time) (next []byte, urgent bool, err error) {
	next, err = change(shown, func(s *volcanoPodGroupStatus) {
		phase := volcanoPhase(s.Phase, want)
		urgent = s.Phase != phase
		s.Phase, s.Running, s.Succeeded, s.Failed = phase, want.Running, want.Succeeded, want.Failed
		if want.Reason == "" {
			return
		}
		is, not := volcanoScheduled, volcanoUnschedulable
		if !want.Scheduled {
			is, not = not, is
		}
		urgent = s.set(volcanoCondition{Type: is, Status: "True", Reason: want.Reason, Message: want.Message}, now) || urgent
		for i := range s.Conditions {
			if c := s.Conditions[i]; c.Type == not && c.Status == "True" {
				c.Status = "False"
				s.set(c, now)
			}
		}
	})
	return next, urgent, err
}

// set sets a condition, and reports whether its status or reason is another one than before.
func (s *volcanoPodGroupStatus) set(c volcanoCondition, now metav1.Time) bool {
	c.LastTransitionTime, c.TransitionID = now, "batch-scheduler-"+strconv.FormatInt(now.Unix(), 10)
	for i := range s.Conditions {
		before := &s.Conditions[i]
		if before.Type != c.Type {
			continue
		}
		changed := before.Status != c.Status || before.Reason != c.Reason
		if !changed {
			c.LastTransitionTime, c.TransitionID = before.LastTransitionTime, before.TransitionID
		}
		*before = c
		return changed
	}
	s.Conditions = append(s.Conditions, c)
	return true
}

// volcanoPhase returns the phase that a group should show. A group that could start is Inqueue from then on.
func volcanoPhase(shown string, want *api.PodGroupReport) string {
	switch want.Phase {
	case v1alpha1.PodGroupRunning:
		return volcanoRunning
	case v1alpha1.PodGroupUnknown:
		return volcanoUnknown
	case v1alpha1.PodGroupFinished, v1alpha1.PodGroupFailed:
		return volcanoCompleted
	}
	if shown == "" || shown == volcanoPending {
		switch want.Reason {
		case v1alpha1.ReasonNotSupported, v1alpha1.ReasonTopologyNotFound, v1alpha1.ReasonQueueNotFound, v1alpha1.ReasonQueueConflict,
			v1alpha1.ReasonExceedsClusterCapacity, v1alpha1.ReasonExceedsQueueCapability:
			return volcanoPending
		}
	}
	return volcanoInqueue
}
