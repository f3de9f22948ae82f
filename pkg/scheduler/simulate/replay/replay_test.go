// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
)

// TestReplay compares what becomes of each job: its runs, the first start, the end, evicted pods and lost time.
func TestReplay(t *testing.T) {
	t.Parallel()
	const urgent = `{"t": 10, "submit": {"name": "urgent", "priority": 9, "min": 2, "request": {"cpu": "1"}, "duration": 50}}` + "\n"
	for name, tc := range map[string]struct {
		given, nodes, policy string
		until                time.Duration
		want                 string
	}{
		"a job that fits starts at once": {
			given: submit(5, "a", 2, 60), nodes: "2",
			want: "a COMPLETED 5-65",
		},
		"a gang waits for all of its nodes": {
			given: submit(0, "a", 1, 60) + submit(1, "b", 2, 10), nodes: "2",
			want: "a COMPLETED 0-60, b COMPLETED 60-70",
		},
		"jobs of the same time start in the order of the file": {
			given: submit(0, "z", 1, 60) + submit(0, "a", 1, 60), nodes: "1",
			want: "z COMPLETED 0-60, a COMPLETED 60-120",
		},
		"a job without run time ends when it starts": {
			given: submit(0, "a", 1, 0) + submit(0, "b", 1, 5), nodes: "1",
			want: "a COMPLETED 0-0, b COMPLETED 0-5",
		},
		"a gang that is larger than the cluster never starts": {
			given: submit(0, "a", 3, 60) + submit(1, "b", 2, 10), nodes: "2", policy: noReservation,
			want: "a PENDING, b COMPLETED 1-11",
		},
		"an evicted run begins again when the grace period of its pods and the urgent job are over": {
			given: submit(0, "a", 2, 100) + urgent, nodes: "2", policy: evicting,
			want: "a COMPLETED 0-190 2 runs 2 evicted 10s lost, urgent COMPLETED 40-90",
		},
		"surplus pods are evicted without an effect on the run": {
			given: `{"t": 0, "submit": {"name": "a", "min": 1, "replicas": 3, "request": {"cpu": "1"}, "duration": 100}}` + "\n" + urgent, nodes: "3", policy: evicting,
			want: "a COMPLETED 0-100 2 evicted, urgent COMPLETED 40-90",
		},
		"a run begins again after its node has failed": {
			given: submit(0, "a", 2, 100) + `{"t": 30, "node": {"name": "node-00000", "state": "down"}}
			{"t": 50, "node": {"name": "node-00000", "state": "up"}}`, nodes: "2",
			want: "a COMPLETED 0-150 2 runs 30s lost",
		},
		"a cordoned node takes no pods, and its pods run on": {
			given: submit(0, "a", 2, 100) + submit(1, "b", 1, 10) + `{"t": 50, "node": {"name": "node-00000", "state": "cordon"}}
			{"t": 130, "node": {"name": "node-00000", "state": "up"}}` + "\n" + submit(60, "c", 2, 10), nodes: "2",
			want: "a COMPLETED 0-100, b COMPLETED 100-110, c COMPLETED 130-140",
		},
		"a cancelled job ends, running or not": {
			given: submit(0, "a", 2, 100) + submit(1, "b", 2, 10) + `{"t": 5, "cancel": "b"}
			{"t": 20, "cancel": "a"}
			{"t": 30, "cancel": "a"}`, nodes: "2",
			want: "a CANCELLED 0-20 20s lost, b CANCELLED -5",
		},
		"a job that is cancelled when it ends has completed": {
			given: submit(0, "a", 1, 20) + `{"t": 20, "cancel": "a"}`, nodes: "1",
			want: "a COMPLETED 0-20",
		},
		"changes of the same time apply in the order of the file": {
			given: `{"t": 5, "node": {"name": "node-00000", "state": "cordon"}}
			{"t": 5, "node": {"name": "node-00000", "state": "up"}}` + "\n" + submit(6, "a", 1, 20), nodes: "1",
			want: "a COMPLETED 6-26",
		},
		"the end of a grace period has no effect after the node has failed": {
			given: submit(0, "a", 1, 100) + `{"t": 10, "submit": {"name": "urgent", "priority": 9, "request": {"cpu": "1"}, "duration": 5}}
			{"t": 15, "node": {"name": "node-00000", "state": "down"}}
			{"t": 16, "node": {"name": "node-00000", "state": "up"}}`, nodes: "1", policy: evicting,
			want: "a COMPLETED 0-121 2 runs 1 evicted 10s lost, urgent COMPLETED 16-21",
		},
		"a job that runs at the beginning stays on its nodes": {
			given: `{"t": 0, "submit": {"name": "a", "min": 2, "request": {"cpu": "1"}, "duration": 50, "age": 60, "nodes": ["node-00001", "node-00002"]}}` + "\n" +
				submit(0, "b", 1, 10) + `{"t": 20, "node": {"name": "node-00000", "state": "down"}}
			{"t": 21, "node": {"name": "node-00000", "state": "up"}}`, nodes: "3",
			want: "a COMPLETED 0-50, b COMPLETED 0-10",
		},
		"what is older starts first": {
			given: submit(0, "a", 1, 10) + `{"t": 0, "submit": {"name": "b", "request": {"cpu": "1"}, "duration": 20, "age": 60}}`, nodes: "1",
			want: "b COMPLETED 0-20, a COMPLETED 20-30",
		},
		"a run of unknown length ends with its limit or not at all": {
			given: `{"t": 0, "submit": {"name": "a", "request": {"cpu": "1"}, "duration": 5, "unended": true}}
			{"t": 0, "submit": {"name": "b", "request": {"cpu": "1"}, "duration": 5, "unended": true, "limit": 30}}
			{"t": 0, "submit": {"name": "c", "request": {"cpu": "1"}, "duration": 5}}`, nodes: "2",
			want: "a RUNNING 0-, b COMPLETED 0-30, c COMPLETED 30-35",
		},
		"roles start together": {
			given: `{"t": 0, "submit": {"name": "a", "min": 2, "request": {"cpu": "1"}, "duration": 5, "roles": [{"pods": 1, "request": {"cpu": "2"}}]}}` +
				"\n" + submit(0, "b", 2, 10), nodes: "count=1,cpu=4",
			want: "a COMPLETED 0-5, b COMPLETED 5-15",
		},
		"nodes come, change and go": {
			given: submit(0, "a", 2, 100) + `{"t": 10, "node": {"name": "x", "state": "up", "allocatable": {"cpu": "1"}}}
			{"t": 30, "node": {"name": "x", "state": "up", "allocatable": {"cpu": "2"}}}
			{"t": 150, "node": {"name": "x", "state": "down"}}` + "\n" + submit(20, "b", 1, 5) + submit(200, "c", 2, 5), nodes: "1",
			want: "a COMPLETED 10-110, b COMPLETED 30-35, c PENDING",
		},
		"a taint needs a toleration": {
			given: `{"t": 0, "node": {"name": "x", "state": "up", "allocatable": {"cpu": "9"}, "taints": [{"key": "gpu", "effect": "NoSchedule"}]}}` + "\n" +
				submit(0, "a", 2, 5) + `{"t": 0, "submit": {"name": "b", "min": 2, "request": {"cpu": "1"}, "duration": 5, "tolerations": [{"key": "gpu", "operator": "Exists"}]}}`,
			nodes: "1",
			want:  "a PENDING, b COMPLETED 0-5",
		},
		"pods of other schedulers hold resources until they end or their node does": {
			given: `{"t": 0, "pod": {"name": "x", "node": "node-00000", "request": {"cpu": "1"}, "duration": 20}}
			{"t": 0, "pod": {"name": "y", "node": "node-00001", "request": {"cpu": "1"}, "duration": 5, "unended": true}}
			{"t": 0, "pod": {"name": "z", "node": "missing", "request": {"cpu": "1"}, "duration": 5}}
			{"t": 40, "node": {"name": "node-00001", "state": "down"}}
			{"t": 50, "node": {"name": "node-00001", "state": "up"}}` + "\n" + submit(0, "a", 1, 5) + submit(0, "b", 2, 5), nodes: "2",
			want: "a COMPLETED 20-25, b COMPLETED 50-55",
		},
		"a queue is capped from some time on": {
			given: `{"t": 0, "queue": {"name": "q", "spec": {"weight": 1}}}
			{"t": 5, "queue": {"name": "q", "spec": {"weight": 1, "capability": {"cpu": "1"}}}}
			{"t": 0, "submit": {"name": "a", "queue": "q", "min": 2, "request": {"cpu": "1"}, "duration": 10}}
			{"t": 1, "submit": {"name": "b", "queue": "q", "min": 2, "request": {"cpu": "1"}, "duration": 10}}
			{"t": 60, "queue": {"name": "q", "spec": {"weight": 1}}}
			{"t": 61, "queue": {"name": "q"}}
			{"t": 80, "submit": {"name": "c", "queue": "q", "request": {"cpu": "1"}, "duration": 10}}`, nodes: "2",
			want: "a COMPLETED 0-10, b COMPLETED 60-70, c PENDING",
		},
		"the replay ends early": {
			given: submit(0, "a", 2, 100) + submit(1, "b", 2, 10) + submit(90, "c", 1, 1), nodes: "2", until: 50 * time.Second,
			want: "a RUNNING 0-, b PENDING",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			o.Until = tc.until
			r, err := replay.Run(t.Context(), inputOf(t, read(t, tc.given), tc.nodes, tc.policy), o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, outcomes(r)); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			if tc.until > 0 && r.Summary.Until != tc.until.Seconds() {
				t.Errorf("the replay ends at %v, want %v", r.Summary.Until, tc.until)
			}
		})
	}
}

func outcomes(r *replay.Result) string {
	var list []string
	for i := range r.Jobs {
		j := &r.Jobs[i]
		line, start, end := fmt.Sprintf("%s %s", j.ID, j.State), "", ""
		if j.Runs > 0 {
			start = fmt.Sprint(j.Start.Seconds())
		}
		if j.State.Ended() {
			end = fmt.Sprint(j.End.Seconds())
		}
		if start+end != "" {
			line += " " + start + "-" + end
		}
		if j.Runs > 1 {
			line += fmt.Sprintf(" %d runs", j.Runs)
		}
		if j.Evictions > 0 {
			line += fmt.Sprintf(" %d evicted", j.Evictions)
		}
		if j.Lost > 0 {
			line += fmt.Sprintf(" %v lost", j.Lost)
		}
		list = append(list, line)
	}
	return strings.Join(list, ", ")
}

// TestClockJumps is Q6: nothing runs between events but the session that the starvation rule asks for.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	var times []time.Duration
	o := options()
	o.Progress = func(p replay.Progress) { times = append(times, p.At/time.Second) }
	given := submit(0, "a", 4, 100) + submit(10, "b", 2, 5)
	r, err := replay.Run(t.Context(), inputOf(t, read(t, given), "count=1,cpu=4", "starvationAfter: 50s\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a COMPLETED 0-100, b COMPLETED 100-105", outcomes(r)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]time.Duration{0, 10, 60, 100, 105}, times); diff != "" {
		t.Errorf("times of sessions (-want +got):\n%s", diff)
	}
}

func TestMeasures(t *testing.T) {
	t.Parallel()
	// Two nodes for 200 seconds: 100 of a on both, 100 of b on one. The wait of b is 90 seconds, its slowdown 190/100.
	r, err := replay.Run(t.Context(), inputOf(t, read(t, submit(1000, "a", 2, 100)+submit(1010, "b", 1, 100)), "2", ""), options())
	if err != nil {
		t.Fatal(err)
	}
	want := replay.Summary{
		Jobs: 2, Completed: 2, Until: 1200, Makespan: 200, Wait: replay.Wait{Mean: 45, P95: 90, P99: 90, Max: 90}, MeanBoundedSlowdown: 1.45,
		LargeJobs: 2, LargeJobPods: 1, LongestLargeWait: 90, Utilisation: []replay.Utilisation{{Resource: "cpu", Part: .75}},
		Goodput: []replay.Utilisation{{Resource: "cpu", Part: .75}}, SizeUnit: "pods", GangSize: 8,
		Sizes: []replay.SizeClass{
			{Least: 1, Most: 1, Jobs: 1, Started: 1, Wait: replay.Wait{Mean: 90, P50: 90, P95: 90, P99: 90, Max: 90}},
			{Least: 2, Most: 7, Jobs: 1, Started: 1},
		},
		Notes: []string{}, Sessions: r.Summary.Sessions,
	}
	if diff := cmp.Diff(want, r.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	short := replay.Job{Submit: 0, Start: 5 * time.Second, End: 6 * time.Second, Run: time.Second}
	if got := short.Slowdown(); got != 1 {
		t.Errorf("the bounded slowdown of a job of one second that waits for five is %v, want 1", got)
	}
}

func TestInterruptedReplayReturnsWhatItHas(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := options()
	o.Progress = func(p replay.Progress) {
		if p.At >= 10*time.Second {
			cancel()
		}
	}
	given := submit(0, "a", 1, 5) + submit(10, "b", 1, 5) + submit(20, "c", 1, 5)
	r, err := replay.Run(ctx, inputOf(t, read(t, given), "1", ""), o)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want %v", err, context.Canceled)
	}
	if diff := cmp.Diff("a COMPLETED 0-5, b RUNNING 10-", outcomes(r)); diff != "" {
		t.Error(diff)
	}
}

// TestUnendedJobsHoldNodesUntilTheEnd measures the utilisation until the end of a record, after which nothing happens any more.
func TestUnendedJobsHoldNodesUntilTheEnd(t *testing.T) {
	t.Parallel()
	given := submit(0, "a", 1, 20) + `{"t": 0, "submit": {"name": "b", "request": {"cpu": "1"}, "duration": 5, "unended": true}}`
	o := options()
	o.Until = 100 * time.Second
	r, err := replay.Run(t.Context(), inputOf(t, read(t, given), "2", ""), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Summary; got.Utilisation[0].Part != .6 || got.Until != 100 {
		t.Errorf("utilisation is %v until %v, want 0.6 until 100", got.Utilisation, got.Until)
	}
}

// TestGivenNodesAndQueuesTakePrecedence replays a record on nodes and with queues that the caller states.
func TestGivenNodesAndQueuesTakePrecedence(t *testing.T) {
	t.Parallel()
	given := `{"t": 0, "node": {"name": "node-00000", "state": "up", "allocatable": {"cpu": "1"}}}
		{"t": 0, "node": {"name": "x", "state": "up", "allocatable": {"cpu": "1"}}}
		{"t": 0, "queue": {"name": "q", "spec": {"weight": 1}}}
		{"t": 0, "submit": {"name": "a", "queue": "q", "min": 5, "request": {"cpu": "1"}, "duration": 10}}
		{"t": 0, "submit": {"name": "b", "min": 4, "request": {"cpu": "1"}, "duration": 10}}`
	in := inputOf(t, read(t, given), "count=1,cpu=4", noReservation)
	in.Queues = []*v1alpha1.Queue{{
		ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: v1alpha1.QueueSpec{Weight: 1, Capability: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}},
	}}
	var binds []replay.Bind
	o := options()
	o.Bound = func(b replay.Bind) { binds = append(binds, b) }
	r, err := replay.Run(t.Context(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a PENDING, b COMPLETED 0-10", outcomes(r)); diff != "" {
		t.Error(diff)
	}
	want := []replay.Bind{{Job: "b", Node: "node-00000"}, {Job: "b", Pod: 1, Node: "node-00000"}, {Job: "b", Pod: 2, Node: "node-00000"}, {Job: "b", Pod: 3, Node: "node-00000"}}
	if diff := cmp.Diff(want, binds); diff != "" {
		t.Errorf("binds (-want +got):\n%s", diff)
	}
	if got := r.Summary.Utilisation[0].Part; got != .8 {
		t.Errorf("utilisation is %v, want 4 of 5 CPUs", got)
	}
}

func TestReplayRejects(t *testing.T) {
	t.Parallel()
	given := submit(0, "a", 1, 5) + `{"t": 1, "node": {"name": "n7", "state": "down"}}`
	_, err := replay.Run(t.Context(), inputOf(t, read(t, given), "1", ""), options())
	if want := `the trace changes a node "n7", which is not there`; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}
