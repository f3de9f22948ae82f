// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// TestOnlyChangedNodesAreExamined counts calls of filters in a cluster of 100 nodes with 4 cpu, after the index has
// answered all questions for a pod with 2 cpu once.
func TestOnlyChangedNodesAreExamined(t *testing.T) {
	t.Parallel()
	type calls struct{ filtered, predicated int }
	for name, test := range map[string]struct {
		change func(*model.Cluster)
		want   calls
	}{
		"nothing changes":         {func(*model.Cluster) {}, calls{}},
		"an equal pod starts":     {func(c *model.Cluster) { c.Events().SetPod(Pod("other", 2, On("n7"))) }, calls{predicated: 1}},
		"a foreign pod starts":    {func(c *model.Cluster) { c.Events().SetPod(Pod("other", 1, On("n7"), foreign)) }, calls{predicated: 1}},
		"a node fills up":         {func(c *model.Cluster) { c.Events().SetPod(Pod("other", 3, On("n7"), foreign)) }, calls{}},
		"a node object changes":   {func(c *model.Cluster) { c.Events().SetNode(Node("n7", 5)) }, calls{filtered: 1, predicated: 1}},
		"a node is added":         {func(c *model.Cluster) { c.Events().SetNode(Node("n100", 4)) }, calls{filtered: 1, predicated: 1}},
		"a node is deleted":       {func(c *model.Cluster) { c.Events().DeleteNode("n7") }, calls{}},
		"an equal pod is created": {func(c *model.Cluster) { c.Events().SetPod(Pod("other", 2)) }, calls{}},
		"another pod is created":  {func(c *model.Cluster) { c.Events().SetPod(Pod("other", 1)) }, calls{filtered: 100}},
		"a node fails the filter": {func(c *model.Cluster) { c.Events().SetNode(Node("n7", 4, labelled("broken", "yes"))) }, calls{filtered: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NewCluster()
			for i := range 100 {
				c.Events().SetNode(Node(fmt.Sprintf("n%d", i), 4))
			}
			c.Events().SetPod(Pod("p", 2))
			index := New(c, c.Dims())
			ask := func() calls {
				f := open(index, c)
				defer index.Close()
				task := c.Tasks()["p"]
				claim := api.NewClaim(task.Job, task.Job.Tasks)
				index.Feasible(task.Signature)
				index.CapacityCount(task.Signature)
				index.CouldFit(task.Job)
				index.Available(claim)
				index.Insufficient(claim, api.CPU)
				index.Releasing()
				index.Count(task)
				index.KnownAvailable(task)
				return calls{f.filtered, f.predicated}
			}
			allowed := cmp.AllowUnexported(calls{})
			if diff := cmp.Diff(calls{100, 100}, ask(), allowed); diff != "" {
				t.Errorf("calls at first (-want +got):\n%s", diff)
			}
			test.change(c)
			if diff := cmp.Diff(test.want, ask(), allowed); diff != "" {
				t.Errorf("calls after the change (-want +got):\n%s", diff)
			}
		})
	}
}

// TestVerdictsAreDroppedWhenUnused keeps the verdicts for a task as long as each session asks for them.
func TestVerdictsAreDroppedWhenUnused(t *testing.T) {
	t.Parallel()
	c := NewCluster()
	c.Events().SetNode(Node("n", 4))
	c.Events().SetPod(Pod("p", 2))
	index := New(c, c.Dims())
	task := c.Tasks()["p"]
	var got []bool
	for _, counts := range []bool{false, true, true, false, false, true} {
		open(index, c)
		got = append(got, index.KnownAvailable(task) != nil)
		if counts {
			index.Count(task)
		}
		index.Close()
	}
	// KnownAvailable uses the verdicts, too, so that they stay once Count has been called.
	if diff := cmp.Diff([]bool{false, false, true, true, true, true}, got); diff != "" {
		t.Errorf("known in each session (-want +got):\n%s", diff)
	}
	open(index, c)
	index.Close() // without a question
	open(index, c)
	if index.KnownAvailable(task) != nil {
		t.Error("the verdicts are known, although the session before did not use them")
	}
}

// TestReasonsDoNotAccumulate gives two of three nodes ever new taints, while a task waits.
func TestReasonsDoNotAccumulate(t *testing.T) {
	t.Parallel()
	c := NewCluster()
	c.Events().SetNode(Node("full", 1))
	c.Events().SetPod(Pod("p", 2))
	index := New(c, c.Dims())
	task := c.Tasks()["p"]
	for i := range 100 {
		for j, name := range []string{"a", "b"} {
			c.Events().SetNode(Node(name, 4, labelled("tainted", fmt.Sprint(i+j))))
		}
		open(index, c)
		want := []api.UnfitCount{
			{Unfit: api.Unfit{Reason: api.Insufficient, Detail: "cpu", Plugin: api.RefusedByResources}, Count: 1},
			{Unfit: api.Unfit{Reason: api.Taint, Detail: fmt.Sprint(i)}, Count: 1},
			{Unfit: api.Unfit{Reason: api.Taint, Detail: fmt.Sprint(i + 1)}, Count: 1},
		}
		less := func(a, b api.UnfitCount) bool { return a.Detail < b.Detail }
		if diff := cmp.Diff(want, index.Count(task).Unfit, cmpopts.SortSlices(less)); diff != "" {
			t.Fatalf("round %d (-want +got):\n%s", i, diff)
		}
		index.Close()
	}
	if kept := len(index.verdicts.known[verdictKey{task.Signature, task.Priority, 0, nil, nil}].refusals); kept > 5 {
		t.Errorf("%d reasons are kept", kept)
	}
}

// TestClosedSessionsAreNotKept: an index lives for long, and sessions are large.
func TestClosedSessionsAreNotKept(t *testing.T) {
	t.Parallel()
	c := NewCluster()
	index := New(c, c.Dims())
	session := weak.Make(open(index, c))
	index.Close()
	runtime.GC()
	if session.Value() != nil {
		t.Error("the index keeps a closed session from garbage collection")
	}
	runtime.KeepAlive(index)
}
