// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// labelKueueMaximum is how Kueue limits the run time of the jobs that it admits, in seconds.
const labelKueueMaximum = "kueue.x-k8s.io/max-exec-time-seconds"

// invalidRun marks a pod with a declaration that cannot be read.
const invalidRun time.Duration = -1

// ReadRunTime sets the run time that the group declares by its spec, else by one of its annotations and labels.
func (g *Group) ReadRunTime(annotations, labels map[string]string) {
	var invalid []string
	read := func(field string, value *int32) time.Duration {
		switch {
		case value == nil:
			return 0
		case *value <= 0:
			invalid = append(invalid, fmt.Sprintf("spec.%s is %d, not a positive number of seconds", field, *value))
			return 0
		}
		return seconds(int64(*value))
	}
	g.RunTime = RunTime{
		Maximum:   read("maximumExecutionTimeSeconds", g.Spec.MaximumExecutionTimeSeconds),
		Expected:  read("expectedExecutionTimeSeconds", g.Spec.ExpectedExecutionTimeSeconds),
		OnOverrun: overrunPolicyOf(g.Spec.OnOverrun),
	}
	if g.RunTime.Maximum == 0 {
		var problem string
		if g.RunTime.Maximum, problem = annotatedRun(annotations, labels); problem != "" {
			invalid = append(invalid, problem)
		}
	}
	if g.RunTime.Maximum > 0 && g.RunTime.Expected > g.RunTime.Maximum {
		invalid = append(invalid, fmt.Sprintf("spec.expectedExecutionTimeSeconds is %d, longer than the maximum of %d",
			g.RunTime.Expected/time.Second, g.RunTime.Maximum/time.Second))
		g.RunTime.Expected = 0
	}
	g.InvalidRunTime = strings.Join(invalid, "; ")
}

func overrunPolicyOf(p v1alpha1.OverrunPolicy) OverrunPolicy {
	switch p {
	case v1alpha1.OverrunEvict:
		return OverrunEvict
	case v1alpha1.OverrunIgnore:
		return OverrunIgnore
	}
	return OverrunYield
}

// annotatedRun returns the limit that the annotation declares, else the label of Kueue; zero if neither does. Problem says
// what cannot be read; empty if there is nothing.
func annotatedRun(annotations, labels map[string]string) (limit time.Duration, problem string) {
	for _, of := range [...]struct {
		kind, key string
		values    map[string]string
	}{{"annotation", v1alpha1.AnnotationMaximumExecutionTime, annotations}, {"label", labelKueueMaximum, labels}} {
		value, present := of.values[of.key]
		if !present {
			continue
		}
		if n, err := strconv.ParseInt(value, 10, 32); err == nil && n > 0 {
			return seconds(n), problem
		}
		if problem == "" {
			problem = fmt.Sprintf("the %s %s is %q, not a positive number of seconds", of.kind, of.key, value)
		}
	}
	return 0, problem
}

// ExecutionTimes returns the limit of jobs of a queue that declare none, and the longest limit that the queue admits; zero if
// there is none. As long as it states no default, that is its maximum.
func ExecutionTimes(spec *v1alpha1.QueueSpec) (standard, longest time.Duration) {
	if spec.ExecutionTime == nil {
		return 0, 0
	}
	longest = seconds(int64(max(ptr.Deref(spec.ExecutionTime.Maximum, 0), 0)))
	standard = seconds(int64(max(ptr.Deref(spec.ExecutionTime.Default, 0), 0)))
	if standard == 0 {
		standard = longest
	}
	return standard, longest
}

// MaximumRunOf returns the limit that a pod declares by an annotation or a label, for TaskTracking.MaximumRun.
func MaximumRunOf(pod *v1.Pod) time.Duration {
	limit, problem := annotatedRun(pod.Annotations, pod.Labels)
	if limit == 0 && problem != "" {
		return invalidRun
	}
	return limit
}

// RunTimeProblem says which declaration of a pod cannot be read; empty if all can.
func RunTimeProblem(pod *v1.Pod) string {
	_, problem := annotatedRun(pod.Annotations, pod.Labels)
	return problem
}

// DeclaredRunTime returns the run time of a job: what its group declares, else the longest limit of a pod that declares one,
// else the longest activeDeadlineSeconds if all pods have one, else the default of its queue. Pods that have ended do not
// count. Invalid says what cannot be read, and why; empty if all can.
func DeclaredRunTime(j *JobInfo) (run RunTime, invalid string) {
	if j.Group != nil {
		run, invalid = j.Group.RunTime, j.Group.InvalidRunTime
	}
	if run.Maximum == 0 {
		limit, unread := longestRun(j.Tasks)
		run.Maximum = limit
		if unread != nil && invalid == "" {
			_, problem := annotatedRun(unread.Pod.Annotations, unread.Pod.Labels)
			invalid = "pod " + unread.Key + ": " + problem
		}
	}
	if run.Maximum == 0 && j.Queue != nil {
		run.Maximum = j.Queue.DefaultRun
	}
	if run.Maximum > 0 {
		run.Expected = min(run.Expected, run.Maximum)
	}
	return run, invalid
}

// longestRun returns the longest limit that one of the tasks declares, else their longest activeDeadlineSeconds if all have
// one; and the first task by name with a declaration that cannot be read, nil if there is none.
func longestRun(tasks []*TaskInfo) (limit time.Duration, unread *TaskInfo) {
	var deadline time.Duration
	unbounded := false
	for _, t := range tasks {
		if t.Status.Ended() {
			continue
		}
		if t.Tracking.MaximumRun == invalidRun && (unread == nil || cmp.Or(cmp.Compare(t.Key, unread.Key), cmp.Compare(t.ID, unread.ID)) < 0) {
			unread = t
		}
		limit = max(limit, t.Tracking.MaximumRun)
		if of := t.Pod.Spec.ActiveDeadlineSeconds; of == nil {
			unbounded = true
		} else {
			deadline = max(deadline, seconds(*of))
		}
	}
	if limit == 0 && !unbounded {
		limit = deadline
	}
	return limit, unread
}
