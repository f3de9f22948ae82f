package framework

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// CompareFn puts a before b when negative, after it when positive, and has no opinion at zero.
type CompareFn[T any] func(a, b T) int

// TestFn answers yes or no about a job.
type TestFn func(*api.JobInfo) bool

// TaskFn answers yes or no about a task.
type TaskFn func(*api.TaskInfo) bool

// ValidFn returns nil when tasks of the job may be placed, else why not.
type ValidFn func(*api.JobInfo) *api.Verdict

// QueueFn answers about a queue that is to take a claim.
type QueueFn func(*api.QueueInfo, *api.Claim) bool

// CapFn tells whether hard caps allow a job one more request: Now what is being deleted still
// counts, in the Future it does not.
type CapFn func(*api.JobInfo, api.Resource, api.When) bool

// FilterFn tells why no task of a shape may ever go to a node, or nil. It may read the shape
// and the node object, and nothing else: answers are remembered until the node object changes.
type FilterFn func(*api.Signature, *api.NodeInfo) *api.Unfit

// PredicateFn tells why a task cannot go to a node given what else stands there, or nil. Room
// is not its business. Answers must be equal for all tasks of a class.
type PredicateFn func(*api.TaskInfo, *api.NodeInfo, api.When) *api.Unfit

// ReserveFn sets aside what a task takes on a node besides room, or returns nil if it takes nothing. It is asked
// about tasks whose shape looks outside of the model, once the predicates have let them through, and before
// the model shows them there. What it cannot set aside fails when the reservation is to be fulfilled.
type ReserveFn func(*api.TaskInfo, *api.NodeInfo) api.ExternalReservation

// ScoreFn says how good a node is for a task, weights included; more is better. Answers must
// be equal for all tasks of a class, and depend on no node but this one unless the class is
// social.
type ScoreFn func(*api.TaskInfo, *api.NodeInfo) api.Score

// VictimFn votes on giving up a unit for a claim, given what the statement has done so far. As it does
// more for the claim an answer may turn into Reject, and never back. Answers must be equal for
// claims of one queue, for jobs of equal priority that hold the same, and tasks of equal classes
// and priorities.
type VictimFn func(*api.Claim, api.Unit) api.Vote

// PlanFn judges a plan as a whole: Reachable before anything was done for the claim, Harmless when
// the statement contains all of it. What the claim's job and queue held before is in the claim, what
// they hold with the plan is in the model.
type PlanFn func(*api.Claim) bool

// ActivateFn makes what is reserved for a job available to it, and reserves again what was available to the job
// before; nil: no job is current.
type ActivateFn func(*api.JobInfo)

// StarvationFn returns what is reserved for the current job because it has waited long, or nil.
type StarvationFn func(*api.JobInfo) *api.StarvationReservation

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
}

// first returns the first opinion that is not indifferent.
func first[T any](c chain[CompareFn[T]], a, b T) int {
	for i := range c {
		if n := c[i].fn(a, b); n != 0 {
			return n
		}
	}
	return 0
}

// all reports whether every function says yes.
func all[F any](c chain[F], ask func(F) bool) bool {
	for i := range c {
		if !ask(c[i].fn) {
			return false
		}
	}
	return true
}

// some reports whether at least one function says yes.
func some[F any](c chain[F], ask func(F) bool) bool {
	for i := range c {
		if ask(c[i].fn) {
			return true
		}
	}
	return false
}

// admits walks the tiers: one Reject is final, else one Permit in a tier admits, else the next
// tier is asked; a unit that nobody permits stays.
func admits(c chain[VictimFn], claim *api.Claim, unit api.Unit) bool {
	for i := 0; i < len(c); {
		permitted := false
		tier := c[i].tier
		for ; i < len(c) && c[i].tier == tier; i++ {
			switch c[i].fn(claim, unit) {
			case api.Reject:
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
