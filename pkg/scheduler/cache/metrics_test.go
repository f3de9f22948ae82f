// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest/fakecluster"
)

// latencyMetrics records the latencies of pods and PodGroups.
type latencyMetrics struct {
	noMetrics
	mu    sync.Mutex
	lines []string
}

func (m *latencyMetrics) PodBound(wait time.Duration) {
	m.note("pod " + wait.Round(time.Millisecond).String())
}

func (m *latencyMetrics) PodGroupScheduled(queue string, wait time.Duration) {
	m.note(fmt.Sprintf("group of %s %s", queue, wait.Round(time.Millisecond)))
}

func (m *latencyMetrics) note(line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, line)
}

// TestSchedulingLatency binds pods an hour after the start of the cluster.
func TestSchedulingLatency(t *testing.T) {
	tests := map[string]struct {
		given []runtime.Object
		setup func(*harness) // before the placement
		want  []string
	}{
		"a PodGroup waits from the creation of its last pod": {
			given: []runtime.Object{group("g", 2), aged("g", "a", 0), aged("g", "b", 40*time.Minute)},
			want:  []string{"group of default 20m0s", "pod 1h0m0s", "pod 20m0s"},
		},
		"a PodGroup that is created after its pods waits from then": {
			given: []runtime.Object{late("g", 50*time.Minute), aged("g", "a", 0)},
			want:  []string{"group of default 10m0s", "pod 1h0m0s"},
		},
		"a PodGroup has started when the last bind succeeds": {
			given: []runtime.Object{group("g", 2), aged("g", "a", 0), aged("g", "b", 0)},
			setup: func(f *harness) {
				f.Faults.Bind["b"] = []fault{{Err: fakecluster.ErrNetwork, Done: true}}
				f.Faults.Get["b"] = 1
			},
			want: []string{"group of default 1h0m0.5s", "pod 1h0m0.5s", "pod 1h0m0s"},
		},
		"a PodGroup with a failed bind has not started": {
			given: []runtime.Object{group("g", 2), aged("g", "a", 0), aged("g", "b", 0)},
			setup: func(f *harness) { f.Faults.Bind["b"] = []fault{{Err: fakecluster.ErrDenied}} },
			want:  []string{"pod 1h0m0s"},
		},
		"surplus pods start no PodGroup": {
			given: []runtime.Object{group("g", 1), with(aged("g", "r", 0), running("n1")), aged("g", "a", 0)},
			want:  []string{"pod 1h0m0s"},
		},
		"a pod without PodGroup starts none": {
			given: []runtime.Object{aged("", "a", 0)},
			want:  []string{"pod 1h0m0s"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := &latencyMetrics{}
			runWith(t, Options{BindWorkers: 1, Metrics: got}, objects(test.given), func(f *harness) {
				time.Sleep(time.Hour)
				if test.setup != nil {
					test.setup(f)
				}
				f.place("", "n1")
				f.wait(10 * time.Second)
				slices.Sort(got.lines)
				if diff := cmp.Diff(test.want, got.lines); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// watchMetrics counts failed lists and watches, by resource.
type watchMetrics struct {
	noMetrics
	count map[string]int
}

func (f watchMetrics) WatchFailed(resource string, times int) { f.count[resource] += times }

func TestFailedWatchesAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		given error
		want  int
	}{
		"a forbidden list":     {apierrors.NewForbidden(v1.Resource("pods"), "", fakecluster.ErrNetwork), 1},
		"a network error":      {fakecluster.ErrNetwork, 1},
		"an expired watch":     {apierrors.NewResourceExpired("too old"), 0},
		"a watch that ended":   {io.EOF, 0},
		"an interrupted watch": {io.ErrUnexpectedEOF, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := watchMetrics{count: map[string]int{}}
			s := &source{name: "pods", metrics: got, log: testr.New(t), failures: newWatchFailures(testr.New(t), clock.RealClock{})}
			s.failed(t.Context(), nil, test.given)
			if diff := cmp.Diff(test.want, got.count["pods"]); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

// start is the time at which a bubble of synctest begins.
func start() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// aged is a member that was created some time after the start.
func aged(group, name string, after time.Duration) *v1.Pod {
	return with(member(group, name), func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(start().Add(after)) })
}

// late is a group of one that was created some time after the start.
func late(name string, after time.Duration) runtime.Object {
	g := group(name, 1)
	g.CreationTimestamp = metav1.NewTime(start().Add(after))
	return g
}

func running(node string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.NodeName = node
		p.Status.Phase = v1.PodRunning
	}
}
