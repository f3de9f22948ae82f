// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

func TestRunTimeOfAJob(t *testing.T) {
	annotation := func(value string) podChange { return annotated(v1alpha1.AnnotationMaximumExecutionTime, value) }
	kueue := func(value string) podChange { return withLabel("kueue.x-k8s.io/max-exec-time-seconds", value) }
	cases := map[string]struct {
		group   int32 // maximum of the group; 0: none
		pods    [][]podChange
		want    time.Duration
		invalid string
	}{
		"nothing declared, so that of the queue": {0, [][]podChange{{}}, 100 * time.Second, ""},
		"group":                                  {60, [][]podChange{{annotation("50")}, {withDeadline(40)}}, time.Minute, ""},
		"the longest annotation":                 {0, [][]podChange{{annotation("50")}, {annotation("70")}, {}}, 70 * time.Second, ""},
		"annotation before the label of Kueue":   {0, [][]podChange{{annotation("50"), kueue("60")}}, 50 * time.Second, ""},
		"the longest deadline":                   {0, [][]podChange{{withDeadline(30)}, {withDeadline(40)}}, 40 * time.Second, ""},
		"a pod without deadline":                 {0, [][]podChange{{withDeadline(30)}, {}}, 100 * time.Second, ""},
		"a pod without deadline that has ended":  {0, [][]podChange{{withDeadline(30)}, {inPhase(v1.PodSucceeded)}}, 30 * time.Second, ""},
		"an annotation that is no number": {
			0, [][]podChange{{annotation("x")}}, 100 * time.Second,
			`pod ns/p0: the annotation scheduling.batch-scheduler.dev/max-exec-time-seconds is "x", not a positive number of seconds`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			q := aQueue("q")
			q.Spec.ExecutionTime = &v1alpha1.QueueExecutionTime{Default: new(int32(100))}
			g := aGroup("g", "q", 1)
			if tc.group > 0 {
				g.Spec.MaximumExecutionTimeSeconds = &tc.group
			}
			c.Events().SetPodGroup(g)
			for i, changes := range tc.pods {
				c.Events().SetPod(aPod("p"+string(rune('0'+i)), append(changes, inGroup("g"))...))
			}
			c.Events().Recompute()
			c.Events().SetQueue(q)
			c.Events().Recompute()
			j := c.Jobs()["group/ns/g"]
			if got := j.RunTime.Maximum; got != tc.want || j.Tracking.InvalidRunTime != tc.invalid {
				t.Errorf("got %s, want %s; invalid %q, want %q", got, tc.want, j.Tracking.InvalidRunTime, tc.invalid)
			}
		})
	}
}

// TestAQueueChangesTheRunTimeOfItsJobs: without a default its maximum counts.
func TestAQueueChangesTheRunTimeOfItsJobs(t *testing.T) {
	c := newTestCluster()
	q := aQueue("q")
	c.Events().SetQueue(q)
	c.Events().SetPod(aPod("p", withLabel(v1alpha1.LabelQueue, "q")))
	for _, step := range []struct {
		of   *v1alpha1.QueueExecutionTime
		want time.Duration
	}{
		{&v1alpha1.QueueExecutionTime{Default: new(int32(10)), Maximum: new(int32(20))}, 10 * time.Second},
		{&v1alpha1.QueueExecutionTime{Maximum: new(int32(20))}, 20 * time.Second},
		{nil, 0},
	} {
		q = q.DeepCopy()
		q.Spec.ExecutionTime = step.of
		c.Events().SetQueue(q)
		c.Events().Recompute()
		if got := c.Tasks()["uid-p"].Job.RunTime.Maximum; got != step.want {
			t.Errorf("got %s, want %s", got, step.want)
		}
	}
}

// TestStartOfAGang: it starts with the last of minMember pods, and has the same start in a model that is built later.
func TestStartOfAGang(t *testing.T) {
	at := func(seconds int) int64 { return dawn.Add(time.Duration(seconds) * time.Second).UnixNano() }
	cases := map[string]struct {
		pods [][]podChange
		want int64
	}{
		"one of two":                    {[][]podChange{{on("n"), startedAt(5)}, {}}, 0},
		"two of two":                    {[][]podChange{{on("n"), startedAt(5)}, {on("n"), startedAt(7)}}, at(7)},
		"a surplus pod":                 {[][]podChange{{on("n"), startedAt(9)}, {on("n"), startedAt(5)}, {on("n"), startedAt(7)}}, at(7)},
		"one has succeeded":             {[][]podChange{{on("n"), startedAt(5), inPhase(v1.PodSucceeded)}, {on("n"), startedAt(7)}}, at(7)},
		"one has failed":                {[][]podChange{{on("n"), startedAt(5), inPhase(v1.PodFailed)}, {on("n"), startedAt(7)}}, 0},
		"the API server shows the bind": {[][]podChange{{on("n"), startedAt(5), scheduledAt(3)}, {on("n"), scheduledAt(4)}}, at(4)},
		"unknown starts":                {[][]podChange{{on("n")}, {on("n"), startedAt(3)}}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetQueue(aQueue("default"))
			c.Events().SetNode(aNode("n", "cpu", "4"))
			c.Events().SetPodGroup(aGroup("g", "", 2))
			for i, changes := range tc.pods {
				c.Events().SetPod(aPod("p"+string(rune('0'+i)), append(changes, inGroup("g"))...))
			}
			c.Events().Recompute()
			if got := c.Jobs()["group/ns/g"].Started; got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// TestABindStartsAPod: the start of a bind in flight is its commit, also in the next model, until the API server shows it.
func TestABindStartsAPod(t *testing.T) {
	now := dawn.Add(time.Hour)
	c := newTestCluster()
	c.Events().SetNode(aNode("n", "cpu", "4"))
	c.Events().SetPod(aPod("p"))
	c.Events().Recompute()
	task := c.Tasks()["uid-p"]
	c.Ledger().Place(task, api.Allocated, c.Node("n"))
	c.Ledger().Commit([]api.Decision{{Kind: api.Allocate, Task: task, Node: c.Node("n")}}, now)
	c.Events().Recompute()
	next := model.NewCluster(model.Options{SchedulerNames: []string{ourScheduler}, DefaultQueue: "default", InFlight: c.InFlight()})
	next.Events().SetNode(aNode("n", "cpu", "4"))
	next.Events().SetPod(aPod("p"))
	next.Events().Recompute()
	for name, c := range map[string]*model.Cluster{"this model": c, "the next model": next} {
		if got := c.Tasks()["uid-p"].Job.Started; got != now.UnixNano() {
			t.Errorf("%s: started at %d, want %d", name, got, now.UnixNano())
		}
	}
	before := c.Generations()
	c.Events().SetPod(aPod("p", on("n"), scheduledAt(60)))
	c.Events().Recompute()
	if got, want := c.Tasks()["uid-p"].Job.Started, dawn.Add(time.Minute).UnixNano(); got != want {
		t.Errorf("once the API server shows the bind, started at %d, want %d", got, want)
	}
	if c.Generations() == before {
		t.Error("the generations did not change")
	}
}

// TestAStartChangesTheModelIfItCounts: heartbeats of kubelets that begin to run pods do not make sessions necessary, unless
// an end is counted from them.
func TestAStartChangesTheModelIfItCounts(t *testing.T) {
	cases := map[string]struct {
		given []podChange
		want  bool
	}{
		"no limit":     {nil, false},
		"deadline":     {[]podChange{withDeadline(60)}, true},
		"other limit":  {[]podChange{annotated(v1alpha1.AnnotationMaximumExecutionTime, "60")}, true},
		"known before": {[]podChange{annotated(v1alpha1.AnnotationMaximumExecutionTime, "60"), scheduledAt(3)}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetNode(aNode("n", "cpu", "4"))
			c.Events().SetPod(aPod("p", append(tc.given, on("n"))...))
			c.Events().Recompute()
			before := c.Generations()
			c.Events().SetPod(aPod("p", append(tc.given, on("n"), startedAt(5))...))
			if got := c.Generations() != before; got != tc.want {
				t.Errorf("changed: %t, want %t", got, tc.want)
			}
		})
	}
}
