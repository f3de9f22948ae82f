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
