// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// kaiConditions is the part of the status that the scheduler writes. What the group uses is for the controller of KAI Scheduler to
// write, and the phase and the counts are fields that nothing writes, and that later versions do not have.
type kaiConditions struct {
	SchedulingConditions []kaiCondition `json:"schedulingConditions"`
}

// kaiCondition is why a group is not scheduled on a pool of nodes.
type kaiCondition struct {
	Type               string          `json:"type,omitempty"`
	NodePool           string          `json:"nodePool,omitempty"`
	Reason             string          `json:"reason,omitempty"`
	Message            string          `json:"message,omitempty"`
	Reasons            json.RawMessage `json:"reasons,omitempty"` // a list of kaiReason, with details that are kept for other pools
	LastTransitionTime metav1.Time     `json:"lastTransitionTime,omitzero"`
	Status             string          `json:"status,omitempty"`
	TransitionID       string          `json:"transitionID,omitempty"` // a number
}

type kaiReason struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// kaiUnschedulable is the type of the condition.
const kaiUnschedulable = "UnschedulableOnNodePool"

func (c *kaiCondition) isOurs() bool {
	return c.Type == kaiUnschedulable && c.NodePool == kaiDefaultNodePool
}

// why returns the reason of this scheduler, or that of KAI Scheduler.
func (c *kaiCondition) why() kaiReason {
	var list []kaiReason
	if err := json.Unmarshal(c.Reasons, &list); err == nil && len(list) > 0 {
		return list[0]
	}
	return kaiReason{c.Reason, c.Message}
}

// kaiStatus writes the condition UnschedulableOnNodePool as the scheduler of KAI Scheduler does: on groups that wait and of which no
// pod runs. It removes the condition when the group starts. The last condition of the list is the last that was written.
func kaiStatus(shown []byte, want *api.PodGroupReport, now metav1.Time) (next []byte, urgent bool, err error) {
	next, err = change(shown, func(s *kaiConditions) {
		at := slices.IndexFunc(s.SchedulingConditions, func(c kaiCondition) bool { return c.isOurs() })
		if want.Scheduled || want.Running > 0 || want.Reason == "" {
			urgent = at >= 0
			s.SchedulingConditions = slices.DeleteFunc(s.SchedulingConditions, func(c kaiCondition) bool { return c.isOurs() })
			return
		}
		why := kaiReason{want.Reason, want.Message}
		if at >= 0 && s.SchedulingConditions[at].Status == string(metav1.ConditionTrue) && s.SchedulingConditions[at].why() == why {
			return
		}
		urgent = at < 0 || s.SchedulingConditions[at].why().Reason != why.Reason
		s.add(why, now)
	})
	return next, urgent, err
}

// add replaces the condition of this scheduler.
func (s *kaiConditions) add(why kaiReason, now metav1.Time) {
	id := 0
	if n := len(s.SchedulingConditions); n > 0 {
		id, _ = strconv.Atoi(s.SchedulingConditions[n-1].TransitionID) // 0 if it is no number
	}
	reasons, err := json.Marshal([]kaiReason{why})
	if err != nil {
		reasons = nil // two strings can always be encoded
	}
	s.SchedulingConditions = slices.DeleteFunc(s.SchedulingConditions, func(c kaiCondition) bool { return c.isOurs() })
	s.SchedulingConditions = append(s.SchedulingConditions, kaiCondition{
		Type: kaiUnschedulable, NodePool: kaiDefaultNodePool, Reason: corev1.PodReasonUnschedulable, Message: why.Message, Reasons: reasons,
		LastTransitionTime: now, Status: string(metav1.ConditionTrue), TransitionID: strconv.Itoa(max(id, 0) + 1),
	})
}

// kaiShown reads the condition. The API has neither a phase nor counts.
func kaiShown(status []byte) (v1alpha1.PodGroupStatus, error) {
	var s kaiConditions
	var shown v1alpha1.PodGroupStatus
	err := json.Unmarshal(status, &s)
	for i := range s.SchedulingConditions {
		c := &s.SchedulingConditions[i]
		if c.isOurs() && c.Status == string(metav1.ConditionTrue) {
			shown.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionPodGroupScheduled, Status: metav1.ConditionFalse, Reason: c.why().Reason, Message: c.why().Message,
				LastTransitionTime: c.LastTransitionTime,
			}}
		}
	}
	return shown, err
}
