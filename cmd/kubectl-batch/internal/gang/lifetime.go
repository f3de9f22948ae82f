// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/internal/jobfailure"
)

// limit sets for how long the pods may run. The limit is that of the pods and not that of the Job, which includes the
// time for which the pods wait. The Job does not start pods again that have reached it, unless the file says so.
func (g *Gang) limit(l Lifetime) error {
	if err := g.expect(l); err != nil || l.Time == 0 {
		return err
	}
	pods := &g.Job.Spec.Template.Spec
	switch {
	case l.Time < time.Second:
		return fmt.Errorf("--time: %s is invalid; it must be at least 1s", l.Time)
	case pods.ActiveDeadlineSeconds != nil:
		return fmt.Errorf("--time: the pods of Job %s already have activeDeadlineSeconds; remove one of both", g.Job.Name)
	}
	pods.ActiveDeadlineSeconds = ptr.To(int64(l.Time.Round(time.Second) / time.Second))
	if g.Job.Spec.BackoffLimit == nil {
		g.Job.Spec.BackoffLimit = ptr.To[int32](0)
	}
	return nil
}

// expect declares the run time to the scheduler.
func (g *Gang) expect(l Lifetime) error {
	spec := &g.Group.Spec
	switch {
	case l.Expected != 0 && l.Expected < time.Second:
		return fmt.Errorf("--expected-time: %s is invalid; it must be at least 1s", l.Expected)
	case l.Expected != 0 && spec.ExpectedExecutionTimeSeconds != nil:
		return fmt.Errorf("--expected-time: PodGroup %s already has expectedExecutionTimeSeconds; remove one of both", g.Group.Name)
	}
	if l.Expected != 0 {
		spec.ExpectedExecutionTimeSeconds = seconds(l.Expected)
	}
	if l.Time >= time.Second && spec.MaximumExecutionTimeSeconds == nil {
		spec.MaximumExecutionTimeSeconds = seconds(l.Time)
	}
	if limit, expected := spec.MaximumExecutionTimeSeconds, spec.ExpectedExecutionTimeSeconds; limit != nil && expected != nil && *expected > *limit {
		return fmt.Errorf("--expected-time: %d s exceed the limit of %d s", *expected, *limit)
	}
	return nil
}

func seconds(d time.Duration) *int32 {
	return ptr.To(int32(min(d.Round(time.Second)/time.Second, math.MaxInt32)))
}

// ignoreEvictions adds the policy by which evictions do not count as failures, where the API server accepts it and the
// Job has no policy of its own.
//
// The Job controller delays the pods that it creates after an eviction all the same: by 10 seconds after the first
// evicted pod of the Job, and twice as long for each further one, up to 10 minutes. With a limit for each index it counts
// for each index, so that a gang returns 10 seconds after its first eviction. The limit of an index is that of the Job,
// so the Job fails after as many failures as without it.
func (g *Gang) ignoreEvictions() {
	s := &g.Job.Spec
	replaced := ptr.Deref(s.PodReplacementPolicy, batchv1.Failed)
	if s.PodFailurePolicy != nil || replaced != batchv1.Failed || s.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return
	}
	s.PodFailurePolicy = jobfailure.IgnoreEvictions()
	if s.BackoffLimitPerIndex == nil && ptr.Deref(s.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion {
		limit := ptr.Deref(s.BackoffLimit, jobfailure.DefaultBackoffLimit)
		s.BackoffLimit, s.BackoffLimitPerIndex, s.MaxFailedIndexes = &limit, ptr.To(limit), ptr.To[int32](0)
	}
}

// Warnings returns what can end or delay the Job although its program works.
func (g Gang) Warnings() []string {
	var list []string
	if why := jobfailure.OfEviction(g.Job, size(g.Job)); why != "" {
		list = append(list, fmt.Sprintf("an eviction of its pods would end Job %s: %s", g.Job.Name, why))
	} else if slow := jobfailure.SlowReturn(g.Job, size(g.Job)); slow != "" {
		list = append(list, slow)
	}
	if g.Job.Spec.ActiveDeadlineSeconds != nil {
		list = append(list, fmt.Sprintf("the activeDeadlineSeconds of Job %s also counts while its pods wait; set that of the pod template, or --time", g.Job.Name))
	}
	return list
}
