// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
)

const (
	twoJobs = `{"t": 0, "submit": {"name": "a", "min": 2, "request": {"cpu": "1"}, "duration": 100}}
{"t": 10, "submit": {"name": "b", "request": {"cpu": "1"}, "duration": 50}}
`
	twoNodes = `apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: "1", memory: 1Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
status: {capacity: {cpu: "1", memory: 1Gi, pods: "10"}}
`
	rows = `job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,queue,gang,gpus,bounded_slowdown,runs,evictions,lost_time,wait_reason,wait_reason_part
a,jobs,cpu=1,0,2,,1,COMPLETED,0,100,100,0,100,1,0-1,default,2,0,1,1,0,0,,
b,jobs,cpu=1,10,1,,1,COMPLETED,100,50,150,90,140,2.8,0,default,1,0,2.8,1,0,0,NotEnoughResources,1
`
)

func TestSimulateTrace(t *testing.T) {
	t.Parallel()
	jobs := file(t, "jobs.jsonl", twoJobs)
	for name, given := range map[string][]string{
		"nodes of the command line": {"--nodes", "2"},
		"nodes in two lots":         {"--nodes", "1", "--nodes", "name=other,cpu=1"},
		"nodes of files":            {"--objects", file(t, "nodes.yaml", twoNodes)},
		"a format that is named":    {"--nodes", "2", "--format", "jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "new", "results")
			code, stdout, stderr := execute(nil, append([]string{"simulate", "--trace", jobs, "-o", dir}, given...)...)
			if code != 0 || stderr != "" {
				t.Fatalf("exit code %d and stderr %q, want 0 and nothing", code, stderr)
			}
			got := map[string]string{}
			for _, name := range []string{"jobs.csv", "summary.txt"} {
				data, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				got[name] = string(data)
			}
			if diff := cmp.Diff(map[string]string{"jobs.csv": rows, "summary.txt": stdout}, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			for _, name := range []string{"summary.json", "cluster.csv", "queues.csv", "evictions.csv", "manifest.json", "report.html"} {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
			if want := "Jobs                        2: 2 completed, 0 running, 0 pending, 0 cancelled\n"; !strings.HasPrefix(stdout, want) {
				t.Errorf("stdout is\n%s\nand should begin with\n%s", stdout, want)
			}
		})
	}
}

func TestSimulateTraceWithoutOutputWritesNoFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	code, stdout, stderr := execute(nil, "simulate", "--trace", file(t, "jobs.jsonl", twoJobs), "--nodes", "2")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "Mean wait                 45s\n") {
		t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
	}
	if files, err := filepath.Glob("*"); err != nil || len(files) > 0 {
		t.Errorf("there are %v in the directory, error %v", files, err)
	}
}

func TestSimulateTopology(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, stdout, stderr := execute(nil, "simulate", "--trace", file(t, "jobs.jsonl", twoJobs), "--nodes", "count=4,cpu=1,domain:rack=2", "--topology", "required=rack", "-o", dir)
	if code != 0 || stderr != "" || !strings.Contains(stdout, "Whole free default/rack   0.5 of 2 on average; 1 of 1 gangs ran in one\n") {
		t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
	}
	for name, want := range map[string][]string{
		"jobs.csv":    {",domains default/rack\n", ",1\n", ",1\n"},
		"cluster.csv": {",free_domains default/rack\n", ",1\n", ",0\n", ",1\n", ",2\n"},
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(data)) {
			got = append(got, line[strings.LastIndex(line, ","):])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("last column of %s (-want +got):\n%s", name, diff)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !strings.Contains(string(page), "<figcaption>Whole free domains of default/rack</figcaption>") {
		t.Errorf("the report has no curve of free racks; error %v", err)
	}
}

func TestSimulateTraceErrors(t *testing.T) {
	t.Parallel()
	jobs := file(t, "jobs.jsonl", twoJobs)
	bad := file(t, "bad.jsonl", twoJobs+"{\n")
	for name, tc := range map[string]struct {
		given []string
		want  string
	}{
		"a bad line": {
			given: []string{"--trace", bad, "--nodes=2"},
			want:  "error: --trace: " + bad + ":3: unexpected EOF\n",
		},
		"a missing file": {
			given: []string{"--trace=/none.swf", "--nodes=2"},
			want:  "error: --trace: open /none.swf: no such file or directory\n",
		},
		"an unknown format": {
			given: []string{"--trace", jobs, "--nodes=2", "--format=jsonn"},
			want:  `error: --format: unknown format "jsonn"; did you mean "jsonl"?; see batch-scheduler simulate --help` + "\n",
		},
		"a file name without a format": {
			given: []string{"--trace=jobs.txt", "--nodes=2"},
			want:  "error: --format: the name of jobs.txt does not imply it; known formats: gavel, jsonl, openb, pai, philly, spot, swf; see batch-scheduler simulate --help\n",
		},
		"no nodes": {
			given: []string{"--trace", jobs},
			want:  "error: --nodes: the trace needs nodes: set --nodes, --objects or --from-cluster\n",
		},
		"bad nodes": {
			given: []string{"--trace", jobs, "--nodes=some"},
			want:  `error: --nodes: "some" is not KEY=VALUE, as in count=4,cpu=64,memory=512Gi,nvidia.com/gpu=8` + "\n",
		},
		"a rule without a level": {
			given: []string{"--trace", jobs, "--nodes=2", "--topology=from=8"},
			want:  "error: --topology: needs a level: required, preferred, or both; see batch-scheduler simulate --help\n",
		},
		"no topology": {
			given: []string{"--trace", jobs, "--nodes=2", "--topology=required=rack"},
			want:  `error: job "a" has a topology constraint: no topology exists` + "\n",
		},
		"equal nodes": {
			given: []string{"--trace", jobs, "--nodes=2", "--nodes=2"},
			want:  "error: there are two nodes node-00000; name=NAME in --nodes sets the beginning of their names\n",
		},
		"an output format": {
			given: []string{"--trace", jobs, "--nodes=2", "-o", "html"},
			want:  `error: --output: is a directory with --trace; for one of this name, write "./html"; see batch-scheduler simulate --help` + "\n",
		},
		"numbers out of range": {
			given: []string{"--trace", jobs, "--nodes=2", "--arrivals=0", "--until=-1s", "--eviction-grace=-1s", "--steps-per-second=NaN"},
			want: "error: --until: must not be negative, but is -1s; --eviction-grace: must not be negative, but is -1s; " +
				"--arrivals: must be from 0.001 to 1000, not 0; --steps-per-second: must be positive, not NaN; see batch-scheduler simulate --help\n",
		},
		"flags of the other use": {
			given: []string{"--trace", jobs, "--nodes=2", "--cycles=3"},
			want:  "error: --cycles: has no meaning with --trace; see batch-scheduler simulate --help\n",
		},
		"flags without a trace": {
			given: []string{"--objects=.", "--until=1h"},
			want:  "error: --until: needs --trace; see batch-scheduler simulate --help\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "results")
			given := append([]string{"simulate"}, tc.given...)
			if !strings.Contains(name, "output") && strings.Contains(name, "bad") {
				given = append(given, "-o", dir)
			}
			code, stdout, stderr := execute(nil, given...)
			if diff := cmp.Diff(tc.want, stderr); diff != "" || code != 1 || stdout != "" {
				t.Errorf("exit code %d, stdout %q, stderr (-want +got):\n%s", code, stdout, diff)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("a directory was created")
			}
		})
	}
}

func TestRemainingTime(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakePassiveClock(time.Now())
	var b bytes.Buffer
	show := remaining(clock, oncePerSecond(clock, &b))
	clock.SetTime(clock.Now().Add(10 * time.Second))
	show(replay.Progress{At: time.Hour, Done: 0, Jobs: 400})
	clock.SetTime(clock.Now().Add(10 * time.Second))
	show(replay.Progress{At: 2 * time.Hour, Done: 100, Jobs: 400})
	want := `simulate: 0 of 400 jobs ended, at 1h0m0s of the trace; remaining time unknown
simulate: 100 of 400 jobs ended, at 2h0m0s of the trace; remaining time 1m0s
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

func TestInterruptedReplayWritesWhatItHas(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "results")
	s := &simulation{scheduler: NewOptions(), replaying: newReplaying(), output: dir, writesFiles: true}
	s.trace, s.format, s.nodes = file(t, "jobs.jsonl", twoJobs), "jsonl", []string{"2"}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var stdout bytes.Buffer
	err := s.replay(ctx, newProgram(nil), &stdout, func(string, ...any) {})
	if want := "interrupted at 0s of the trace: the results are those until then"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	data, err := os.ReadFile(filepath.Join(dir, "summary.txt"))
	if err != nil || string(data) != stdout.String() {
		t.Errorf("summary.txt is %q, error %v; want %q", data, err, stdout.String())
	}
}
