// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// TestAccounts replays random traces with evictions, cancellations and failures of nodes. After the sessions of each time it
// audits the model, and compares what the usage and the jobs count with the model.
func TestAccounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tr := randomTrace(t)
		in, err := newInput(tr, "count=3,cpu=3,nvidia.com/gpu=4")
		if err != nil {
			t.Fatal(err)
		}
		config := in.Config
		config.Actions, config.StarvationAfter = []string{"allocate", "backfill", "preempt"}, 20*time.Second
		if rapid.Bool().Draw(t, "reclaim") {
			config.Actions = []string{"reclaim", "allocate", "backfill", "preempt"}
		}
		r, err := newReplay(in, Options{
			DefaultQueue: "default", GangGrace: time.Minute, EvictionGrace: 5 * time.Second, Record: true,
			StartDelay: seconds(t, 3, "start delay"), Checkpoint: seconds(t, 10, "checkpoint"),
		})
		if err != nil {
			t.Fatal(err)
		}
		last := time.Duration(-1)
		r.Progress = func(p Progress) {
			if p.At < last {
				t.Fatalf("the clock is set back from %v to %v", last, p.At)
			}
			last = p.At
			if complaint := compareWithModel(r); complaint != "" {
				t.Fatalf("at %v: %s", p.At, complaint)
			}
		}
		if err := r.play(t.Context()); err != nil {
			t.Fatal(err)
		}
		result := r.result()
		for i := range result.Jobs {
			j := &result.Jobs[i]
			if j.State == Completed && j.Runs == 1 && j.End != j.Start+j.Run || j.State == Completed && (j.Kept != j.Run || j.End-j.Start < j.Run+j.Lost) || !j.State.Ended() {
				t.Fatalf("a job has not ended after its runs: %+v", j)
			}
		}
		if left := len(r.cluster.Tasks()) + len(r.cluster.Jobs()) + len(r.pods); left > 0 || r.usage.held[0] != 0 {
			t.Fatalf("%d objects and %v CPUs are left after the last job", left, r.usage.held[0])
		}
	})
}

// compareWithModel returns what is wrong; empty if nothing is.
func compareWithModel(r *replay) string {
	if err := audit.Model(r.cluster); err != nil {
		return err.Error()
	}
	var held float64
	for _, task := range r.cluster.Tasks() {
		if task.Node != nil {
			held += task.Pod.Spec.Containers[0].Resources.Requests.Cpu().AsApproximateFloat64()
		}
	}
	if held != r.usage.held[0] {
		return fmt.Sprintf("pods hold %v CPUs, and %v are counted", held, r.usage.held[0])
	}
	states := map[State]int{}
	free := map[string]int64{}
	for _, n := range r.cluster.Nodes() {
		if n != nil && n.Node != nil {
			free[n.Node.Name] = gpus(n.Node.Status.Allocatable)
		}
	}
	for _, task := range r.cluster.Tasks() {
		if task.Node != nil {
			free[task.Node.Node.Name] -= gpus(task.Pod.Spec.Containers[0].Resources.Requests)
		}
	}
	if !maps.Equal(free, r.recorder.free) {
		return fmt.Sprintf("nodes have free GPUs %v, and %v are counted", free, r.recorder.free)
	}
	for i, least := range freeSteps {
		nodes := 0
		for _, n := range free {
			if n >= least {
				nodes++
			}
		}
		if nodes != r.recorder.counts[i] {
			return fmt.Sprintf("%d nodes have %d GPUs free, and %d are counted", nodes, least, r.recorder.counts[i])
		}
	}
	for _, j := range r.jobs {
		states[j.state]++
		running := 0
		for _, p := range j.pods {
			if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
				running++
			}
		}
		if running != j.running || j.atWork != (j.state == Running) || j.atWork && running < j.Gang() {
			return fmt.Sprintf("job %s is %s with %d pods, and %d are counted", j.ID, j.state, running, j.running)
		}
	}
	for _, state := range []State{Pending, Running, Completed, Cancelled} {
		queued := 0
		for _, q := range r.recorder.shares.queues {
			queued += q.jobs[state]
		}
		if states[state] != r.recorder.jobs[state] || states[state] != queued {
			return fmt.Sprintf("%d jobs are %s, and %d are counted, %d in queues", states[state], state, r.recorder.jobs[state], queued)
		}
	}
	return ""
}

// seconds draws a time.
func seconds(t *rapid.T, most int, label string) time.Duration {
	return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * time.Second
}

// nodeOfTrace adds, changes or removes a node that only the trace has.
func nodeOfTrace(t *rapid.T, at time.Duration) trace.NodeEvent {
	e := trace.NodeEvent{At: at, Node: "x", State: rapid.SampledFrom([]trace.NodeState{trace.NodeUp, trace.NodeCordon, trace.NodeDown}).Draw(t, "state of x")}
	amount := func(most int, label string) resource.Quantity {
		return *resource.NewQuantity(int64(rapid.IntRange(0, most).Draw(t, label)), resource.DecimalSI)
	}
	e.Allocatable = v1.ResourceList{v1.ResourceCPU: amount(4, "CPUs of x"), trace.GPU: amount(8, "GPUs of x"), v1.ResourcePods: resource.MustParse("10")}
	return e
}

func randomTrace(t *rapid.T) *trace.Trace {
	tr := &trace.Trace{}
	at := time.Duration(0)
	seconds := func(most int, label string) time.Duration { return seconds(t, most, label) }
	for i := range rapid.IntRange(1, 25).Draw(t, "jobs") {
		at += seconds(15, "pause")
		least := rapid.IntRange(1, 5).Draw(t, "min")
		cpus := resource.NewQuantity(int64(1+i%3/2), resource.DecimalSI) // 1, 1, 2
		if least > 3 {
			cpus = resource.NewQuantity(1, resource.DecimalSI)
		}
		job := trace.Job{
			ID: strconv.Itoa(i), Queue: []string{"", "a", "b"}[rapid.IntRange(0, 2).Draw(t, "queue")], Submit: at, Run: seconds(60, "run"),
			Min: least, Replicas: least + rapid.IntRange(0, 2).Draw(t, "surplus"), Priority: int32(rapid.IntRange(0, 2).Draw(t, "priority")),
			Request: v1.ResourceList{v1.ResourceCPU: *cpus},
		}
		if rapid.Bool().Draw(t, "GPU") {
			job.Request[trace.GPU] = *resource.NewQuantity(1, resource.DecimalSI)
		}
		if least < 3 && rapid.Bool().Draw(t, "role") {
			job.Roles = []trace.Role{{Pods: 1, Request: v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(1, resource.DecimalSI)}}}
		}
		tr.Jobs = append(tr.Jobs, job)
		switch rapid.IntRange(0, 9).Draw(t, "event") {
		case 0:
			tr.Cancels = append(tr.Cancels, trace.Cancel{At: at + seconds(40, "cancelled after"), Job: job.ID})
		case 1:
			node := fmt.Sprintf("node-%05d", rapid.IntRange(0, 2).Draw(t, "node"))
			state := []trace.NodeState{trace.NodeDown, trace.NodeCordon}[rapid.IntRange(0, 1).Draw(t, "state")]
			down := at + seconds(5, "down after")
			tr.Nodes = append(tr.Nodes, trace.NodeEvent{At: down, Node: node, State: state})
			// Events of one node may overlap; in the end all are up.
			tr.Nodes = append(tr.Nodes, trace.NodeEvent{At: down + seconds(30, "down for") + time.Second, Node: node, State: trace.NodeUp})
		case 2:
			tr.Nodes = append(tr.Nodes, nodeOfTrace(t, at))
		case 3:
			tr.Record.Pods = append(tr.Record.Pods, trace.Pod{
				At: at, Node: rapid.SampledFrom([]string{"x", "node-00001"}).Draw(t, "node of a pod"), Run: seconds(30, "run of a pod"),
				Request: v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(1, resource.DecimalSI), trace.GPU: *resource.NewQuantity(1, resource.DecimalSI)},
			})
		}
	}
	slices.SortStableFunc(tr.Nodes, func(a, b trace.NodeEvent) int { return int(a.At - b.At) })
	for i := range 3 {
		tr.Nodes = append(tr.Nodes, trace.NodeEvent{At: at + time.Minute, Node: fmt.Sprintf("node-%05d", i), State: trace.NodeUp})
	}
	return tr
}
