// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

var traces = flag.String("traces", "../../../../../shared/data", "directory with the public traces; without it, tests that need one are skipped")

// amounts returns resources by name and quantity in turns.
func amounts(words ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for pair := range slices.Chunk(words, 2) {
		list[v1.ResourceName(pair[0])] = resource.MustParse(pair[1])
	}
	return list
}

func readFile(t *testing.T, format, file string) *trace.Trace {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	beside := func(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(filepath.Dir(file), name)) }
	tr, err := trace.Read(format, file, f, trace.Options{StepsPerSecond: 10, Open: beside})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestFormats(t *testing.T) {
	t.Parallel()
	const s = time.Second
	one := amounts("cpu", "1")
	gpus := []v1.Toleration{{Key: "gpu", Operator: v1.TolerationOpExists}}
	for file, want := range map[string]*trace.Trace{
		"small.swf": {
			Jobs: []trace.Job{
				{ID: "1", Queue: "queue-1", Submit: 10 * s, Run: 100 * s, Limit: 200 * s, Min: 2, Replicas: 2, Request: one},
				{ID: "2", Submit: 20 * s, Run: 50 * s, Limit: 50 * s, Min: 3, Replicas: 3, Request: one},
			},
			Notes: []string{"1 left out: jobs without processors", "1 left out: jobs without run time"},
		},
		"week.jsonl": {
			Jobs: []trace.Job{
				{ID: "train-1", Queue: "research", Run: 7200 * s, Min: 4, Replicas: 4, Request: amounts("cpu", "8", "nvidia.com/gpu", "8")},
				{
					ID: "notebook", Submit: 60 * s, Run: 28800 * s, Min: 1, Replicas: 1, Request: amounts("cpu", "2", "nvidia.com/gpu", "1"),
					Selector: map[string][]string{"gpu-model": {"A100", "H100"}},
				},
				{
					ID: "serve", Queue: "product", Priority: 10, Submit: 300 * s, Run: 3600 * s, Limit: 5400 * s, Min: 1, Replicas: 3,
					Request: amounts("cpu", "4", "nvidia.com/gpu", "2"),
				},
			},
			Cancels: []trace.Cancel{{At: 1200 * s, Job: "notebook"}},
			Nodes:   []trace.NodeEvent{{At: 600 * s, Node: "node-00001", State: trace.NodeDown}, {At: 900 * s, Node: "node-00001", State: trace.NodeUp}},
		},
		"record.jsonl": {
			Jobs: []trace.Job{
				{
					ID: "team/train", Queue: "research", Priority: 5, Run: 3000 * s, Min: 2, Replicas: 3, Request: amounts("cpu", "4"),
					Age: 7200 * s, Nodes: []string{"n1", "n1"},
				},
				{
					ID: "team/spark", Submit: 30 * s, Run: 1200 * s, Limit: 3600 * s, Min: 1, Replicas: 2, Request: amounts("cpu", "4"),
					Selector: map[string][]string{"zone": {"a", "b"}}, Tolerations: gpus,
					Roles: []trace.Role{{Pods: 1, Request: amounts("cpu", "1"), Tolerations: gpus}},
				},
				{ID: "team/eval", Submit: 900 * s, Unended: true, Min: 1, Replicas: 1, Request: amounts("cpu", "2")},
			},
			Cancels: []trace.Cancel{{At: 1800 * s, Job: "team/eval"}},
			Nodes: []trace.NodeEvent{
				{Node: "n1", State: trace.NodeUp, Allocatable: amounts("cpu", "16", "memory", "64Gi", "pods", "110"), Labels: map[string]string{"zone": "a"}},
				{
					Node: "n2", State: trace.NodeUp, Allocatable: amounts("cpu", "16", "memory", "64Gi", "pods", "110"), Labels: map[string]string{"zone": "b"},
					Taints: []v1.Taint{{Key: "gpu", Value: "yes", Effect: v1.TaintEffectNoSchedule}},
				},
				{At: 600500 * time.Millisecond, Node: "n3", State: trace.NodeUp, Allocatable: amounts("cpu", "8", "pods", "110")},
				{At: 1950 * s, Node: "n3", State: trace.NodeDown},
			},
			Record: trace.Record{
				Queues: []trace.QueueEvent{
					{Queue: "default", Spec: &v1alpha1.QueueSpec{Weight: 1}},
					{Queue: "research", Spec: &v1alpha1.QueueSpec{Weight: 3, Capability: amounts("cpu", "24"), Reclaimable: new(false)}},
					{At: 1900 * s, Queue: "research"},
				},
				Pods: []trace.Pod{
					{Name: "kube-system/agent", Node: "n1", Run: 3600 * s, Unended: true, Request: amounts("cpu", "500m")},
					{At: 100 * s, Name: "web/front", Node: "n2", Run: 50 * s, Request: amounts("cpu", "1")},
				},
				End: 3600 * s,
			},
			Notes: []string{"1 of 3 jobs had not ended when the record did"},
		},
		"openb_pods.csv": {
			Jobs: []trace.Job{
				{ID: "pod-0", Run: 500 * s, Min: 1, Replicas: 1, Request: amounts("cpu", "12", "memory", "16Gi", "nvidia.com/gpu", "1")},
				{
					ID: "pod-1", Submit: 100 * s, Run: 290 * s, Min: 2, Replicas: 2, Request: amounts("cpu", "6", "memory", "12Gi", "nvidia.com/gpu", "1"),
					Selector: map[string][]string{"gpu-model": {"A", "B"}},
				},
			},
			Notes: []string{"1 left out: pods that were never scheduled"},
		},
		"small.trace": {
			Jobs: []trace.Job{
				{ID: "2", Submit: 2 * s, Run: 20 * s, Min: 3, Replicas: 3, Request: amounts("nvidia.com/gpu", "8")},
				{ID: "1", Submit: 5500 * time.Millisecond, Run: 100 * s, Min: 1, Replicas: 1, Request: amounts("nvidia.com/gpu", "1")},
			},
			Notes: []string{"run times are the numbers of steps at 10 steps per second"},
		},
		"cluster_job_log.json": {
			Jobs: []trace.Job{
				{ID: "application_1", Queue: "vc-a", User: "ann", Run: 150 * s, Min: 2, Replicas: 2, Request: amounts("nvidia.com/gpu", "8"),
					Roles: []trace.Role{{Pods: 1, Request: amounts("nvidia.com/gpu", "2")}}},
				{ID: "application_3", Queue: "vc-b", User: "bob", Submit: 90 * s, Run: 3600 * s, Min: 1, Replicas: 1, Request: amounts("nvidia.com/gpu", "1")},
			},
			Notes: []string{"2 left out: jobs without an attempt that has servers, a start and an end"},
		},
		"pai_job_table.csv": {
			Jobs: []trace.Job{
				{ID: "j1", User: "u1", Run: 600 * s, Min: 1, Replicas: 1, Request: amounts("cpu", "6", "memory", "30000Mi"),
					Roles: []trace.Role{{Pods: 2, Request: amounts("cpu", "4", "memory", "16Gi", "nvidia.com/gpu", "1")}}},
				{ID: "j2", User: "u2", Submit: 100 * s, Run: 50 * s, Min: 1, Replicas: 1, Request: amounts("cpu", "6", "memory", "30000Mi", "nvidia.com/gpu", "2")},
			},
			Notes: []string{"2 left out: jobs without tasks, or whose start or end is not known"},
		},
		"job_info_df.csv": {
			Jobs: []trace.Job{
				{ID: "7", Queue: "organization-3", Priority: 1, Run: 7200 * s, Min: 2, Replicas: 2, Request: amounts("cpu", "20", "nvidia.com/gpu", "4"),
					Selector: map[string][]string{"gpu-model": {"A10"}}},
				{ID: "8", Queue: "organization-5", Submit: 60 * s, Run: 600 * s, Min: 1, Replicas: 1, Request: amounts("cpu", "8", "nvidia.com/gpu", "1"),
					Selector: map[string][]string{"gpu-model": {"A100-SXM4-80GB"}}},
			},
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			got := readFile(t, trace.FormatOf(file), filepath.Join("testdata", file))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("trace (-want +got):\n%s", diff)
			}
			var converted bytes.Buffer
			if err := got.WriteJSONL(&converted); err != nil {
				t.Fatal(err)
			}
			again, err := trace.Read("jsonl", "converted", &converted, trace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, again); diff != "" {
				t.Errorf("converted to jsonl (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	const fields = " -1 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
	const submit = `{"t": 1, "submit": {"name": "a", "request": {"cpu": "1"}, "duration": 5}}` + "\n"
	const openb = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
	for name, tc := range map[string]struct{ format, given, want string }{
		"an unknown format":         {"swff", "", `unknown format "swff"; did you mean "swf"?`},
		"a format like none":        {"parquet", "", `unknown format "parquet"; known formats: gavel, jsonl, openb, pai, philly, spot, swf`},
		"an empty file":             {"swf", "; nothing\n", "f: there is no job in it"},
		"swf: too few fields":       {"swf", "; comment\n\n1 2 3\n", "f:3: a job has 18 fields in swf, but the line has 3"},
		"swf: not a number":         {"swf", "1 10 -1 ten" + fields, `f:1: run time (field 4): "ten" is not a number`},
		"swf: negative submit time": {"swf", "1 -5 -1 10" + strings.Replace(fields, " -1", " 4", 1), "f:1: submit time: must not be negative, but is -5"},
		"swf: endless":              {"swf", "1 1 -1 1e12" + strings.Replace(fields, " -1", " 4", 1), "f:1: run time: must be at most 100 years, but is 1e+12 seconds"},
		"jsonl: no JSON":            {"jsonl", submit + "x\n", "f:2: invalid character 'x' looking for beginning of value"},
		"jsonl: unknown field":      {"jsonl", `{"t": 1, "sumbit": {}}`, `f:1: unknown field "sumbit"; did you mean "submit"?`},
		"jsonl: two objects":        {"jsonl", `{"t": 1, "cancel": "a"} {}`, "f:1: more than one object in the line"},
		"jsonl: two kinds":          {"jsonl", `{"t": 1, "cancel": "a", "node": {}}`, "f:1: must have exactly one of submit, cancel, node, queue, pod, end and note beside t, not 2"},
		"jsonl: no time":            {"jsonl", `{"cancel": "a"}`, "f:1: t: the time in seconds is required"},
		"jsonl: negative time":      {"jsonl", `{"t": -1, "cancel": "a"}`, "f:1: t: must not be negative, but is -1"},
		"jsonl: no name":            {"jsonl", `{"t": 1, "submit": {"duration": 1}}`, "f:1: submit.name is required"},
		"jsonl: no duration":        {"jsonl", `{"t": 1, "submit": {"name": "a"}}`, "f:1: submit.duration: the run time in seconds is required"},
		"jsonl: name twice":         {"jsonl", submit + submit, `f:2: submit.name: "a" is the name of the job of line 1`},
		"jsonl: replicas below min": {"jsonl", `{"t": 1, "submit": {"name": "a", "duration": 1, "min": 3, "replicas": 2}}`, "f:1: submit: min must be at least 1, and replicas at least min; they are 3 and 2"},
		"jsonl: negative request":   {"jsonl", `{"t": 1, "submit": {"name": "a", "duration": 1, "request": {"cpu": "-1"}}}`, "f:1: submit.request: cpu must not be negative, but is -1"},
		"jsonl: unknown job":        {"jsonl", submit + `{"t": 1, "cancel": "b"}`, `f:2: cancel: no line before this one submits a job "b"`},
		"jsonl: state of a node":    {"jsonl", `{"t": 1, "node": {"name": "n", "state": "off"}}`, `f:1: node: must have a name and the state "up", "down" or "cordon", not "off"`},
		"jsonl: labels of no node":  {"jsonl", `{"t": 1, "node": {"name": "n", "state": "up", "labels": {"a": "b"}}}`, "f:1: node.allocatable: a node with labels or taints needs it"},
		"jsonl: negative node":      {"jsonl", `{"t": 1, "node": {"name": "n", "state": "up", "allocatable": {"cpu": "-1"}}}`, "f:1: node.allocatable: cpu must not be negative, but is -1"},
		"jsonl: queue without name": {"jsonl", `{"t": 1, "queue": {"spec": {"weight": 1}}}`, "f:1: queue.name is required"},
		"jsonl: pod without node":   {"jsonl", `{"t": 1, "pod": {"name": "p", "duration": 1}}`, "f:1: pod: name, node and duration are required"},
		"jsonl: no pods of a role":  {"jsonl", `{"t": 1, "submit": {"name": "a", "duration": 1, "roles": [{"pods": 0}]}}`, "f:1: submit.roles[0].pods must be at least 1, but is 0"},
		"jsonl: no level":           {"jsonl", `{"t": 1, "submit": {"name": "a", "duration": 1, "topology": {"name": "default"}}}`, "f:1: submit.topology: needs a level: required, preferred, or both"},
		"jsonl: too many nodes":     {"jsonl", `{"t": 1, "submit": {"name": "a", "duration": 1, "nodes": ["x", "y"]}}`, "f:1: submit.nodes: 1 pods cannot run on 2 nodes"},
		"jsonl: negative age":       {"jsonl", `{"t": 1, "submit": {"name": "a", "duration": 1, "age": -1}}`, "f:1: submit.age: must not be negative, but is -1"},
		"openb: a misspelt column":  {"openb", strings.Replace(openb, "num_gpu", "num_gpus", 1), `f:1: there is no column "num_gpu"; is it "num_gpus"?`},
		"openb: a missing column":   {"openb", strings.Replace(openb, "gpu_spec,", "", 1), `f:1: there is no column "gpu_spec"`},
		"openb: a missing cell":     {"openb", openb + "pod,1\n", "f:2: the first line has 11 columns, but this one has 2"},
		"openb: not a number":       {"openb", openb + "p,1,x,0,0,,LS,Running,0,9,0\n", `f:2: memory_mib: "x" is not a whole number`},
		"openb: ends before it runs": {
			"openb", openb + "p,1,1,0,0,,LS,Running,0,5,9\n", "f:2: deletion_time: 5 is before scheduled_time, 9",
		},
		"philly: no array":  {"philly", "{}", "f:1: philly is a JSON array of jobs; the file does not begin with ["},
		"philly: malformed": {"philly", "[\n{\"vc\": \"a\",\n\"jobid\": oops}\n]\n", "f:3: invalid character 'o' looking for beginning of value"},
		"philly: cut off":   {"philly", "[\n{\"submitted_time\": \"2017-10-07 01:11:39\"}\n", "f:3: unexpected end of JSON input"},
		"philly: no time":   {"philly", "[\n\n{\"submitted_time\": \"today\"}]", `f:3: submitted_time: "today" is not a time such as "2006-01-02 15:04:05"`},
		"pai: one file":     {"pai", "a,b,c,d,5,6\n", "the format pai has two files, and only one is given"},
		"spot: type of a job": {
			"spot", "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n1,2,A,1,1,1,0,5,LS\n",
			`f:2: job_type: must be HP or Spot, not "LS"`,
		},
		"spot: negative time": {
			"spot", "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n1,2,A,1,1,1,-5,5,HP\n",
			"f:2: submit_time: must not be negative or more than 3.1536e+09, but is -5",
		},
		"gavel: too few fields": {"gavel", "a\tb\n", "f:1: a job has 7 fields between tabs in gavel, but the line has 2"},
		"gavel: part of a GPU":  {"gavel", "a\tb\tc\t1\t100\t5\t0.5\n", "f:1: scale factor: must be a whole number of GPUs, not 0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := trace.Read(tc.format, "f", strings.NewReader(tc.given), trace.Options{StepsPerSecond: 1})
			if err == nil || err.Error() != tc.want {
				t.Errorf("the error is\n%v, want\n%s", err, tc.want)
			}
		})
	}
}

func TestEachFormatIsListed(t *testing.T) {
	t.Parallel()
	for _, format := range trace.Formats() {
		if _, err := trace.Read(format, "f", strings.NewReader("x"), trace.Options{StepsPerSecond: 1}); err == nil {
			t.Errorf("%s accepts anything", format)
		}
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	tr := readFile(t, "jsonl", filepath.Join("testdata", "week.jsonl"))
	run := tr.Jobs[2].Run
	tr.Scale(2)
	if got := []time.Duration{tr.Jobs[2].Submit, tr.Cancels[0].At, tr.Nodes[1].At, tr.Jobs[2].Run - run}; !slices.Equal(got, []time.Duration{150e9, 600e9, 450e9, 0}) {
		t.Errorf("at twice the rate, times are %v", got)
	}
	tr = readFile(t, "jsonl", filepath.Join("testdata", "record.jsonl"))
	tr.Scale(2)
	if r := &tr.Record; r.Queues[2].At != 950*time.Second || r.Pods[1].At != 50*time.Second || r.Pods[1].Run != 50*time.Second || r.End != 1800*time.Second {
		t.Errorf("at twice the rate, the record is %v", r)
	}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	nodes, err := trace.Nodes("count=2,name=gpu,cpu=64,nvidia.com/gpu=8,label:gpu-model=A")
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 2 || nodes[1].Name != "gpu-00001" || nodes[1].Labels["gpu-model"] != "A" {
		t.Errorf("nodes are %v", nodes)
	}
	if diff := cmp.Diff(amounts("cpu", "64", "nvidia.com/gpu", "8", "pods", "250"), nodes[0].Status.Allocatable); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
	for spec, want := range map[string]string{
		"0":           "there must be 1 to 100000 nodes, not 0",
		"many":        `"many" is not KEY=VALUE, as in count=4,cpu=64,memory=512Gi,nvidia.com/gpu=8`,
		"count=x":     `count: "x" is not a number`,
		"cpu=4,gpu=h": `gpu: "h" is not an amount, such as 8 or 512Gi`,
	} {
		if _, err := trace.Nodes(spec); err == nil || err.Error() != want {
			t.Errorf("%s: the error is %v, want %s", spec, err, want)
		}
	}
}

func TestReadNodes(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]map[string]v1.ResourceList{
		"openb_nodes.csv": {
			"n-0 ":  amounts("cpu", "32", "memory", "256Gi", "pods", "250"),
			"n-1 A": amounts("cpu", "64", "memory", "512Gi", "nvidia.com/gpu", "8", "pods", "250"),
		},
		"node_info_df.csv": {
			"node-0 A10":            amounts("cpu", "128", "nvidia.com/gpu", "4", "pods", "250"),
			"node-1 A100-SXM4-80GB": amounts("cpu", "192", "nvidia.com/gpu", "8", "pods", "250"),
		},
		"pai_machine_spec.csv": {
			"m1 V100": amounts("cpu", "96", "memory", "512Gi", "nvidia.com/gpu", "8", "pods", "250"),
			"m2 ":     amounts("cpu", "64", "memory", "256Gi", "pods", "250"),
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			nodes, err := trace.ReadNodes(file, f)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]v1.ResourceList{}
			for _, n := range nodes {
				got[n.Name+" "+n.Labels[trace.GPUModel]] = n.Status.Allocatable
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPublicTraces reads the whole of public traces, and compares sums with those of the files.
func TestPublicTraces(t *testing.T) {
	t.Parallel()
	type sums struct {
		Jobs, Pods int
		Hours      float64 // of pods
	}
	for name, tc := range map[string]struct {
		format string
		want   sums
	}{
		"lublin_256.swf":  {"swf", sums{10_000, 221_010, 581_328}},
		"openb_pods.csv":  {"openb", sums{7_099, 7_255, 58_381}},
		"philly_vc.trace": {"gavel", sums{2_000, 2_123, 285_241}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(*traces, name)
			if _, err := os.Stat(file); err != nil {
				t.Skipf("%v; -traces says where the traces are", err)
			}
			var got sums
			for _, j := range readFile(t, tc.format, file).Jobs {
				got.Jobs++
				got.Pods += j.Replicas
				got.Hours += j.Run.Hours() * float64(j.Replicas)
			}
			got.Hours = math.Round(got.Hours)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sums (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnscheduledPods asserts that pods of openb which were never scheduled are kept on request, without a run time.
func TestUnscheduledPods(t *testing.T) {
	f, err := os.ReadFile(filepath.Join("testdata", "openb_pods.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for keep, want := range map[bool][]string{
		false: {"pod-0 8m20s", "pod-1 4m50s"},
		true:  {"pod-0 8m20s", "pod-1 4m50s", "pod-3 0s"},
	} {
		got, err := trace.Read("openb", "f", bytes.NewReader(f), trace.Options{Unscheduled: keep})
		if err != nil {
			t.Fatal(err)
		}
		var jobs []string
		for _, j := range got.Jobs {
			jobs = append(jobs, fmt.Sprint(j.ID, " ", j.Run))
		}
		if diff := cmp.Diff(want, jobs); diff != "" {
			t.Error(diff)
		}
	}
}
