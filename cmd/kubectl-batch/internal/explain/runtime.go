// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// runTimeOf returns the run time by the rule of the scheduler.
func runTimeOf(f *Facts) api.RunTime { return jobOf(f).RunTime }

// jobOf returns the job of facts with what there is to know about its run time and its start.
func jobOf(f *Facts) *api.JobInfo {
	job := &api.JobInfo{}
	if f.Group != nil {
		if job.Group = f.Other; job.Group == nil {
			job.Group = api.OwnGroup(f.Group)
		}
		job.GroupName = job.Group.Namespace + "/" + job.Group.Name
		if started := f.Group.Status.StartTime; started != nil {
			job.Started = started.UnixNano()
		}
	}
	for i := range f.Pods {
		p := &f.Pods[i]
		task := &api.TaskInfo{ID: api.TaskID(p.UID), Key: p.Namespace + "/" + p.Name, Pod: p, Status: api.StatusOf(p), Job: job, Deadline: api.DeadlineOf(p)}
		task.Tracking.MaximumRun, task.Tracking.Started = api.MaximumRunOf(p), api.StartOf(p)
		job.Tasks = append(job.Tasks, task)
	}
	if f.Queue != nil {
		job.Queue = &api.QueueInfo{}
		job.Queue.DefaultRun, job.Queue.MaximumRun = api.ExecutionTimes(&f.Queue.Spec)
	}
	job.RunTime, _ = api.DeclaredRunTime(job)
	return job
}

// expectedEnd returns when the last of the pods is expected to end, by the rule of the scheduler; nil if that is not known.
func expectedEnd(f *Facts) *metav1.Time {
	last, now := int64(0), f.Now.UnixNano()
	for _, t := range jobOf(f).Tasks {
		end := t.ExpectedEnd(now)
		if t.Pod.DeletionTimestamp != nil {
			end = t.Pod.DeletionTimestamp.UnixNano()
		}
		if end == api.NoEnd {
			return nil
		}
		last = max(last, end)
	}
	return &metav1.Time{Time: time.Unix(0, max(last, now)).UTC().Truncate(time.Second)}
}

// runTimeText words the limit and the estimate of the run time; empty if there are none, or if the limit is that of each pod,
// which has a line of its own.
func runTimeText(f *Facts) string {
	run := runTimeOf(f)
	var parts []string
	if run.Maximum > 0 && (run.Maximum != f.timeLimit() || run.Expected > 0) {
		parts = append(parts, "limit "+api.FormatRun(run.Maximum))
	}
	if run.Expected > 0 {
		parts = append(parts, "expected "+api.FormatRun(run.Expected))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ")
}

// startText words when the PodGroup has started, or will; empty if that is not known.
func startText(f *Facts) string {
	if f.Group == nil {
		return ""
	}
	s := f.Group.Status
	switch {
	case s.StartTime != nil:
		return atTime(f, s.StartTime)
	case s.EstimatedStartTime != nil && s.LatestStartTime != nil:
		return "at about " + atTime(f, s.EstimatedStartTime) + ", at the latest at " + atTime(f, s.LatestStartTime)
	case s.EstimatedStartTime != nil:
		return "at about " + atTime(f, s.EstimatedStartTime)
	}
	return ""
}

// atTime words a time, also as seen from now.
func atTime(f *Facts, t *metav1.Time) string {
	text := t.UTC().Format(time.RFC3339)
	if t.After(f.Now) {
		return text + " (in " + duration.HumanDuration(t.Sub(f.Now)) + ")"
	}
	return text + " (" + f.age(*t) + " ago)"
}
