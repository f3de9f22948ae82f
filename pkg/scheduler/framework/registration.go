// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// registration is the part of a session that plugins and components use while it opens: one method for each extension
// point. The type of the function is the contract of the point. All functions are called by the scheduling goroutine
// between OnSessionOpen and OnSessionClose of the session that they were registered with.
type registration struct {
	points

	// opening is the plugin whose OnSessionOpen runs; nil otherwise.
	opening *configured
	tier    int
}

// always is for extension points that have no switch in the configuration.
const always = conf.Point("")

// register appends fn to c unless the configuration switches the point off for the plugin. It
// panics on misuse, which only code can cause: RunOnce turns that into a failed cycle.
func register[F any](r *registration, c *chain[F], point conf.Point, name string, fn F, isNil bool) {
	opening := r.opening
	if opening == nil || opening.Name() != name {
		panic(fmt.Sprintf("plugin %q registers outside of its OnSessionOpen", name))
	}
	if isNil {
		panic(fmt.Sprintf("plugin %q registers a nil function", name))
	}
	if point != always && !r.Enabled(point) {
		return
	}
	if *c == nil { // most points have few functions: one allocation serves them
		*c = make(chain[F], 0, 4)
	}
	*c = append(*c, link[F]{tier: r.tier, plugin: name, fn: fn})
}

// Enabled reports whether the configuration lets the plugin that opens register at a point with a switch. Plugins need
// it only for what belongs to such a point: a function that is registered at a point that is switched off is ignored.
func (r *registration) Enabled(point conf.Point) bool { return r.opening.conf.Enabled(point) }

// AddOpenedFn registers a function that is called once when all plugins and components are open and all jobs are
// validated, before the first action. It may read everything, the usable total and the answers of other plugins
// included.
func (r *registration) AddOpenedFn(name string, fn func()) {
	register(r, &r.opened, always, name, fn, fn == nil)
}

// AddCommittedFn registers a function that observes committed statements.
func (r *registration) AddCommittedFn(name string, fn CommittedFn) {
	register(r, &r.committed, always, name, fn, fn == nil)
}

// AddClosedFn registers a function that is called once when the session closes, after the last action. The model still
// contains the placements that wait for resources; the session undoes them afterwards, and then calls OnSessionClose.
func (r *registration) AddClosedFn(name string, fn func()) {
	register(r, &r.closed, always, name, fn, fn == nil)
}

// AddJobOrderFn registers an order of the jobs of a queue. Actions call it whenever they choose a job. An answer may
// change within a session only for the job that has just been placed.
func (r *registration) AddJobOrderFn(name string, fn CompareFn[*api.JobInfo]) {
	register(r, &r.jobOrder, conf.JobOrder, name, fn, fn == nil)
}

// AddQueueOrderFn registers an order of queues. Actions call it each time they choose a queue, so that answers may
// depend on what queues hold now.
func (r *registration) AddQueueOrderFn(name string, fn CompareFn[*api.QueueInfo]) {
	register(r, &r.queueOrder, conf.QueueOrder, name, fn, fn == nil)
}

// AddTaskOrderFn registers an order of the tasks of a job. Answers must not change within a session.
func (r *registration) AddTaskOrderFn(name string, fn CompareFn[*api.TaskInfo]) {
	register(r, &r.taskOrder, conf.TaskOrder, name, fn, fn == nil)
}

// AddJobValidFn registers a check of jobs. It is called once for each waiting job when all plugins are open. A verdict
// keeps all actions from placing tasks of the job in this session.
func (r *registration) AddJobValidFn(name string, fn ValidFn) {
	register(r, &r.jobValid, always, name, fn, fn == nil)
}

// AddJobReadyFn registers a function that reports whether a job has all that it needs to start. Tasks of a job that is
// not ready are not bound.
func (r *registration) AddJobReadyFn(name string, fn TestFn) {
	register(r, &r.jobReady, conf.JobReady, name, fn, fn == nil)
}

// AddJobPipelinedFn registers a function that reports whether a job has all that it needs once the resources are free
// that are being released. Actions then place no more of its gang.
func (r *registration) AddJobPipelinedFn(name string, fn TestFn) {
	register(r, &r.jobPipelined, conf.JobPipelined, name, fn, fn == nil)
}

// AddOverusedFn registers a function that reports whether a queue should wait with a claim while other queues have
// claims. If one function says so, allocate serves the claim in its second pass, and reclaim does not serve it.
func (r *registration) AddOverusedFn(name string, fn QueueFn) {
	register(r, &r.overused, always, name, fn, fn == nil)
}

// AddAllocatableFn registers a hard cap. If one function says no, no action places the request.
func (r *registration) AddAllocatableFn(name string, fn CapFn) {
	register(r, &r.allocatable, always, name, fn, fn == nil)
}

// AddFilterFn registers a filter of nodes for a pod signature that reads the node object alone. It shares the switch of
// the predicates.
func (r *registration) AddFilterFn(name string, fn FilterFn) {
	register(r, &r.filter, conf.Predicate, name, fn, fn == nil)
}

// AddPredicateFn registers a filter of nodes for a task that may read which tasks run on the nodes, and the signature of
// the task: answers are equal for all tasks of an equivalence class.
func (r *registration) AddPredicateFn(name string, fn PredicateFn) {
	register(r, &r.predicate, conf.Predicate, name, fn, fn == nil)
}

// AddReserveFn registers a function that reserves external resources for placements. It shares the switch of the
// predicates.
func (r *registration) AddReserveFn(name string, fn ReserveFn) {
	register(r, &r.reserving, conf.Predicate, name, fn, fn == nil)
}

// AddNodeOrderFn registers a score of nodes for a task. Scores of all plugins are added; the highest sum is best. Of the
// task it may read the signature: scores are equal for all tasks of an equivalence class.
func (r *registration) AddNodeOrderFn(name string, fn ScoreFn) {
	register(r, &r.nodeOrder, conf.NodeOrder, name, fn, fn == nil)
}

// AddPreemptableFn registers a vote on victims within the queue of a claim.
func (r *registration) AddPreemptableFn(name string, fn VictimFn) {
	register(r, &r.preemptable, conf.Preemptable, name, fn, fn == nil)
}

// AddReclaimableFn registers a vote on victims in other queues.
func (r *registration) AddReclaimableFn(name string, fn VictimFn) {
	register(r, &r.reclaimable, conf.Reclaimable, name, fn, fn == nil)
}

// AddNonEvictableFn registers a function that names pods which must not be evicted. Only actions
// that evict without votes call it.
func (r *registration) AddNonEvictableFn(name string, fn TaskFn) {
	register(r, &r.nonEvictable, always, name, fn, fn == nil)
}

// AddEvictionAllowedFn registers a function that is called before an action searches for victims for a job. If one
// function says no, the job does not evict in this session; a function that says no for a time calls WakeAt.
func (r *registration) AddEvictionAllowedFn(name string, fn TestFn) {
	register(r, &r.evictionAllowed, always, name, fn, fn == nil)
}

// PlanFns are the functions of a plugin for plans with evictions. Each may be nil.
type PlanFns struct {
	// PreFilter is a quick necessary condition for plans of reclaim. It is called before reclaim searches for victims, and the
	// model contains nothing of the plan. If one function says no, there is no search.
	PreFilter PlanFn
	// Score decides between nodes for a task where the victims have the same highest priority, and are as many gangs and pods.
	// The scores of all plugins are added, and the highest sum is best. It shares the switch of AddNodeOrderFn.
	Score EvictionScoreFn
	// Validate is a check of plans of preempt. It is called when the model contains all of the plan. If one function says no,
	// the plan is undone.
	Validate PlanFn
}

// AddPlanFns registers functions for plans with evictions.
func (r *registration) AddPlanFns(name string, fns PlanFns) {
	if fns.PreFilter != nil {
		register(r, &r.preFilterPlan, always, name, fns.PreFilter, false)
	}
	if fns.Score != nil {
		register(r, &r.evictionScore, conf.NodeOrder, name, fns.Score, false)
	}
	if fns.Validate != nil {
		register(r, &r.validatePlan, always, name, fns.Validate, false)
	}
}

// ReservationFns are the functions of a plugin that reserves resources for jobs.
type ReservationFns struct {
	// Activate makes what is reserved for the current job available to it.
	Activate ActivateFn
	// Describe describes what is reserved for a job because it has waited long. It may be nil.
	Describe StarvationFn
	// Skip is called before allocate tries a job. It returns true if the gang certainly cannot be placed, whatever is
	// reserved, and Unplaced would do nothing. It may be nil.
	Skip TestFn
	// Unplaced is called in the order in which allocate serves jobs with each one whose gang it could not place. What it
	// reserves counts for the jobs that follow. It returns true if the gang is to be tried once more. It may be nil.
	Unplaced TestFn
}

// AddReservationFns registers the functions of a plugin that reserves resources for jobs.
func (r *registration) AddReservationFns(name string, fns ReservationFns) {
	register(r, &r.activateReservation, always, name, fns.Activate, fns.Activate == nil)
	if fns.Describe != nil {
		register(r, &r.starvationReservation, always, name, fns.Describe, false)
	}
	if fns.Skip != nil {
		register(r, &r.skip, always, name, fns.Skip, false)
	}
	if fns.Unplaced != nil {
		register(r, &r.unplaced, always, name, fns.Unplaced, false)
	}
}

// AddStartableFn registers a check of gangs whose tasks have nodes. A verdict keeps the gang from starting.
func (r *registration) AddStartableFn(name string, fn StartFn) {
	register(r, &r.startable, always, name, fn, fn == nil)
}

// AddDevicesFn registers a function that describes the devices that a task requests. It shares the switch of the
// predicates.
func (r *registration) AddDevicesFn(name string, fn DevicesFn) {
	register(r, &r.devices, conf.Predicate, name, fn, fn == nil)
}
