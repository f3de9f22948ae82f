// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package jobfailure_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/internal/jobfailure"
)

func TestOfEviction(t *testing.T) {
	t.Parallel()
	onCondition := func(action batchv1.PodFailurePolicyAction, kind corev1.PodConditionType, status corev1.ConditionStatus) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: action, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: kind, Status: status}}}
	}
	onExitCode := func(action batchv1.PodFailurePolicyAction, operator batchv1.PodFailurePolicyOnExitCodesOperator, codes ...int32) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: operator, Values: codes}}
	}
	ignore := onCondition(batchv1.PodFailurePolicyActionIgnore, corev1.DisruptionTarget, "")
	const (
		beyondDefault = "evicted pods count as failures, these would be 7, and its backoffLimit is 6"
		failJob       = "its podFailurePolicy fails the Job when a pod is evicted"
	)
	for name, test := range map[string]struct {
		given  batchv1.JobSpec
		failed int32 // before
		pods   int32
		want   string
	}{
		"within the default limit":      {pods: 6},
		"beyond the default limit":      {pods: 7, want: beyondDefault},
		"no pods":                       {given: batchv1.JobSpec{BackoffLimit: ptr.To[int32](0)}},
		"beyond a limit of its own":     {given: batchv1.JobSpec{BackoffLimit: ptr.To[int32](0)}, pods: 1, want: "evicted pods count as failures, these would be 1, and its backoffLimit is 0"},
		"beyond with earlier failures":  {failed: 3, pods: 4, want: "evicted pods count as failures, these would be 4 after 3 earlier, and its backoffLimit is 6"},
		"a limit for each index":        {given: batchv1.JobSpec{BackoffLimitPerIndex: ptr.To[int32](1)}, pods: 99},
		"limits for each index, total":  {given: batchv1.JobSpec{BackoffLimitPerIndex: ptr.To[int32](6), BackoffLimit: ptr.To[int32](6)}, pods: 7, want: beyondDefault},
		"a limit of 0 for each index":   {given: batchv1.JobSpec{BackoffLimitPerIndex: ptr.To[int32](0)}, pods: 1, want: "an eviction counts as a failure of the index, and backoffLimitPerIndex is 0"},
		"what submit writes":            {given: batchv1.JobSpec{BackoffLimit: ptr.To[int32](0), PodFailurePolicy: jobfailure.IgnoreEvictions()}, pods: 99},
		"ignored, without a status":     {given: batchv1.JobSpec{PodFailurePolicy: rules(ignore)}, pods: 99},
		"ignored if it does not apply":  {given: batchv1.JobSpec{PodFailurePolicy: rules(onCondition(batchv1.PodFailurePolicyActionIgnore, corev1.DisruptionTarget, corev1.ConditionFalse))}, pods: 7, want: beyondDefault},
		"another condition":             {given: batchv1.JobSpec{PodFailurePolicy: rules(onCondition(batchv1.PodFailurePolicyActionIgnore, "ConfigIssue", ""))}, pods: 7, want: beyondDefault},
		"counted by a rule":             {given: batchv1.JobSpec{PodFailurePolicy: rules(onCondition(batchv1.PodFailurePolicyActionCount, corev1.DisruptionTarget, ""), ignore)}, pods: 7, want: beyondDefault},
		"an eviction fails the Job":     {given: batchv1.JobSpec{PodFailurePolicy: rules(onCondition(batchv1.PodFailurePolicyActionFailJob, corev1.DisruptionTarget, ""))}, pods: 1, want: failJob},
		"an eviction fails the index":   {given: batchv1.JobSpec{PodFailurePolicy: rules(onCondition(batchv1.PodFailurePolicyActionFailIndex, corev1.DisruptionTarget, ""))}, pods: 1, want: "its podFailurePolicy fails the index of an evicted pod"},
		"any failure fails the Job":     {given: batchv1.JobSpec{PodFailurePolicy: rules(onExitCode(batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyOnExitCodesOpNotIn, 0), ignore)}, pods: 1, want: failJob},
		"an exit code fails the Job":    {given: batchv1.JobSpec{PodFailurePolicy: rules(onExitCode(batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyOnExitCodesOpIn, 42), ignore)}, pods: 99},
		"SIGKILL fails the Job":         {given: batchv1.JobSpec{PodFailurePolicy: rules(onExitCode(batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyOnExitCodesOpIn, 137), ignore)}, pods: 1, want: failJob},
		"all but signals fail the Job":  {given: batchv1.JobSpec{PodFailurePolicy: rules(onExitCode(batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyOnExitCodesOpNotIn, 137, 143), ignore)}, pods: 99},
		"the first rule takes the vote": {given: batchv1.JobSpec{PodFailurePolicy: rules(ignore, onExitCode(batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyOnExitCodesOpNotIn, 0))}, pods: 99},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &batchv1.Job{Spec: test.given, Status: batchv1.JobStatus{Failed: test.failed}}
			if diff := cmp.Diff(test.want, jobfailure.OfEviction(job, test.pods)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSlowReturn(t *testing.T) {
	t.Parallel()
	const again, longer, rest = " before it creates them again", ", and for longer if pods have failed before",
		"; a Job waits for 10s if it has completionMode: Indexed, backoffLimit: 6, backoffLimitPerIndex: 6 and maxFailedIndexes: 0"
	for name, test := range map[string]struct {
		given batchv1.JobSpec
		pods  int32
		want  string
	}{
		"no pods":                {},
		"one pod":                {pods: 1},
		"two pods":               {pods: 2, want: "after an eviction of its 2 pods, Job j waits for 20s" + again + longer + rest},
		"six pods":               {pods: 6, want: "after an eviction of its 6 pods, Job j waits for 5m20s" + again + longer + rest},
		"seven pods":             {pods: 7, want: "after an eviction of its 7 pods, Job j waits for 10m" + again + rest},
		"many pods":              {pods: 1 << 30, want: "after an eviction of its 1073741824 pods, Job j waits for 10m" + again + rest},
		"pods that are ignored":  {given: batchv1.JobSpec{PodFailurePolicy: jobfailure.IgnoreEvictions()}, pods: 4, want: "after an eviction of its 4 pods, Job j waits for 80s" + again + longer + rest},
		"a limit for each index": {given: batchv1.JobSpec{BackoffLimitPerIndex: ptr.To[int32](6)}, pods: 99},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &batchv1.Job{Spec: test.given}
			job.Name = "j"
			if diff := cmp.Diff(test.want, jobfailure.SlowReturn(job, test.pods)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func rules(list ...batchv1.PodFailurePolicyRule) *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: list}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given batchv1.JobCondition
		want  bool
	}{
		"complete":             {batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}, true},
		"failed":               {batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}, true},
		"not failed":           {batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionFalse}, false},
		"about to fail":        {batchv1.JobCondition{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}, false},
		"suspended is not end": {batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{test.given}}}
			if got := jobfailure.End(job) != nil; got != test.want {
				t.Errorf("ended: %t, want %t", got, test.want)
			}
		})
	}
}
