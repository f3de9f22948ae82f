// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

const minute = int64(time.Minute)

// runningFor returns a member of a group that has started at minute 1000.
func runningFor(run api.RunTime) *api.TaskInfo {
	return &api.TaskInfo{Job: &api.JobInfo{GroupName: "ns/g", MinMember: 1, RunTime: run, Started: 1000 * minute}}
}

func TestExpectedEnd(t *testing.T) {
	const short, long = 10 * time.Minute, time.Hour
	cases := map[string]struct {
		given *api.TaskInfo
		want  map[int64]int64 // minutes after the start, by the minute after it that is now
	}{
		"an estimate is extended step by step, up to the limit": {
			runningFor(api.RunTime{Maximum: long, Expected: short}),
			map[int64]int64{0: 10, 9: 10, 10: 11, 11: 15, 14: 15, 15: 25, 25: 40, 39: 40, 40: 60, 59: 60, 60: 61, 61: 65, 70: 75},
		},
		"an estimate without limit": {
			runningFor(api.RunTime{Expected: short}),
			map[int64]int64{0: 10, 40: 70, 70: 130, 130: 310, 6009: 6010, 6010: 12010, 12010: 18010},
		},
		"a limit alone":                 {runningFor(api.RunTime{Maximum: short}), map[int64]int64{0: 10, 10: 11}},
		"a limit that does not count":   {runningFor(api.RunTime{Maximum: short, OnOverrun: api.OverrunIgnore}), map[int64]int64{9: 10, 10: -1}},
		"nothing":                       {runningFor(api.RunTime{}), map[int64]int64{0: -1, 500: -1}},
		"a deadline before the maximum": {&api.TaskInfo{Deadline: 1005 * minute, Job: runningFor(api.RunTime{Maximum: short}).Job}, map[int64]int64{0: 5, 5: 6}},
		"a deadline of a foreign pod":   {&api.TaskInfo{Deadline: 1005 * minute}, map[int64]int64{0: 5, 5: 6, 6: 10}},
		"a foreign pod":                 {&api.TaskInfo{}, map[int64]int64{0: -1}},
		"a gang that has not started":   {&api.TaskInfo{Job: &api.JobInfo{GroupName: "ns/g", RunTime: api.RunTime{Maximum: short}}}, map[int64]int64{0: -1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for now, want := range tc.want {
				end := tc.given.ExpectedEnd((1000 + now) * minute)
				got := end/minute - 1000
				if end == api.NoEnd {
					got = -1
				}
				if got != want {
					t.Errorf("at minute %d: got %d, want %d", now, got, want)
				}
			}
		})
	}
}

func TestEndsBy(t *testing.T) {
	alone := func(started int64) *api.TaskInfo { // a pod without group
		task := &api.TaskInfo{Job: &api.JobInfo{MinMember: 1, RunTime: api.RunTime{Maximum: time.Hour}, Started: 7}}
		task.Tracking.Started = started
		return task
	}
	cases := map[string]struct {
		given *api.TaskInfo
		want  int64
	}{
		"limit":                           {runningFor(api.RunTime{Maximum: time.Hour, Expected: time.Minute}), 1060 * minute},
		"to be evicted at the limit":      {runningFor(api.RunTime{Maximum: time.Hour, OnOverrun: api.OverrunEvict}), 1060 * minute},
		"limit without effect":            {runningFor(api.RunTime{Maximum: time.Hour, OnOverrun: api.OverrunIgnore}), api.NoEnd},
		"estimate alone":                  {runningFor(api.RunTime{Expected: time.Hour}), api.NoEnd},
		"later deadline":                  {&api.TaskInfo{Deadline: 1070 * minute, Job: runningFor(api.RunTime{Maximum: time.Hour}).Job}, 1060 * minute},
		"deadline of a foreign pod":       {&api.TaskInfo{Deadline: 1070 * minute}, 1070 * minute},
		"each pod without group":          {alone(500 * minute), 560 * minute},
		"a pod without group that waits":  {alone(0), api.NoEnd},
		"a gang of pods without PodGroup": {&api.TaskInfo{Job: &api.JobInfo{MinMember: 2, RunTime: api.RunTime{Maximum: time.Hour}, Started: 7 * minute}}, 67 * minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.given.EndsBy(); got != tc.want {
				t.Errorf("got minute %d, want %d", got/minute, tc.want/minute)
			}
		})
	}
}

func TestReadRunTime(t *testing.T) {
	const annotation, kueue = "scheduling.batch-scheduler.dev/max-exec-time-seconds", "kueue.x-k8s.io/max-exec-time-seconds"
	cases := map[string]struct {
		spec        v1alpha1.PodGroupSpec
		annotations map[string]string
		labels      map[string]string
		want        api.RunTime
		invalid     string
	}{
		"nothing": {},
		"all fields": {
			spec: v1alpha1.PodGroupSpec{MaximumExecutionTimeSeconds: ptr.To(int32(60)), ExpectedExecutionTimeSeconds: ptr.To(int32(60)), OnOverrun: "Evict"},
			want: api.RunTime{Maximum: time.Minute, Expected: time.Minute, OnOverrun: api.OverrunEvict},
		},
		"the spec precedes the annotation": {
			spec:        v1alpha1.PodGroupSpec{MaximumExecutionTimeSeconds: ptr.To(int32(60)), OnOverrun: "Ignore"},
			annotations: map[string]string{annotation: "70"},
			want:        api.RunTime{Maximum: time.Minute, OnOverrun: api.OverrunIgnore},
		},
		"the annotation precedes the label": {
			annotations: map[string]string{annotation: "120"}, labels: map[string]string{kueue: "60"},
			want: api.RunTime{Maximum: 2 * time.Minute},
		},
		"the label of Kueue": {labels: map[string]string{kueue: "60"}, want: api.RunTime{Maximum: time.Minute}},
		"an annotation that is no number": {
			annotations: map[string]string{annotation: "1h"}, labels: map[string]string{kueue: "60"},
			want:    api.RunTime{Maximum: time.Minute},
			invalid: `the annotation scheduling.batch-scheduler.dev/max-exec-time-seconds is "1h", not a positive number of seconds`,
		},
		"a label of zero": {
			labels:  map[string]string{kueue: "0"},
			invalid: `the label kueue.x-k8s.io/max-exec-time-seconds is "0", not a positive number of seconds`,
		},
		"a negative maximum": {
			spec:    v1alpha1.PodGroupSpec{MaximumExecutionTimeSeconds: ptr.To(int32(-1))},
			invalid: `spec.maximumExecutionTimeSeconds is -1, not a positive number of seconds`,
		},
		"an estimate above the maximum": {
			spec:    v1alpha1.PodGroupSpec{MaximumExecutionTimeSeconds: ptr.To(int32(60)), ExpectedExecutionTimeSeconds: ptr.To(int32(90))},
			want:    api.RunTime{Maximum: time.Minute},
			invalid: `spec.expectedExecutionTimeSeconds is 90, longer than the maximum of 60`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := api.OwnGroup(&v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations, Labels: tc.labels}, Spec: tc.spec})
			if diff := cmp.Diff(tc.want, g.RunTime); diff != "" || g.InvalidRunTime != tc.invalid {
				t.Errorf("invalid %q, want %q; run time (-want +got):\n%s", g.InvalidRunTime, tc.invalid, diff)
			}
		})
	}
}

func TestStartOf(t *testing.T) {
	pod := func(change func(*v1.Pod)) *v1.Pod {
		p := &v1.Pod{Spec: v1.PodSpec{NodeName: "n"}}
		p.Status.StartTime = ptr.To(metav1.Unix(20, 0))
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.Unix(10, 0)}}
		change(p)
		return p
	}
	cases := map[string]struct {
		given *v1.Pod
		want  int64 // seconds
	}{
		"bound and started":     {pod(func(*v1.Pod) {}), 10},
		"started, no condition": {pod(func(p *v1.Pod) { p.Status.Conditions = nil }), 20},
		"neither":               {pod(func(p *v1.Pod) { p.Status = v1.PodStatus{} }), 0},
		"no node":               {pod(func(p *v1.Pod) { p.Spec.NodeName = "" }), 0},
		"not scheduled":         {pod(func(p *v1.Pod) { p.Status.Conditions[0].Status = v1.ConditionFalse; p.Status.StartTime = nil }), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := api.StartOf(tc.given) / int64(time.Second); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
