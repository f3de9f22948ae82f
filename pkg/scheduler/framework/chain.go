// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// The functions of extension points. A function answers a question about the model as it is at the moment of the call,
// and records nothing: actions call it as often as they like, for plans that they drop, and remember answers. What is to
// be remembered of decisions is recorded at Committed. Unless stated otherwise a function may read the whole model.

// CompareFn puts a before b when negative, after it when positive, and is indifferent at zero. The first function that
// is not indifferent decides.
type CompareFn[T any] func(a, b T) int

// TestFn answers yes or no about a job. All functions must say yes.
type TestFn func(*api.JobInfo) bool

// TaskFn answers yes or no about a task. One yes is enough.
type TaskFn func(*api.TaskInfo) bool

// ValidFn returns nil if tasks of the job may be placed, else why not. The first verdict counts; it becomes the
// condition of the PodGroup.
type ValidFn func(*api.JobInfo) *api.Verdict

// QueueFn answers yes or no about a queue with a claim. One yes is enough.
type QueueFn func(*api.QueueInfo, *api.Claim) bool

// CapFn reports whether hard caps allow a job one more request: Now, what is being deleted still counts; in the Future
// it does not. All functions must say yes.
type CapFn func(*api.JobInfo, api.Resource, api.When) bool

// FilterFn returns why no task of a signature can ever run on a node, or nil. It must read the signature and the node
// object, and nothing else: the node indexes remember answers across sessions until the node object changes.
type FilterFn func(*api.Signature, *api.NodeInfo) *api.Unfit

// PredicateFn returns why a task cannot be placed on a node that passes the filters, given the tasks that run on nodes,
// or nil. It must not check resources, which the caller does. Answers must be equal for all tasks of an equivalence
// class, so of the pod it must read nothing but what api.SignatureKey writes: no annotations, names or other labels.
type PredicateFn func(*api.TaskInfo, *api.NodeInfo, api.When) *api.Unfit

// ReserveFn reserves the external resources of a task on a node, such as volumes, or returns nil if it needs none. A
// statement calls it for tasks whose signature has external resources, after the predicates have passed, and before the
// model contains the placement. What it cannot reserve fails when the reservation is committed. The statement releases
// the reservation when it undoes the placement.
type ReserveFn func(*api.TaskInfo, *api.NodeInfo) api.ExternalReservation

// ScoreFn returns how good a node is for a task, weights included; more is better. Answers must be equal for all tasks of
// an equivalence class, so of the pod it must read nothing but what api.SignatureKey writes: no annotations, names or
// other labels. They must depend on no other node, unless the class affects or is affected by other pods.
type ScoreFn func(*api.TaskInfo, *api.NodeInfo) api.Score

// EvictionScoreFn returns how good it is that pods are evicted from a node, which frees an amount there, and the task starts
// on it, weights included; more is better.
type EvictionScoreFn func(t *api.TaskInfo, n *api.NodeInfo, freed api.Resource) api.Score

// VictimFn votes on the eviction of a unit for a claim, given what the statement contains so far. Tier by tier, one
// Reject keeps the unit from eviction, else one Permit admits it, else the next tier votes; without a Permit it is not
// evicted. A vote records nothing: it is asked in a search of candidates, whether or not the unit is evicted, and answers
// are remembered. As the statement does more for the claim, an answer may turn into Reject, and never back. Answers must
// be equal for claims of one queue, for jobs of equal priority that hold the same, and tasks of equal classes and
// priorities.
type VictimFn func(*api.Claim, api.Unit) api.Vote

// PlanFn answers yes or no about a plan as a whole; all functions must say yes. What the job and the queue of the claim
// held before is in the claim, what they hold with the plan is in the model.
type PlanFn func(*api.Claim) bool

// StartFn returns why the gang of a claim must not start, or nil. It is called before the gang is committed: the model
// contains the placements, some of which may wait for resources that are being released.
type StartFn func(*api.Claim) *api.Verdict

// ActivateFn makes what is reserved for the given job available, and reserves again what was available to the job
// before. An action calls it for each job that it serves, before it places tasks of the job, and with nil after the
// last one.
type ActivateFn func(*api.JobInfo)

// StarvationFn returns what is reserved for the current job because it has waited long, or nil. It is called when an
// action explains why the job was not placed; the first answer becomes part of the explanation.
type StarvationFn func(*api.JobInfo) *api.StarvationReservation

// DevicesFn returns what the claims of a task request, or nil. It is called when an action explains why a task with
// claims was not placed; with nearest set, the answer has the node that has the fewest devices too few. The first
// answer becomes part of the explanation.
type DevicesFn func(t *api.TaskInfo, nearest bool) *api.DeviceDemand

// CommittedFn observes a committed statement. It is called when the model contains the decisions and before Effects
// receives any of them. If held is set, a placement waits for resources: then none of the placements is bound, and
// the session undoes all of them when it closes. Evictions are carried out in any case.
type CommittedFn func(decisions []api.Decision, held bool)

// chain is one extension point of an open session: the functions that registered and are
// enabled, in configuration order.
type chain[F any] []link[F]

type link[F any] struct {
	tier   int
	plugin string
	fn     F
	// refusals is how often the answer of fn decided: no where all must say yes, yes where one is enough, Reject where
	// plugins vote. Session.Refusals reads it at the points where such an answer is a refusal.
	refusals int
}

// first returns the first answer that is not indifferent.
func first[T any](c chain[CompareFn[T]], a, b T) int {
	for i := range c {
		if n := c[i].fn(a, b); n != 0 {
			return n
		}
	}
	return 0
}

// all reports whether every function answers yes.
func all[F any](c chain[F], ask func(F) bool) bool {
	for i := range c {
		if !ask(c[i].fn) {
			c[i].refusals++
			return false
		}
	}
	return true
}

// some reports whether at least one function answers yes.
func some[F any](c chain[F], ask func(F) bool) bool {
	for i := range c {
		if ask(c[i].fn) {
			c[i].refusals++
			return true
		}
	}
	return false
}

// admits walks the tiers: one Reject is final, else one Permit in a tier admits, else the next tier votes. A unit without a
// Permit is not admitted.
func admits(c chain[VictimFn], claim *api.Claim, unit api.Unit) bool {
	for i := 0; i < len(c); {
		permitted := false
		tier := c[i].tier
		for ; i < len(c) && c[i].tier == tier; i++ {
			switch c[i].fn(claim, unit) {
			case api.Reject:
				c[i].refusals++
				return false
			case api.Permit:
				permitted = true
			}
		}
		if permitted {
			return true
		}
	}
	return false
}
