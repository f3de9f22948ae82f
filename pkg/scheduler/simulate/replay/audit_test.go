// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// TestAccounts replays random traces with evictions, cancellations and failures of nodes. After the sessions of each time it
// audits the model, and compares what the usage and the jobs count with the model.
func TestAccounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tr := randomTrace(t)
		registry, err := builtin.NewRegistry()
		if err != nil {
			t.Fatal(err)
		}
		config, err := conf.Default(registry.Catalog())
		if err != nil {
			t.Fatal(err)
		}
		nodes, err := trace.Nodes("count=3,cpu=3")
		if err != nil {
			t.Fatal(err)
		}
		config.Actions, config.StarvationAfter = []string{"allocate", "backfill", "preempt"}, 20*time.Second
		if rapid.Bool().Draw(t, "reclaim") {
			config.Actions = []string{"reclaim", "allocate", "backfill", "preempt"}
		}
		r, err := newReplay(Input{Trace: tr, Nodes: nodes, Config: config, Registry: registry},
			Options{DefaultQueue: "default", GangGrace: time.Minute, EvictionGrace: 5 * time.Second})
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
			if j.State == Completed && j.Runs == 1 && j.End != j.Start+j.Run || j.State == Completed && j.End-j.Start < j.Run+j.Lost || !j.State.Ended() {
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
	for _, j := range r.jobs {
		running := 0
		for _, p := range j.pods {
			if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
				running++
			}
		}
		if running != j.running || j.atWork != (j.state == Running) || j.atWork && running < j.Min {
			return fmt.Sprintf("job %s is %s with %d pods, and %d are counted", j.ID, j.state, running, j.running)
		}
	}
	return ""
}

func randomTrace(t *rapid.T) *trace.Trace {
	tr := &trace.Trace{}
	at := time.Duration(0)
	seconds := func(most int, label string) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * time.Second
	}
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
		}
	}
	slices.SortStableFunc(tr.Nodes, func(a, b trace.NodeEvent) int { return int(a.At - b.At) })
	for i := range 3 {
		tr.Nodes = append(tr.Nodes, trace.NodeEvent{At: at + time.Minute, Node: fmt.Sprintf("node-%05d", i), State: trace.NodeUp})
	}
	return tr
}
