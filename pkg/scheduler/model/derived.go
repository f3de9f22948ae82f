// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
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
	key := j.GroupKey()
	j.MinMember, j.Created, j.Key = 1, 0, ""
	for _, t := range j.Tasks {
		if owner := shadowKey(t); j.Key == "" || owner < j.Key {
			j.Key = owner
		}
		if j.OrphanedGroup() == "" && key == "" {
			j.MinMember = max(j.MinMember, api.ShadowMinMember(t.Pod))
		}
		if j.Created == 0 || t.Created < j.Created {
			j.Created = t.Created
		}
	}
	if key != "" {
		j.Key = j.Namespace + "/" + key
		updateKeyed(j)
	}
}

// updateKeyed derives the size of a gang whose pods have a group key. Pods that have ended do not count.
func updateKeyed(j *api.JobInfo) {
	var least, most int32
	var without string // the first pod without a valid size, by name
	for _, t := range j.Tasks {
		if t.Status.Ended() {
			continue
		}
		n, ok := api.KeyedMinMember(t.Pod)
		switch {
		case !ok && (without == "" || t.Key < without):
			without = t.Key
		case ok && least == 0:
			least, most = n, n
		case ok:
			least, most = min(least, n), max(most, n)
		}
	}
	j.MinMember, j.Tracking.Conflict = max(most, 1), ""
	switch {
	case without != "":
		j.Tracking.Conflict = fmt.Sprintf("pod %s has the annotation %s, so it needs a positive number in %s",
			without, v1alpha1.AnnotationGroupKey, v1alpha1.AnnotationMinMember)
	case least != most:
		j.Tracking.Conflict = fmt.Sprintf("pods with one %s name different sizes in %s: %d and %d",
			v1alpha1.AnnotationGroupKey, v1alpha1.AnnotationMinMember, least, most)
	}
}
