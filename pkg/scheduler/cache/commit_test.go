// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/evict"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

func TestPreemptorPodIsTheFirstPipelinedTask(t *testing.T) {
	task := func(name string, status api.TaskStatus) *api.TaskInfo {
		return &api.TaskInfo{Status: status, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}}
	}
	job := &api.JobInfo{Tasks: []*api.TaskInfo{task("a", api.Running), task("d", api.Pipelined), task("c", api.Pipelined), task("b", api.Pending)}}
	want := &v1.ObjectReference{Namespace: "ns", Name: "c", UID: "c"}
	if diff := cmp.Diff(want, preemptorPod(job)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := preemptorPod(&api.JobInfo{}); got != nil {
		t.Errorf("a job without pipelined tasks has the preemptor pod %v", got)
	}
}

// A job may evict pods of its own for one of higher priority; pods that are evicted for the limit of their own job have
// no preemptor.
func TestPlansNameTheirPreemptors(t *testing.T) {
	own, other := &api.JobInfo{ID: "ns/own", Key: "ns/own"}, &api.JobInfo{ID: "ns/other", Key: "ns/other"}
	for name, tc := range map[string]struct {
		preemptor *api.JobInfo
		cause     api.EvictionCause
		want      string
	}{
		"another job":                  {other, api.Preempted, "ns/other"},
		"its own job":                  {own, api.Preempted, "ns/own"},
		"its own limit":                {own, api.Overran, ""},
		"its limit, with a job behind": {other, api.Overran, "ns/other"},
	} {
		t.Run(name, func(t *testing.T) {
			victim := &api.TaskInfo{Job: own, Status: api.Releasing, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "victim"}}}
			c, p := &Cache{model: model.NewCluster(model.Options{})}, &evict.Plan{}
			c.evict(p, api.Decision{Kind: api.Evict, Task: victim, For: tc.preemptor, Cause: tc.cause})
			if p.Preemptor != tc.want {
				t.Errorf("the preemptor is %q, want %q", p.Preemptor, tc.want)
			}
		})
	}
}
