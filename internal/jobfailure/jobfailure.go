// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package jobfailure computes from a Job what an eviction of its pods means for it: whether the Job creates other pods,
// or fails. The rules are those of the Job controller of Kubernetes.
package jobfailure

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

const (
	// DefaultBackoffLimit is the backoffLimit that the API server sets where none is given.
	DefaultBackoffLimit = 6

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
