// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

func TestUrgency(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second *api.JobInfo
	}{
		"a degraded gang precedes a gang that holds no resources": {
			first: gangOf(3, 1, 2, 0), second: gangOf(3, 0, 3, 0),
		},
		"a gang that has not started precedes a gang that needs surplus members": {
			first: gangOf(3, 0, 3, 0), second: gangOf(1, 1, 1, 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if n := compareDegraded(tc.first, tc.second); n >= 0 {
				t.Errorf("first against second: got %d, want a negative number", n)
			}
			if n := compareDegraded(tc.second, tc.first); n <= 0 {
				t.Errorf("second against first: got %d, want a positive number", n)
			}
			if n := compareDegraded(tc.first, tc.first); n != 0 {
				t.Errorf("first against itself: got %d, want 0", n)
			}
		})
	}
}

func TestRejectTooFewPods(t *testing.T) {
	for name, tc := range map[string]struct {
		given *api.JobInfo
		want  *api.Verdict
	}{
		"all are pending":                  {given: gangOf(3, 0, 3, 0)},
		"some run, the others are pending": {given: gangOf(3, 1, 2, 0)},
		"one member is missing": {
			given: gangOf(3, 1, 1, 0),
			want:  &api.Verdict{Reason: v1alpha1.ReasonNotEnoughPods, Need: 3, Have: 2},
		},
		"a gated pod does not count": {
			given: gangOf(3, 0, 2, 1),
			want:  &api.Verdict{Reason: v1alpha1.ReasonNotEnoughPods, Need: 3, Have: 2, Gated: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rejectTooFewPods(tc.given)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRejectPartialEviction(t *testing.T) {
	for name, tc := range map[string]struct {
		minMember, running, unit int
		want                     api.Vote
	}{
		"a surplus member":                   {minMember: 2, running: 3, unit: 1, want: api.Abstain},
		"a member of a gang without surplus": {minMember: 2, running: 2, unit: 1, want: api.Reject},
		"a whole gang":                       {minMember: 2, running: 2, unit: 2, want: api.Abstain},
		"surplus and gang together":          {minMember: 2, running: 3, unit: 3, want: api.Abstain},
		"two of three members":               {minMember: 2, running: 3, unit: 2, want: api.Reject},
		"the only member of a gang of one":   {minMember: 1, running: 1, unit: 1, want: api.Abstain},
	} {
		t.Run(name, func(t *testing.T) {
			job := gangOf(tc.minMember, tc.running, 0, 0)
			if got := rejectPartialEviction(nil, api.Unit{Job: job, Tasks: job.Tasks[:tc.unit]}); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// gangOf returns a job with the given numbers of running, pending and gated members.
func gangOf(minMember, running, waiting, gated int) *api.JobInfo {
	cluster := model.NewCluster(model.Options{SchedulerNames: []string{"batch-scheduler"}, DefaultQueue: "default"})
	cluster.Events().SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	cluster.Events().SetPodGroup(&v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gang", UID: "gang"},
		Spec:       v1alpha1.PodGroupSpec{MinMember: int32(minMember)},
	})
	for i := range running + waiting + gated {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)),
				Labels: map[string]string{v1alpha1.LabelPodGroup: "gang"},
			},
			Spec: v1.PodSpec{SchedulerName: "batch-scheduler"},
		}
		switch {
		case i < running:
			pod.Spec.NodeName, pod.Status.Phase = "n1", v1.PodRunning
		case i >= running+waiting:
			pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "gate"}}
		}
		cluster.Events().SetPod(pod)
	}
	return cluster.Jobs()["group/ns/gang"]
}
