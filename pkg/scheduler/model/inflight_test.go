// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// TestResultsWhileThePodIsNotInTheModel rebuilds the model with an operation in flight. The rebuilt model does not have the
// objects when the result arrives, and gets them afterwards.
func TestResultsWhileThePodIsNotInTheModel(t *testing.T) {
	t.Parallel()
	bind := func(c *model.Cluster) {
		c.Ledger().Place(c.Tasks()["uid-pending"], api.Allocated, c.Node("n"))
		c.Ledger().AssumePod(c.Tasks()["uid-pending"], dawn)
	}
	evict := func(c *model.Cluster) { c.Ledger().MarkEvicting(c.Tasks()["uid-bound"]) }
	backOff := func(c *model.Cluster) { c.Ledger().SetBackoff("group/ns/g", "no volume") }
	for name, test := range map[string]struct {
		given  func(*model.Cluster)
		result func(model.Ledger)
		want   string
	}{
		"the bind has no result":     {bind, func(model.Ledger) {}, "Binding Bound admissible: true"},
		"the bind fails":             {bind, func(l model.Ledger) { l.BindFailed("uid-pending", "why") }, "Pending Bound admissible: true"},
		"another bind fails":         {bind, func(l model.Ledger) { l.BindFailed("uid-other", "why") }, "Binding Bound admissible: true"},
		"the eviction has no result": {evict, func(model.Ledger) {}, "Pending Releasing admissible: true"},
		"the eviction fails":         {evict, func(l model.Ledger) { l.EvictionFailed("uid-bound") }, "Pending Bound admissible: true"},
		"the backoff lasts":          {backOff, func(model.Ledger) {}, "Pending Bound admissible: false"},
		"the backoff ends":           {backOff, func(l model.Ledger) { l.SetBackoff("group/ns/g", "") }, "Pending Bound admissible: true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apply := func(c *model.Cluster) {
				c.Events().SetQueue(aQueue("default"))
				c.Events().SetNode(aNode("n", "cpu", "4"))
				c.Events().SetPodGroup(aGroup("g", "", 1))
				c.Events().SetPod(aPod("pending", inGroup("g")))
				c.Events().SetPod(aPod("bound", inGroup("g"), on("n")))
				c.Events().Recompute()
			}
			before := newTestCluster()
			apply(before)
			test.given(before)
			c := model.NewCluster(model.Options{SchedulerNames: []string{ourScheduler}, DefaultQueue: "default", InFlight: before.InFlight()})
			test.result(c.Ledger())
			apply(c)
			admissible := c.Admissible(c.Jobs()["group/ns/g"]) == nil
			if got := fmt.Sprint(c.Tasks()["uid-pending"].Status, " ", c.Tasks()["uid-bound"].Status, " admissible: ", admissible); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if err := audit.Model(c); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCommitRecordsAllBeforeItChangesSums lets the sums of the first task panic, and compares what is recorded for the model
// that replaces the broken one.
func TestCommitRecordsAllBeforeItChangesSums(t *testing.T) {
	t.Parallel()
	c := newTestCluster()
	c.Events().SetQueue(aQueue("default"))
	c.Events().SetNode(aNode("n", "cpu", "4"))
	var decisions []api.Decision
	for _, name := range []string{"bound-a", "bound-b"} {
		c.Events().SetPod(aPod(name, on("n")))
		decisions = append(decisions, api.Decision{Kind: api.Evict, Task: c.Tasks()[api.TaskID("uid-"+name)], Node: c.Node("n")})
	}
	for _, name := range []string{"pending-a", "pending-b"} {
		c.Events().SetPod(aPod(name))
		task := c.Tasks()[api.TaskID("uid-"+name)]
		c.Ledger().Place(task, api.Allocated, c.Node("n"))
		decisions = append(decisions, api.Decision{Kind: api.Allocate, Task: task, Node: c.Node("n")})
	}
	decisions[0].Task.Signature = nil
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Commit does not panic, so the test proves nothing")
			}
		}()
		c.Ledger().Commit(decisions, dawn)
	}()
	recorded := c.InFlight()
	if diff := cmp.Diff([]api.TaskID{"uid-bound-a", "uid-bound-b"}, sortedKeys(recorded.Evictions())); diff != "" {
		t.Errorf("evictions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]api.TaskID{"uid-pending-a", "uid-pending-b"}, sortedKeys(recorded.Binds())); diff != "" {
		t.Errorf("binds (-want +got):\n%s", diff)
	}
}

// TestBindsNameTheGroupThatExists replaces a group by another of its name between two binds: the second is recorded for the
// new one.
func TestBindsNameTheGroupThatExists(t *testing.T) {
	t.Parallel()
	c := newTestCluster()
	c.Events().SetQueue(aQueue("default"))
	c.Events().SetNode(aNode("n", "cpu", "4"))
	g := aGroup("g", "default", 1)
	var got []types.UID
	for _, pod := range []string{"a", "b"} {
		g = g.DeepCopy()
		g.UID = types.UID("group-of-" + pod)
		c.Events().SetGroup(api.OwnGroup(g))
		c.Events().SetPod(aPod(pod, inGroup("g")))
		c.Events().Recompute()
		task := c.Tasks()[api.TaskID("uid-"+pod)]
		task.Node = c.Node("n")
		c.Ledger().AssumePod(task, dawn)
		got = append(got, task.Tracking.Bind.GroupUID)
	}
	if diff := cmp.Diff([]types.UID{"group-of-a", "group-of-b"}, got); diff != "" {
		t.Error(diff)
	}
}
