// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"

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
	key := j.GroupKey()
	j.Created, j.Key = 0, ""
	if j.Owner == nil {
		j.MinMember = 1
	}
	for _, t := range j.Tasks {
		if owner := shadowKey(t); j.Key == "" || owner < j.Key {
			j.Key = owner
		}
		if j.OrphanedGroup() == "" && key == "" && j.Owner == nil {
			j.MinMember = max(j.MinMember, api.ShadowMinMember(t.Pod))
		}
		if j.Created == 0 || t.Created < j.Created {
			j.Created = t.Created
		}
	}
	if j.Owner != nil {
		j.Key = j.Namespace + "/" + j.Owner.Name
	}
	if key != "" {
		j.Key = j.Namespace + "/" + key
		updateKeyed(j)
	}
}

// updateKeyed derives the size of a gang whose pods have a group key. Pods that have ended do not count.
func updateKeyed(j *api.JobInfo) {
	var least, most int32
	var first, without *api.TaskInfo // the first pod, and the first one without a valid size, by name
	for _, t := range j.Tasks {
		if t.Status.Ended() {
			continue
		}
		if first == nil || t.Key < first.Key {
			first = t
		}
		n, ok := api.KeyedMinMember(t.Pod)
		switch {
		case !ok && (without == nil || t.Key < without.Key):
			without = t
		case ok && least == 0:
			least, most = n, n
		case ok:
			least, most = min(least, n), max(most, n)
		}
	}
	j.MinMember, j.Tracking.Conflict = max(most, 1), ""
	switch {
	case without != nil:
		key, size := api.GroupKeyFields(without.Pod)
		j.Tracking.Conflict = fmt.Sprintf("pod %s has the %s, so it needs a positive number in %s", without.Key, key, size)
	case least != most:
		key, size := api.GroupKeyFields(first.Pod)
		j.Tracking.Conflict = fmt.Sprintf("pods with one %s name different sizes in %s: %d and %d", key[strings.Index(key, " ")+1:], size, least, most)
	}
}
