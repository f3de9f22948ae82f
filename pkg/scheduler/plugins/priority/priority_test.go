// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package priority

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func TestComparePriorities(t *testing.T) {
	high, low := &api.JobInfo{ID: "high", Priority: 9}, &api.JobInfo{ID: "low", Priority: 1}
	for name, tc := range map[string]struct {
		claim *api.Claim
		unit  api.Unit
		want  api.Vote
	}{
		"permits a job of lower priority":  {claim: claim(high, task(9)), unit: unit(low, task(1)), want: api.Permit},
		"rejects a job of higher priority": {claim: claim(low, task(1)), unit: unit(high, task(9)), want: api.Reject},
		"abstains for equal priorities": {
			claim: claim(high, task(9)), unit: unit(&api.JobInfo{ID: "other", Priority: 9}, task(9)), want: api.Abstain,
		},
		"compares priorities of jobs, not of their pods": {claim: claim(high, task(1)), unit: unit(low, task(9)), want: api.Permit},
		"permits tasks of lower priority within a job": {
			claim: claim(low, task(5)), unit: unit(low, task(3)), want: api.Permit,
		},
		"within a job every task of the claim must have a higher priority than every task of the unit": {
			claim: claim(low, task(5), task(3)), unit: unit(low, task(2), task(4)), want: api.Reject,
		},
		"rejects all victims for preemptionPolicy Never": {
			claim: claim(high, task(9), never(9)), unit: unit(low, task(1)), want: api.Reject,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := comparePriorities(tc.claim, tc.unit); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func task(priority int32) *api.TaskInfo {
	return &api.TaskInfo{Priority: priority, Pod: &v1.Pod{}}
}

func never(priority int32) *api.TaskInfo {
	t, policy := task(priority), v1.PreemptNever
	t.Pod.Spec.PreemptionPolicy = &policy
	return t
}

func claim(job *api.JobInfo, tasks ...*api.TaskInfo) *api.Claim {
	return api.NewClaim(job, tasks)
}

func unit(job *api.JobInfo, tasks ...*api.TaskInfo) api.Unit {
	return api.Unit{Job: job, Tasks: tasks}
}
