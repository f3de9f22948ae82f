// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func TestEstimatesAreRoundedAndStable(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	const none = -1
	cases := map[string]struct {
		shown    int // minutes after noon
		estimate time.Duration
		want     int
	}{
		"the first one is rounded up":           {none, 10*time.Minute + time.Second, 11},
		"a full minute":                         {none, 10 * time.Minute, 10},
		"a minute later":                        {10, 10*time.Minute + time.Second, 10},
		"a minute earlier":                      {10, 9 * time.Minute, 10},
		"two minutes later":                     {10, 12 * time.Minute, 12},
		"two minutes earlier":                   {10, 8 * time.Minute, 8},
		"less than a twentieth of a long wait":  {600, 620 * time.Minute, 600},
		"more than a twentieth of a long wait":  {600, 640 * time.Minute, 640},
		"it is not known any more":              {600, 0, none},
		"a short wait, which has changed a lot": {10, time.Hour, 60},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var shown *metav1.Time
			if tc.shown != none {
				shown = &metav1.Time{Time: noon.Add(time.Duration(tc.shown) * time.Minute)}
			}
			estimate := int64(0)
			if tc.estimate > 0 {
				estimate = noon.Add(tc.estimate).UnixNano()
			}
			got := none
			if next := shownEstimate(shown, estimate, noon); next != nil {
				got = int(next.Sub(noon) / time.Minute)
			}
			if got != tc.want {
				t.Errorf("got minute %d, want %d", got, tc.want)
			}
		})
	}
}

func TestAnEndedPodGroupKeepsItsStart(t *testing.T) {
	started := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for phase, keeps := range map[v1alpha1.PodGroupPhase]bool{
		v1alpha1.PodGroupRunning: false, v1alpha1.PodGroupPending: false, v1alpha1.PodGroupFinished: true, v1alpha1.PodGroupFailed: true,
	} {
		status := &v1alpha1.PodGroupStatus{}
		setStartTimes(status, &api.PodGroupReport{Phase: v1alpha1.PodGroupRunning, Started: started.UnixNano()}, started)
		if status.StartTime == nil || !status.StartTime.Time.Equal(started) {
			t.Fatalf("a running PodGroup has the start %v, want %v", status.StartTime, started)
		}
		setStartTimes(status, &api.PodGroupReport{Phase: phase}, started)
		if got := status.StartTime != nil; got != keeps {
			t.Errorf("%s: keeps its start: %t, want %t", phase, got, keeps)
		}
	}
}
