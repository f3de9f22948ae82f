// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Statement is a list of decisions that is committed or undone as one. To try is cheap: place tasks, look at the
// model, RollbackTo a Mark, place others. The model contains the decisions of all open statements of a session; each of
// them must be committed or discarded before the session closes.
type Statement struct {
	ssn *Session
	ops []op
}

// op is a decision with what its task was before.
type op struct {
	api.Decision
	status api.TaskStatus
	node   *api.NodeInfo
}

// Mark is a position in a statement.
type Mark int

// Mark returns the present position, for RollbackTo.
func (s *Statement) Mark() Mark { return Mark(len(s.ops)) }

// Allocate places t on idle resources of n.
func (s *Statement) Allocate(t *api.TaskInfo, n *api.NodeInfo) {
	s.do(api.Decision{Kind: api.Allocate, Task: t, Node: n, External: s.ssn.reserveExternal(t, n)})
}

// Pipeline places t on resources of n that are being released.
func (s *Statement) Pipeline(t *api.TaskInfo, n *api.NodeInfo) {
	s.do(api.Decision{Kind: api.Pipeline, Task: t, Node: n, External: s.ssn.reserveExternal(t, n)})
}

// Evict evicts t for a job.
func (s *Statement) Evict(t *api.TaskInfo, preemptor *api.JobInfo, cause api.EvictionCause) {
	s.do(api.Decision{Kind: api.Evict, Task: t, Node: t.Node, For: preemptor, Cause: cause})
}

var statusAfter = [...]api.TaskStatus{api.Allocate: api.Allocated, api.Pipeline: api.Pipelined, api.Evict: api.Releasing}

// do carries a decision out in the model and records what its task was before. Within a session a task changes its status
// only here, where a decision is undone, and where a committed one is handed over to Effects.
func (s *Statement) do(d api.Decision) {
	s.ops = append(s.ops, op{d, d.Task.Status, d.Task.Node}) // what was there before
	s.ssn.cluster.Ledger().Place(d.Task, statusAfter[d.Kind], d.Node)
}

// undo reverts the last operation by restoring what was recorded.
func (s *Statement) undo() {
	last := s.ops[len(s.ops)-1]
	s.ops = s.ops[:len(s.ops)-1]
	last.UnreserveExternal()
	s.ssn.cluster.Ledger().Place(last.Task, last.status, last.node)
}

// RollbackTo undoes everything after m, last first.
func (s *Statement) RollbackTo(m Mark) {
	logRollback(s, m)
	s.undoTo(m)
}

func (s *Statement) undoTo(m Mark) {
	for len(s.ops) > int(m) {
		s.undo()
	}
}

// Discard undoes everything.
func (s *Statement) Discard() { s.RollbackTo(0) }

// Revoke undoes what the statement did to one task, and leaves the rest as it is.
func (s *Statement) Revoke(t *api.TaskInfo) {
	for i := range s.ops {
		if o := s.ops[i]; o.Task == t {
			s.ops = append(s.ops[:i], s.ops[i+1:]...)
			o.UnreserveExternal()
			s.ssn.cluster.Ledger().Place(t, o.status, o.node)
			return
		}
	}
}

// Decisions returns the decisions of the statement, in order.
func (s *Statement) Decisions() []api.Decision {
	decisions := make([]api.Decision, len(s.ops))
	for i := range s.ops {
		decisions[i] = s.ops[i].Decision
	}
	return decisions
}

// Commit reports the decisions at the extension point Committed and hands them over to Effects. If a placement waits for
// resources, victims are evicted and nothing is bound: the job keeps its placements until the session closes, so that
// no other job takes the resources, and is placed again in the next session.
func (s *Statement) Commit() {
	decisions := s.Decisions()
	if len(decisions) == 0 {
		return
	}
	held := s.waits()
	s.ssn.Plans().Invalidate()
	s.ssn.announceCommit(decisions, held)
	now := decisions
	if held {
		now = only(decisions, api.Evict)
		for _, o := range s.ops {
			if o.Kind != api.Evict {
				s.ssn.held = append(s.ssn.held, o)
			}
		}
	}
	if len(now) > 0 {
		s.ssn.effects.Commit(now)
		s.ssn.cluster.Ledger().Commit(now, s.ssn.Now)
	}
	s.ops = nil
}

// waits reports whether a placement is on resources that are not free yet, or belongs to a gang of which other members
// wait for such resources.
func (s *Statement) waits() bool {
	for i := range s.ops {
		if o := &s.ops[i]; o.Kind == api.Pipeline || o.Kind == api.Allocate && !s.ssn.JobReady(o.Task.Job) {
			return true
		}
	}
	return false
}

func only(decisions []api.Decision, kind api.DecisionKind) []api.Decision {
	var list []api.Decision
	for _, d := range decisions {
		if d.Kind == kind {
			list = append(list, d)
		}
	}
	return list
}
