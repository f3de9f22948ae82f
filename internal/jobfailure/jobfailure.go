// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package jobfailure computes from a Job what an eviction of its pods means for it: whether the Job creates other pods,
// or fails. The rules are those of the Job controller of Kubernetes.
package jobfailure

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
)

const (
	// DefaultBackoffLimit is the backoffLimit that the API server sets where none is given.
	DefaultBackoffLimit = 6

	// LongestPause is the longest time for which the Job controller waits before it creates pods again; shortestPause is
	// the time after one failed pod.
	LongestPause, shortestPause = 10 * time.Minute, 10 * time.Second

	// The exit codes of a container that SIGTERM or SIGKILL ends.
	terminated, killed = 128 + 15, 128 + 9
)

// IgnoreEvictions returns the policy by which evictions do not count as failures. It requires the restartPolicy Never.
func IgnoreEvictions() *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
}

// OfEviction returns why the eviction of a number of pods makes the Job fail, or an empty text if the Job creates other
// pods instead. A rule on exit codes applies if it matches a container that SIGTERM or SIGKILL ends.
func OfEviction(job *batchv1.Job, pods int32) string {
	switch action(job.Spec.PodFailurePolicy) {
	case batchv1.PodFailurePolicyActionIgnore:
		return ""
	case batchv1.PodFailurePolicyActionFailJob:
		return "its podFailurePolicy fails the Job when a pod is evicted"
	case batchv1.PodFailurePolicyActionFailIndex:
		return "its podFailurePolicy fails the index of an evicted pod"
	}
	perIndex := job.Spec.BackoffLimitPerIndex
	if perIndex != nil && *perIndex == 0 {
		return "an eviction counts as a failure of the index, and backoffLimitPerIndex is 0"
	}
	if perIndex != nil && job.Spec.BackoffLimit == nil {
		return "" // then the API server sets no limit in total
	}
	limit := ptr.Deref(job.Spec.BackoffLimit, DefaultBackoffLimit)
	if failed := job.Status.Failed; pods > 0 && failed+pods > limit {
		before := ""
		if failed > 0 {
			before = fmt.Sprintf(" after %d earlier", failed)
		}
		return fmt.Sprintf("evicted pods count as failures, these would be %d%s, and its backoffLimit is %d", pods, before, limit)
	}
	return ""
}

// Pause returns for how long the Job controller waits after the eviction of a number of pods before it creates others, if
// no pods of the Job have failed before: 10 seconds after one pod, and twice as long for each further one. It also counts
// pods that the podFailurePolicy ignores. With backoffLimitPerIndex it counts for each index.
func Pause(job *batchv1.Job, pods int32) time.Duration {
	pause := shortestPause
	if job.Spec.BackoffLimitPerIndex != nil {
		return pause
	}
	for ; pods > 1 && pause < LongestPause; pods-- {
		pause *= 2
	}
	return min(pause, LongestPause)
}

// SlowReturn says that the Job, which creates evicted pods again, does not do so soon, and which Job does; empty if the
// Job creates them as soon as Jobs can.
func SlowReturn(job *batchv1.Job, pods int32) string {
	pause := Pause(job, pods)
	if pause == shortestPause {
		return ""
	}
	longer := ""
	if pause < LongestPause {
		longer = ", and for longer if pods have failed before"
	}
	return fmt.Sprintf("after an eviction of its %d pods, Job %s waits for %s before it creates them again%s; "+
		"a Job waits for %s if it has completionMode: Indexed, backoffLimit: 6, backoffLimitPerIndex: 6 and maxFailedIndexes: 0",
		pods, job.Name, duration.HumanDuration(pause), longer, duration.HumanDuration(shortestPause))
}

// action returns the action of the first rule that applies to an evicted pod; Count if none does.
func action(policy *batchv1.PodFailurePolicy) batchv1.PodFailurePolicyAction {
	if policy == nil {
		return batchv1.PodFailurePolicyActionCount
	}
	for i := range policy.Rules {
		if applies(&policy.Rules[i]) {
			return policy.Rules[i].Action
		}
	}
	return batchv1.PodFailurePolicyActionCount
}

func applies(rule *batchv1.PodFailurePolicyRule) bool {
	if codes := rule.OnExitCodes; codes != nil {
		listed := slices.Contains(codes.Values, terminated) || slices.Contains(codes.Values, killed)
		if codes.Operator == batchv1.PodFailurePolicyOnExitCodesOpNotIn {
			return !listed
		}
		return listed
	}
	return slices.ContainsFunc(rule.OnPodConditions, func(c batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
		return c.Type == corev1.DisruptionTarget && (c.Status == "" || c.Status == corev1.ConditionTrue)
	})
}

// Owns reports whether an owner is a Job.
func Owns(owner *metav1.OwnerReference) bool {
	return owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, batchv1.GroupName+"/")
}

// ControllerOf returns the name of the Job that controls a pod; empty if none does.
func ControllerOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && Owns(owner) {
		return owner.Name
	}
	return ""
}

// End returns the condition by which a Job is complete or has failed; nil if it has not ended.
func End(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
