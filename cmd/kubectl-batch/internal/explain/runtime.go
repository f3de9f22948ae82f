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
func runTimeOf(f *Facts) api.RunTime {
	job := &api.JobInfo{}
	if f.Group != nil {
		if job.Group = f.Other; job.Group == nil {
			job.Group = api.OwnGroup(f.Group)
		}
	}
	for i := range f.Pods {
		p := &f.Pods[i]
		task := &api.TaskInfo{ID: api.TaskID(p.UID), Key: p.Namespace + "/" + p.Name, Pod: p, Status: api.StatusOf(p)}
		task.Tracking.MaximumRun = api.MaximumRunOf(p)
		job.Tasks = append(job.Tasks, task)
	}
	if f.Queue != nil {
		job.Queue = &api.QueueInfo{}
		job.Queue.DefaultRun, job.Queue.MaximumRun = api.ExecutionTimes(&f.Queue.Spec)
	}
	run, _ := api.DeclaredRunTime(job)
	return run
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
