// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Decision is one operation that the scheduler decides: a placement or an eviction.
type Decision struct {
	Kind DecisionKind
	Task *TaskInfo
	Node *NodeInfo // of Allocate and Pipeline
	// For is the job for which a victim is evicted, and Cause is why.
	For   *JobInfo
	Cause EvictionCause
	// External are reservations of a placement besides resources of its node; empty for most.
	External []ExternalReservation
}

// ExternalReservation is something that a placement takes besides resources of its node, such as volumes. It is held from
// the decision on. The holder of the decision uses it from one goroutine at a time.
type ExternalReservation interface {
	// Commit does what must be done before the task may be bound, and returns when that has taken effect, which
	// may take minutes. An error describes what is missing, and the caller then calls Release.
	Commit(ctx context.Context) error
	// Release releases what is held, including what was committed if the task is not bound after all.
	Release()
}

// UnreserveExternal releases what the decision holds besides resources of the node.
func (d *Decision) UnreserveExternal() {
	for _, r := range d.External {
		r.Release()
	}
}

// EvictionCause is why a pod is evicted.
type EvictionCause int8

const (
	Preempted    EvictionCause = iota // for a job of its own queue
	Reclaimed                         // for a job of another queue, which deserves the resources
	GangDegraded                      // its gang is incomplete and keeps another from starting
	Overran                           // its job has exceeded its limit
)

var causeNames = [...]string{"preempted", "reclaimed", "gang-degraded", "overran"}

func (c EvictionCause) String() string { return causeNames[c] }

// Reason returns the reason of conditions and events about the eviction.
func (c EvictionCause) Reason() string {
	switch c {
	case Reclaimed:
		return v1alpha1.EvictedByReclaim
	case GangDegraded:
		return v1alpha1.ReasonGangDegraded
	case Overran:
		return v1alpha1.EvictedByOverrun
	}
	return v1alpha1.EvictedByPreemption
}

// EvictionCauses lists all causes.
func EvictionCauses() []EvictionCause {
	return []EvictionCause{Preempted, Reclaimed, GangDegraded, Overran}
}

// DecisionKind names what a decision does.
type DecisionKind int8

const (
	Allocate DecisionKind = iota // place on idle resources: will be bound
	Pipeline                     // place on resources that are being released
	Evict
)

var decisionNames = [...]string{"allocate", "pipeline", "evict"}

func (k DecisionKind) String() string { return decisionNames[k] }

// Claim is what a job requests in one attempt.
type Claim struct {
	Job   *JobInfo
	Tasks []*TaskInfo
	// Request is the sum of the ShareRequest of Tasks.
	Request Resource
	// JobHeld and QueueHeld are what the job and its queue held before the attempt: the statement
	// raises the live sums task by task.
	JobHeld, QueueHeld Resource
}

// NewClaim sums up tasks.
func NewClaim(job *JobInfo, tasks []*TaskInfo) *Claim {
	c := &Claim{Job: job, Tasks: tasks, JobHeld: job.Allocated.Clone()}
	if job.Queue != nil {
		c.QueueHeld = job.Queue.Allocated.Clone()
	}
	for _, t := range tasks {
		c.Request.Add(t.ShareRequest)
	}
	return c
}

// Unit is what may be evicted together: one surplus pod, a part of a gang that it does not need, or all the rest of a gang.
type Unit struct {
	Job   *JobInfo
	Tasks []*TaskInfo
	// Request is the sum of the ShareRequest of Tasks.
	Request Resource
	// Whole marks all that is left of a gang, even if that is one pod.
	Whole bool
}

// NewUnit sums up tasks.
func NewUnit(job *JobInfo, tasks []*TaskInfo) Unit {
	u := Unit{Job: job, Tasks: tasks}
	for _, t := range tasks {
		u.Request.Add(t.ShareRequest)
	}
	return u
}

// SurplusUnit returns the unit of surplus in which t may be evicted if some members of its job are gone, and whether there
// is one: t alone, or the smallest part of the gang that has t and is not needed.
func SurplusUnit(t *TaskInfo, gone ...*TaskInfo) (Unit, bool) {
	tasks := surplusUnit(t, gone)
	if tasks == nil {
		return Unit{}, false
	}
	return NewUnit(t.Job, tasks), true
}

// HeldOn returns what the unit holds on a node.
func (u *Unit) HeldOn(n *NodeInfo) Resource {
	if len(u.Tasks) == 1 {
		return u.Tasks[0].Request
	}
	var sum Resource
	for _, t := range u.Tasks {
		if t.Node == n {
			sum.Add(t.Request)
		}
	}
	return sum
}

// Vote is a plugin's answer on the eviction of a unit. The zero value is Abstain.
type Vote int8

const (
	Abstain Vote = iota
	Permit
	Reject
)

var voteNames = [...]string{"Abstain", "Permit", "Reject"}

func (v Vote) String() string { return voteNames[v] }
