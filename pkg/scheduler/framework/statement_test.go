// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// trial is a session in which tasks are placed and evicted at random.
type trial struct {
	c     *model.Cluster
	ssn   *Session
	stmt  *Statement
	tasks []*api.TaskInfo
}

func newTrial(t *rapid.T) *trial {
	tr := &trial{c: NewCluster()}
	for i := range 3 {
		tr.c.Events().SetNode(Node(fmt.Sprintf("n%d", i), 4))
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "pods") {
		changes := []func(*v1.Pod){}
		if rapid.Bool().Draw(t, "runs") {
			changes = append(changes, On(fmt.Sprintf("n%d", i%3)), func(p *v1.Pod) { p.Status.Phase = v1.PodRunning })
		}
		p := Pod(fmt.Sprintf("p%d", i), 1+i%2, changes...)
		tr.c.Events().SetPod(p)
		tr.tasks = append(tr.tasks, tr.c.Tasks()[api.TaskID(p.UID)])
	}
	tr.ssn, _ = open(t, profileOf(t, nil), tr.c)
	tr.stmt = tr.ssn.Statement()
	return tr
}

// step does one thing that the present state allows.
func (tr *trial) step(t *rapid.T) {
	task := rapid.SampledFrom(tr.tasks).Draw(t, "task")
	n := tr.c.Node(fmt.Sprintf("n%d", rapid.IntRange(0, 2).Draw(t, "node")))
	switch {
	case task.Waiting() && rapid.Bool().Draw(t, "pipeline"):
		tr.stmt.Pipeline(task, n)
	case task.Waiting():
		tr.stmt.Allocate(task, n)
	case task.Status == api.Running:
		tr.stmt.Evict(task, tr.tasks[0].Job, api.Preempted)
	}
}

func (tr *trial) dump(t *rapid.T) string {
	if err := audit.Model(tr.c); err != nil {
		t.Fatal(err)
	}
	return audit.Dump(tr.c)
}

// Rolling back to any mark restores the model of that moment, whatever was done since.
func TestRollbackRestoresTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTrial(t)
		type point struct {
			mark Mark
			dump string
		}
		points := []point{{tr.stmt.Mark(), tr.dump(t)}}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "roll back") == 0 {
				i := rapid.IntRange(0, len(points)-1).Draw(t, "to")
				tr.stmt.RollbackTo(points[i].mark)
				if diff := cmp.Diff(points[i].dump, tr.dump(t)); diff != "" {
					t.Fatalf("after the roll back (-before +after):\n%s", diff)
				}
				points = points[:i+1]
				continue
			}
			tr.step(t)
			points = append(points, point{tr.stmt.Mark(), tr.dump(t)})
		}
		tr.stmt.Discard()
		if diff := cmp.Diff(points[0].dump, tr.dump(t)); diff != "" {
			t.Fatalf("after Discard (-before +after):\n%s", diff)
		}
	})
}

// Revoking one decision leaves what the others alone would have made.
func TestRevokeLeavesTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTrial(t)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			tr.step(t)
		}
		decisions := tr.stmt.Decisions()
		if len(decisions) == 0 {
			return
		}
		out := rapid.IntRange(0, len(decisions)-1).Draw(t, "revoked")
		tr.stmt.Revoke(decisions[out].Task)
		got := tr.dump(t)
		tr.stmt.Discard()
		for i, d := range decisions {
			if i != out {
				tr.stmt.do(d)
			}
		}
		if diff := cmp.Diff(tr.dump(t), got); diff != "" {
			t.Fatalf("after Revoke (-without +revoked):\n%s", diff)
		}
		tr.stmt.Discard()
	})
}

// Closing the session undoes what was held for gangs that wait; evictions stand until they are
// answered.
func TestCloseUndoesWhatIsHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTrial(t)
		before := tr.dump(t)
		var evicted []api.TaskID
		for range rapid.IntRange(1, 4).Draw(t, "statements") {
			waits := false
			for range rapid.IntRange(1, 4).Draw(t, "steps") {
				tr.step(t)
			}
			for _, d := range tr.stmt.Decisions() {
				waits = waits || d.Kind == api.Pipeline
			}
			if waits {
				for _, d := range only(tr.stmt.Decisions(), api.Evict) {
					evicted = append(evicted, d.Task.ID)
				}
				tr.stmt.Commit()
			} else {
				tr.stmt.Discard()
			}
			tr.stmt = tr.ssn.Statement()
		}
		tr.ssn.Close()
		for _, id := range evicted {
			tr.c.Ledger().EvictionFailed(id)
		}
		tr.c.Events().Recompute()
		if diff := cmp.Diff(before, tr.dump(t)); diff != "" {
			t.Fatalf("after Close (-before +after):\n%s", diff)
		}
	})
}

func TestCommit(t *testing.T) {
	cases := map[string]struct {
		given     func(s *Statement, c *model.Cluster)
		committed []string
		during    string // status of task p after the commit
		after     string // status of task p after the session
	}{
		"nothing decided": {
			given:  func(*Statement, *model.Cluster) {},
			during: "Pending", after: "Pending",
		},
		"an allocation is bound": {
			given:     func(s *Statement, c *model.Cluster) { s.Allocate(c.Tasks()["p"], c.Node("n")) },
			committed: []string{"allocate p n"},
			during:    "Binding", after: "Binding",
		},
		"a gang goes in one call": {
			given: func(s *Statement, c *model.Cluster) {
				s.Allocate(c.Tasks()["p"], c.Node("n"))
				s.Allocate(c.Tasks()["q"], c.Node("m"))
			},
			committed: []string{"allocate p n, allocate q m"},
			during:    "Binding", after: "Binding",
		},
		"nothing is bound while a member waits for resources": {
			given: func(s *Statement, c *model.Cluster) {
				s.Allocate(c.Tasks()["p"], c.Node("n"))
				s.Pipeline(c.Tasks()["q"], c.Node("m"))
			},
			during: "Allocated", after: "Pending",
		},
		"victims are evicted immediately, and the preemptor waits": {
			given: func(s *Statement, c *model.Cluster) {
				s.Evict(c.Tasks()["v"], c.Tasks()["p"].Job, api.Preempted)
				s.Pipeline(c.Tasks()["p"], c.Node("m"))
			},
			committed: []string{"evict v m"},
			during:    "Pipelined", after: "Pending",
		},
		"what was rolled back is not committed": {
			given: func(s *Statement, c *model.Cluster) {
				s.Allocate(c.Tasks()["q"], c.Node("m"))
				mark := s.Mark()
				s.Allocate(c.Tasks()["p"], c.Node("n"))
				s.RollbackTo(mark)
			},
			committed: []string{"allocate q m"},
			during:    "Pending", after: "Pending",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := NewCluster()
			c.Events().SetNode(Node("n", 4))
			c.Events().SetNode(Node("m", 4))
			c.Events().SetPod(Pod("p", 1))
			c.Events().SetPod(Pod("q", 1))
			victim := Pod("v", 1)
			victim.Spec.NodeName, victim.Status.Phase = "m", v1.PodRunning
			c.Events().SetPod(victim)
			ssn, e := open(t, profileOf(t, nil), c)
			stmt := ssn.Statement()
			tc.given(stmt, c)
			stmt.Commit()
			if diff := cmp.Diff(tc.committed, e.committed); diff != "" {
				t.Errorf("committed (-want +got):\n%s", diff)
			}
			if got := c.Tasks()["p"].Status.String(); got != tc.during {
				t.Errorf("p is %s after the commit, want %s", got, tc.during)
			}
			stmt.Discard() // what is committed is committed
			ssn.Close()
			if got := c.Tasks()["p"].Status.String(); got != tc.after {
				t.Errorf("p is %s after the session, want %s", got, tc.after)
			}
			if err := audit.Model(c); err != nil {
				t.Error(err)
			}
		})
	}
}
