// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest/fakecluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs a test with a recorder on a fake API server, in a synctest bubble. No bind is ever queued.
func run(t *testing.T, test func(*Recorder, *fakecluster.APIServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := fakecluster.New(t)
		r := newRecorder(t, c)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			r.Run(ctx)
			close(done)
		}()
		test(r, c)
		stop()
		<-done
	})
}

func newRecorder(t *testing.T, c *fakecluster.APIServer) *Recorder {
	return New(Options{
		SchedulerName: fakecluster.SchedulerName, Kube: c.Kube, Yield: func(context.Context, time.Duration) {},
		Clock: clock.RealClock{}, Log: testr.New(t),
	})
}

// TestEvents records events and counts those that are written in three minutes, by object and reason.
// An event for several pods counts once for each pod.
func TestEvents(t *testing.T) {
	notScheduled := func(r *Recorder, reason, message string) {
		r.NotScheduled(api.OwnGroup(fakecluster.PodGroup("g", 1)), reason, message)
	}
	burst := func(r *Recorder, pods int) {
		group := Reference(api.OwnGroup(fakecluster.PodGroup("g", 1)))
		for i := range pods {
			name := fmt.Sprintf("p-%d", i)
			r.PodBound(v1.ObjectReference{Kind: "Pod", Namespace: "default", Name: name, UID: types.UID(name)}, group, "n1")
		}
	}
	tests := map[string]struct {
		given func(*Recorder)
		want  map[string]int
	}{
		"each reason is one event": {
			given: func(r *Recorder) {
				notScheduled(r, "QueueFull", "4 cpu")
				notScheduled(r, "Unschedulable", "3 nodes")
			},
			want: map[string]int{"PodGroup QueueFull": 1, "PodGroup Unschedulable": 1},
		},
		"the same reason is one event a minute": {
			given: func(r *Recorder) {
				for range 90 {
					notScheduled(r, "QueueFull", "4 cpu")
					notScheduled(r, "Unschedulable", "3 nodes")
					time.Sleep(time.Second)
				}
			},
			want: map[string]int{"PodGroup QueueFull": 2, "PodGroup Unschedulable": 2},
		},
		"a few pods are one event each, and one event on their PodGroup": {
			given: func(r *Recorder) { burst(r, 5) },
			want:  map[string]int{"PodGroup Scheduled": 5, "Pod Scheduled": 5},
		},
		"of very many pods only some have an event": {
			given: func(r *Recorder) { burst(r, 5000) },
			want:  map[string]int{"PodGroup Scheduled": 5000, "Pod Scheduled": maxPodEvents},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, func(r *Recorder, c *fakecluster.APIServer) {
				test.given(r)
				time.Sleep(3 * time.Minute)
				got := map[string]int{}
				for _, line := range c.Written() {
					fields := strings.Fields(line)
					count := 1
					if strings.HasSuffix(line, " pods bound") {
						count, _ = strconv.Atoi(fields[6])
					}
					got[fields[3]+" "+strings.TrimSuffix(fields[5], ":")] += count
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestEventsAreWhatTheAPIServerTakes(t *testing.T) {
	r := newRecorder(t, fakecluster.New(t))
	long := fakecluster.PodGroup(strings.Repeat("a", 229)+"."+strings.Repeat("b", 23), 1)
	note := strings.Repeat("ä", 600)
	r.NotScheduled(api.OwnGroup(long), "Unschedulable", note)
	e, _ := r.next()
	event := r.toAPI(e)
	if len(event.Note) > 1024 || !strings.HasPrefix(note, event.Note) {
		t.Errorf("note of %d bytes: %q", len(event.Note), event.Note)
	}
	if len(event.Name) > 253 || strings.Contains(event.Name, "..") {
		t.Errorf("name of %d bytes: %q", len(event.Name), event.Name)
	}
	if event.EventTime.IsZero() || event.ReportingController == "" || event.ReportingInstance == "" || event.Action == "" {
		t.Errorf("a required field is missing: %+v", event)
	}
}
