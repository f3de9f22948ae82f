// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"strings"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestSkippedJobsDelayWhatBorrows asserts that a job that is refused as before keeps its place among the jobs that wait for
// the second pass of allocate. The queues a and b hold equal parts of what they deserve, and both would borrow what c cannot
// use.
func TestSkippedJobsDelayWhatBorrows(t *testing.T) {
	c := New(t, BuiltIn(t), Given(
		Node("n", "9cpu"), Queue("a", 1), Queue("b", 1), Queue("c", 3),
		Group("a/holds", 1, Running(1, "2cpu", "n")), Group("b/holds-too", 1, Running(1, "2cpu", "n")),
		Group("c/small", 1, Running(5, "1cpu", "n")), Group("c/large", 1, Pending(1, "3cpu")),
		Group("a/old", 1, Pending(1, "1cpu")),
		Group("b/young", 1, Pending(1, "1cpu")),
		Group("a/youngest", 1, Pending(1, "5cpu", Priority(1))),
	))
	if got := c.Cycle(); strings.Contains(got, "bind") {
		t.Fatalf("the cluster is full, got %q", got)
	}
	c.Delete("c/small-0")
	if got, want := c.Cycle(), "bind b/young-0 n"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSurplusOfJobsThatAnActionHasStarted asserts that allocate places the surplus of a gang that an action before it has
// started, and that has lost its job class by that.
func TestSurplusOfJobsThatAnActionHasStarted(t *testing.T) {
	registry := BuiltIn(t)
	start := orderAction(func(ssn *framework.Session) {
		for _, j := range ssn.Jobs() {
			if j.Ready() {
				continue
			}
			stmt := ssn.Statement()
			stmt.Allocate(ssn.WaitingTasks(j)[0], ssn.Cluster().Node("n"))
			stmt.Commit()
		}
	})
	if err := registry.AddAction(start); err != nil {
		t.Fatal(err)
	}
	c := New(t, registry, Given(Node("n", "2cpu"), Queue("q", 1), Group("q/g", 1, Pending(2, "1cpu"))),
		WithConfig(strings.Replace(conf.DefaultYAML(), `"allocate, backfill"`, `"order, allocate"`, 1)))
	if got, want := c.Cycle(), "bind q/g-0 n\nbind q/g-1 n"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
