package framework

import (
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// registration is the part of a session that plugins and components use while it opens.
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
	if point != always && !opening.conf.Enabled(point) {
		return
	}
	*c = append(*c, link[F]{tier: r.tier, plugin: name, fn: fn})
}

// AddJobOrderFn orders jobs of a queue. An answer may change within a session only for the job
// that has just been placed.
func (r *registration) AddJobOrderFn(name string, fn CompareFn[*api.JobInfo]) {
	register(r, &r.jobOrder, conf.JobOrder, name, fn, fn == nil)
}

// AddQueueOrderFn orders queues; it is asked before each turn, so answers may be live.
func (r *registration) AddQueueOrderFn(name string, fn CompareFn[*api.QueueInfo]) {
	register(r, &r.queueOrder, conf.QueueOrder, name, fn, fn == nil)
}

// AddTaskOrderFn orders tasks of a job; answers stand still within a session.
func (r *registration) AddTaskOrderFn(name string, fn CompareFn[*api.TaskInfo]) {
	register(r, &r.taskOrder, conf.TaskOrder, name, fn, fn == nil)
}

// AddJobValidFn refuses jobs before anything is tried; asked once, after all plugins are open.
func (r *registration) AddJobValidFn(name string, fn ValidFn) {
	register(r, &r.jobValid, always, name, fn, fn == nil)
}

// AddJobReadyFn says whether a job has all that it needs to start.
func (r *registration) AddJobReadyFn(name string, fn TestFn) {
	register(r, &r.jobReady, conf.JobReady, name, fn, fn == nil)
}

// AddJobPipelinedFn says whether a job has it once what is being released is free.
func (r *registration) AddJobPipelinedFn(name string, fn TestFn) {
	register(r, &r.jobPipelined, conf.JobPipelined, name, fn, fn == nil)
}

// AddOverusedFn says whether a queue should stand back with a claim while others wait.
func (r *registration) AddOverusedFn(name string, fn QueueFn) {
	register(r, &r.overused, always, name, fn, fn == nil)
}

// AddAllocatableFn holds queues to hard caps.
func (r *registration) AddAllocatableFn(name string, fn CapFn) {
	register(r, &r.allocatable, always, name, fn, fn == nil)
}

// AddFilterFn excludes nodes for a shape, by node object alone. It is the part of the
// predicates that is remembered across sessions, and shares their switch.
func (r *registration) AddFilterFn(name string, fn FilterFn) {
	register(r, &r.filter, conf.Predicate, name, fn, fn == nil)
}

// AddPredicateFn excludes nodes for a task.
func (r *registration) AddPredicateFn(name string, fn PredicateFn) {
	register(r, &r.predicate, conf.Predicate, name, fn, fn == nil)
}

// AddReserveFn sets aside what tasks take besides room. It shares the switch of the predicates.
func (r *registration) AddReserveFn(name string, fn ReserveFn) {
	register(r, &r.reserving, conf.Predicate, name, fn, fn == nil)
}

// AddNodeOrderFn scores nodes for a task; scores of all plugins add up.
func (r *registration) AddNodeOrderFn(name string, fn ScoreFn) {
	register(r, &r.nodeOrder, conf.NodeOrder, name, fn, fn == nil)
}

// AddPreemptableFn votes on victims within a queue.
func (r *registration) AddPreemptableFn(name string, fn VictimFn) {
	register(r, &r.preemptable, conf.Preemptable, name, fn, fn == nil)
}

// AddReclaimableFn votes on victims in other queues.
func (r *registration) AddReclaimableFn(name string, fn VictimFn) {
	register(r, &r.reclaimable, conf.Reclaimable, name, fn, fn == nil)
}

// AddNonEvictableFn names pods that nothing may evict, not even what asks no votes.
func (r *registration) AddNonEvictableFn(name string, fn TaskFn) {
	register(r, &r.nonEvictable, always, name, fn, fn == nil)
}

// AddValidatePlanFn has the last word on a plan of preempt or reclaim before it is committed.
func (r *registration) AddValidatePlanFn(name string, fn PlanFn) {
	register(r, &r.validatePlan, always, name, fn, fn == nil)
}

// AddPreFilterPlanFn tells before reclaim looks for a plan whether one is possible at all. It is a
// necessary condition, and quick: a no ends the matter, a yes means nothing.
func (r *registration) AddPreFilterPlanFn(name string, fn PlanFn) {
	register(r, &r.preFilterPlan, always, name, fn, fn == nil)
}

// AddOpenedFn is called once when all plugins are open and all jobs validated, before the first
// action: the place for what needs the usable total or the answers of other plugins.
func (r *registration) AddOpenedFn(name string, fn func()) {
	register(r, &r.opened, always, name, fn, fn == nil)
}

// AddEvictionAllowedFn holds back jobs that should not evict now.
func (r *registration) AddEvictionAllowedFn(name string, fn TestFn) {
	register(r, &r.evictionAllowed, always, name, fn, fn == nil)
}

// AddActivateReservationFn makes reserved resources available to the current job.
func (r *registration) AddActivateReservationFn(name string, fn ActivateFn) {
	register(r, &r.activateReservation, always, name, fn, fn == nil)
}

// AddStarvationReservationFn describes what is reserved for a job that has waited long.
func (r *registration) AddStarvationReservationFn(name string, fn StarvationFn) {
	register(r, &r.starvationReservation, always, name, fn, fn == nil)
}

// AddCommittedFn observes committed statements.
func (r *registration) AddCommittedFn(name string, fn CommittedFn) {
	register(r, &r.committed, always, name, fn, fn == nil)
}

// AddClosedFn is called once when the session closes, after the last action. The model still contains the placements
// that wait for resources; the session undoes them afterwards, and then calls OnSessionClose.
func (r *registration) AddClosedFn(name string, fn func()) {
	register(r, &r.closed, always, name, fn, fn == nil)
}
