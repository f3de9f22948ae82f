// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/results"
)

// recorded are the options with which results are recorded.
func recorded() replay.Options {
	o := options()
	o.Record = true
	return o
}

// fileOf returns a result file.
func fileOf(t *testing.T, r *replay.Result, name string) string {
	t.Helper()
	list := (&results.Run{Workload: "test", Result: r}).Files()
	i := slices.IndexFunc(list, func(f results.File) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("there is no file %s", name)
	}
	var b bytes.Buffer
	if err := list[i].Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRestart is SI4: what is lost if a node fails during the run of a gang, without checkpoints and with some.
func TestRestart(t *testing.T) {
	t.Parallel()
	const down = `{"t": 4500, "node": {"name": "node-00000", "state": "down"}}
{"t": 4600, "node": {"name": "node-00000", "state": "up"}}
`
	const later = `{"t": 6000, "node": {"name": "node-00001", "state": "down"}}
{"t": 6000, "node": {"name": "node-00001", "state": "up"}}
`
	for name, tc := range map[string]struct {
		given      string
		checkpoint time.Duration
		delay      time.Duration
		want       string
		goodput    float64
	}{
		"without checkpoints, all of the run is lost": {
			given: submit(0, "a", 4, 7200) + down,
			want:  "a COMPLETED 0-11800 2 runs 1h15m0s lost", goodput: 7200. * 4 / (11800*4 - 100),
		},
		"with checkpoints, the work since the last one": {
			given: submit(0, "a", 4, 7200) + down, checkpoint: 30 * time.Minute,
			want: "a COMPLETED 0-8200 2 runs 15m0s lost", goodput: 7200. * 4 / (8200*4 - 100),
		},
		"a second failure before the next checkpoint loses the work since the restart": {
			given: submit(0, "a", 4, 7200) + down + later, checkpoint: 30 * time.Minute,
			want: "a COMPLETED 0-9600 3 runs 38m20s lost", goodput: 7200. * 4 / (9600*4 - 100),
		},
		"a run begins when the containers of the gang have started": {
			given: submit(0, "a", 4, 7200) + down, delay: 20 * time.Second,
			want: "a COMPLETED 20-11820 2 runs 1h14m40s lost", goodput: 7200. * 4 / (11820*4 - 100),
		},
		"a failure while containers start costs no work": {
			given: submit(4495, "a", 4, 60) + down, delay: 20 * time.Second,
			want: "a COMPLETED 4620-4680", goodput: 60. * 4 / (185*4 - 100),
		},
		"a job that ends while its containers start has not run": {
			given: submit(0, "a", 4, 7200) + `{"t": 10, "cancel": "a"}`, delay: 20 * time.Second,
			want: "a CANCELLED -10",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			o.Checkpoint, o.StartDelay = tc.checkpoint, tc.delay
			r, err := replay.Run(t.Context(), inputOf(t, read(t, tc.given), "4", ""), o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, outcomes(r)); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			if got := r.Summary.Goodput[0].Part; got < tc.goodput-1e-5 || got > tc.goodput+1e-5 {
				t.Errorf("goodput is %v, want %v", got, tc.goodput)
			}
			lost := r.Jobs[0].Lost
			if limit := tc.checkpoint * time.Duration(r.Jobs[0].Runs-1); tc.checkpoint > 0 && lost > limit {
				t.Errorf("%v of work is lost, more than %v: an interval of checkpoints for each failure", lost, limit)
			}
		})
	}
}

// TestClusterFile is Q6 as a result file: the clock stops at 60 seconds for the starvation rule.
func TestClusterFile(t *testing.T) {
	t.Parallel()
	r, err := replay.Run(t.Context(), inputOf(t, read(t, submit(0, "a", 4, 100)+submit(10, "b", 2, 5)), "count=1,cpu=4", "starvationAfter: 50s\n"), recorded())
	if err != nil {
		t.Fatal(err)
	}
	want := `t,pending_jobs,running_jobs,allocated cpu,usable cpu
0,0,1,4,4
10,1,1,4,4
60,1,1,4,4
100,0,1,2,4
105,0,0,0,4
`
	if diff := cmp.Diff(want, fileOf(t, r, "cluster.csv")); diff != "" {
		t.Errorf("cluster.csv (-want +got):\n%s", diff)
	}
	if b := r.Jobs[1]; b.Reason != "NotEnoughResources" || b.ReasonPart != 1 {
		t.Errorf("b waits for the reason %q during %v of the wait", b.Reason, b.ReasonPart)
	}
	if diff := cmp.Diff(&replay.LongestWait{Job: "b", Seconds: 90, Reason: "NotEnoughResources", Part: 1}, r.Summary.Longest); diff != "" {
		t.Errorf("longest wait (-want +got):\n%s", diff)
	}
}

// TestFilesOfGangs has roles, GPUs, an eviction and a node that fails.
func TestFilesOfGangs(t *testing.T) {
	t.Parallel()
	const given = `{"t": 0, "submit": {"name": "a", "queue": "x", "min": 1, "request": {"nvidia.com/gpu": "8"}, "roles": [{"pods": 2, "request": {"nvidia.com/gpu": "2"}}], "duration": 100, "limit": 120}}
{"t": 10, "submit": {"name": "urgent", "queue": "x", "priority": 9, "min": 1, "request": {"nvidia.com/gpu": "8"}, "duration": 50}}
{"t": 200, "node": {"name": "node-00000", "state": "down"}}
`
	r, err := replay.Run(t.Context(), inputOf(t, read(t, given), "count=2,nvidia.com/gpu=8", evicting), recorded())
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, name := range []string{"jobs.csv", "cluster.csv", "queues.csv", "evictions.csv"} {
		got += fmt.Sprintf("%s\n%s", name, fileOf(t, r, name))
	}
	want := `jobs.csv
job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,queue,gang,gpus,bounded_slowdown,runs,evictions,lost_time,wait_reason,wait_reason_part
a,test,nvidia.com/gpu=8,0,3,120,1,COMPLETED,0,100,190,0,190,1.9,0-1,x,3,12,1.9,2,3,10,,
urgent,test,nvidia.com/gpu=8,10,1,,1,COMPLETED,40,50,90,30,80,1.6,0,x,1,8,1.6,1,0,0,Preempting,1
cluster.csv
t,pending_jobs,running_jobs,allocated nvidia.com/gpu,usable nvidia.com/gpu,nodes_8_gpus_free,nodes_4_gpus_free,nodes_2_gpus_free,nodes_1_gpu_free
0,0,1,12,16,0,1,1,1
10,2,0,12,16,0,1,1,1
40,1,1,8,16,1,1,1,1
90,0,1,12,16,0,1,1,1
100,0,1,12,16,0,1,1,1
190,0,0,0,16,2,2,2,2
200,0,0,0,8,1,1,1,1
queues.csv
t,queue,pending_jobs,running_jobs,allocated nvidia.com/gpu,deserved nvidia.com/gpu,requested nvidia.com/gpu
0,default,0,0,0,0,0
0,x,0,1,12,12,12
10,x,2,0,0,16,8
40,x,1,1,8,16,20
90,x,0,1,12,12,12
190,x,0,0,0,0,0
evictions.csv
t,job_id,queue,pod,node,for_job,cause,lost_time
10,a,x,0,node-00000,urgent,preempted,10
10,a,x,1,node-00001,urgent,preempted,0
10,a,x,2,node-00001,urgent,preempted,0
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestNothingIsRecordedByDefault asserts that a replay without result files collects no samples.
func TestNothingIsRecordedByDefault(t *testing.T) {
	t.Parallel()
	r, err := replay.Run(t.Context(), inputOf(t, read(t, submit(0, "a", 1, 5)+submit(1, "b", 1, 5)), "1", ""), options())
	if err != nil {
		t.Fatal(err)
	}
	if r.Record != nil || r.Summary.Queues != nil || r.Jobs[0].Nodes != "" || r.Jobs[1].Reason != "" {
		t.Errorf("recorded are %v, %v, %q and %q", r.Record, r.Summary.Queues, r.Jobs[0].Nodes, r.Jobs[1].Reason)
	}
}

// TestRecordFollowsNodesOfTheTrace has nodes that a trace defines, changes and removes, and a job that runs at its beginning.
func TestRecordFollowsNodesOfTheTrace(t *testing.T) {
	t.Parallel()
	given := `{"t": 0, "node": {"name": "x", "state": "up", "allocatable": {"nvidia.com/gpu": "8"}}}
		{"t": 0, "submit": {"name": "a", "request": {"nvidia.com/gpu": "4"}, "duration": 50, "age": 60, "nodes": ["x"]}}
		{"t": 5, "pod": {"name": "p", "node": "x", "request": {"nvidia.com/gpu": "3"}, "duration": 10}}
		{"t": 20, "node": {"name": "y", "state": "up", "allocatable": {"nvidia.com/gpu": "2"}}}
		{"t": 30, "node": {"name": "y", "state": "up", "allocatable": {"nvidia.com/gpu": "8"}}}
		{"t": 40, "node": {"name": "y", "state": "down"}}
		{"t": 45, "node": {"name": "x", "state": "up", "allocatable": {"nvidia.com/gpu": "6"}}}`
	o := recorded()
	o.StartDelay = 7 * time.Second
	r, err := replay.Run(t.Context(), inputOf(t, read(t, given), "1", ""), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a COMPLETED 0-50", outcomes(r)); diff != "" {
		t.Error(diff)
	}
	if got := r.Jobs[0].Nodes; got != "1" {
		t.Errorf("the job ran on the nodes %q, want the one after that of the input", got)
	}
	got := map[time.Duration][4]int{}
	for _, s := range r.Record.Cluster {
		got[s.At/time.Second] = s.Free
	}
	want := map[time.Duration][4]int{
		0: {0, 1, 1, 1}, 5: {0, 0, 0, 1}, 15: {0, 1, 1, 1}, 20: {0, 1, 2, 2}, 30: {1, 2, 2, 2}, 40: {0, 1, 1, 1}, 45: {0, 0, 1, 1}, 50: {0, 1, 1, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes with free GPUs (-want +got):\n%s", diff)
	}
}

// TestRecordEndsQueues deletes a queue whose job runs.
func TestRecordEndsQueues(t *testing.T) {
	t.Parallel()
	given := `{"t": 0, "queue": {"name": "q", "spec": {"weight": 1}}}
		{"t": 0, "submit": {"name": "a", "queue": "q", "request": {"cpu": "1"}, "duration": 7200}}
		{"t": 3600, "queue": {"name": "q"}}`
	r, err := replay.Run(t.Context(), inputOf(t, read(t, given), "1", ""), recorded())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range r.Record.Queues {
		if s.Queue == "q" {
			got = append(got, fmt.Sprint(s.At, s.Held))
		}
	}
	if diff := cmp.Diff([]string{"0s [1]", "1h0m0s [0]"}, got); diff != "" {
		t.Errorf("samples of the queue (-want +got):\n%s", diff)
	}
	for _, q := range r.Summary.Queues {
		if q.Name == "q" && q.HeldHours != 1 {
			t.Errorf("the queue held 1 CPU for %v hours, want 1", q.HeldHours)
		}
	}
}
