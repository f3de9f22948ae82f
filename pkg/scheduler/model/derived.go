// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// What is derived from the members of a job.

// updatePriority recomputes the priority of a job whose members or group changed.
func updatePriority(j *api.JobInfo) {
	if j.Tracking.GroupPriority != nil {
		j.Priority = *j.Tracking.GroupPriority
		return
	}
	first := true
	for _, t := range j.Tasks {
		if !t.Status.Ended() && (first || t.Priority > j.Priority) {
			j.Priority, first = t.Priority, false
		}
	}
	if first {
		j.Priority = 0
	}
}

// shadowKey is the key of a shadow with the single member t: that of its owner, else that of the pod.
func shadowKey(t *api.TaskInfo) string {
	if owner := metav1.GetControllerOf(t.Pod); owner != nil {
		return t.Pod.Namespace + "/" + owner.Name
	}
	return t.Key
}

// updateShadow derives what a PodGroup would specify from the members, independent of their order.
func updateShadow(j *api.JobInfo) {
	j.MinMember, j.Created, j.Key = 1, 0, ""
	for _, t := range j.Tasks {
		if key := shadowKey(t); j.Key == "" || key < j.Key {
			j.Key = key
		}
		if j.OrphanedGroup() == "" {
			j.MinMember = max(j.MinMember, api.ShadowMinMember(t.Pod))
		}
		if j.Created == 0 || t.Created < j.Created {
			j.Created = t.Created
		}
	}
}
