// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// taskRunTime derives start and deadline of a task from its pod.
func taskRunTime(a *audit, what string, t *api.TaskInfo) {
	var started, deadline int64
	if s := t.Pod.Status.StartTime; s != nil {
		if t.Pod.Spec.NodeName != "" {
			started = s.UnixNano()
		}
		if of := t.Pod.Spec.ActiveDeadlineSeconds; of != nil {
			deadline = s.Add(time.Duration(*of) * time.Second).UnixNano()
		}
	}
	for _, c := range t.Pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue && t.Pod.Spec.NodeName != "" {
			started = c.LastTransitionTime.UnixNano()
		}
	}
	if t.Tracking.Bind != nil {
		started = t.Tracking.BoundAt
	}
	expect(a, what+" started", t.Tracking.Started, started)
	expect(a, what+" deadline", t.Deadline, deadline)
}

// auditRunTime derives run time and start of a job from its objects.
func auditRunTime(a *audit, what string, j *api.JobInfo) {
	expect(a, what+" maximum run time", j.RunTime.Maximum, time.Duration(dumbMaximum(j))*time.Second)
	var starts []int64
	for _, t := range j.Tasks {
		if t.Tracking.Started > 0 && (t.Status.Holding() && a.onNode(t) || t.Status == api.Succeeded) {
			starts = append(starts, t.Tracking.Started)
		}
	}
	slices.Sort(starts)
	started := int64(0)
	if len(starts) >= int(j.MinMember) && j.Ready() {
		started = starts[j.MinMember-1]
	}
	expect(a, what+" started", j.Started, started)
}

// dumbMaximum returns the limit of a job in seconds, straight from docs/run-times.md; 0 if there is none.
func dumbMaximum(j *api.JobInfo) int {
	if j.Group != nil {
		if n := j.Group.Spec.MaximumExecutionTimeSeconds; n != nil && *n > 0 {
			return int(*n)
		}
		if n := j.Group.RunTime.Maximum; n > 0 { // groups of other APIs: from metadata that the model does not keep
			return int(n / time.Second)
		}
	}
	declared, deadline, deadlines, active := 0, 0, 0, 0
	for _, t := range j.Tasks {
		if t.Status == api.Succeeded || t.Status == api.Failed {
			continue
		}
		active++
		of := 0
		for _, text := range []string{t.Pod.Annotations["scheduling.batch-scheduler.dev/max-exec-time-seconds"], t.Pod.Labels["kueue.x-k8s.io/max-exec-time-seconds"]} {
			if n, err := strconv.Atoi(text); err == nil && n > 0 && of == 0 {
				of = n
			}
		}
		declared = max(declared, of)
		if d := t.Pod.Spec.ActiveDeadlineSeconds; d != nil {
			deadlines++
			deadline = max(deadline, int(*d))
		}
	}
	switch {
	case declared > 0:
		return declared
	case deadlines > 0 && deadlines == active:
		return deadline
	case j.Queue == nil || j.Queue.Queue.Spec.ExecutionTime == nil:
		return 0
	case j.Queue.Queue.Spec.ExecutionTime.Default != nil:
		return int(*j.Queue.Queue.Spec.ExecutionTime.Default)
	case j.Queue.Queue.Spec.ExecutionTime.Maximum != nil:
		return int(*j.Queue.Queue.Spec.ExecutionTime.Maximum)
	}
	return 0
}
