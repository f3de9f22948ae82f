package framework

import (
	"cmp"
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// points are the extension points of one session.
type points struct {
	jobOrder      chain[CompareFn[*api.JobInfo]]
	queueOrder    chain[CompareFn[*api.QueueInfo]]
	taskOrder     chain[CompareFn[*api.TaskInfo]]
	jobValid      chain[ValidFn]
	jobReady      chain[TestFn]
	jobPipelined  chain[TestFn]
	overused      chain[QueueFn]
	allocatable   chain[CapFn]
	filter        chain[FilterFn]
	predicate     chain[PredicateFn]
	reserving     chain[ReserveFn]
	nodeOrder     chain[ScoreFn]
	preemptable   chain[VictimFn]
	reclaimable   chain[VictimFn]
	nonEvictable  chain[TaskFn]
	validatePlan  chain[PlanFn]
	preFilterPlan chain[PlanFn]
	opened        chain[func()]
}

// always is for extension points that have no switch in the configuration.
const always = conf.Point("")

// register appends fn to c unless the configuration switches the point off for the plugin. It
// panics on misuse, which only code can cause: RunOnce turns that into a failed cycle.
func register[F any](ssn *Session, c *chain[F], point conf.Point, name string, fn F, isNil bool) {
	opening := ssn.opening
	if opening == nil || opening.Name() != name {
		panic(fmt.Sprintf("plugin %q registers outside of its OnSessionOpen", name))
	}
	if isNil {
		panic(fmt.Sprintf("plugin %q registers a nil function", name))
	}
	if point != always && !opening.conf.Enabled(point) {
		return
	}
	*c = append(*c, link[F]{tier: ssn.openingTier, plugin: name, fn: fn})
}

// AddJobOrderFn orders jobs of a queue. An answer may change within a session only for the job
// that has just been placed.
func (ssn *Session) AddJobOrderFn(name string, fn CompareFn[*api.JobInfo]) {
	register(ssn, &ssn.jobOrder, conf.JobOrder, name, fn, fn == nil)
}

// AddQueueOrderFn orders queues; it is asked before each turn, so answers may be live.
func (ssn *Session) AddQueueOrderFn(name string, fn CompareFn[*api.QueueInfo]) {
	register(ssn, &ssn.queueOrder, conf.QueueOrder, name, fn, fn == nil)
}

// AddTaskOrderFn orders tasks of a job; answers stand still within a session.
func (ssn *Session) AddTaskOrderFn(name string, fn CompareFn[*api.TaskInfo]) {
	register(ssn, &ssn.taskOrder, conf.TaskOrder, name, fn, fn == nil)
}

// AddJobValidFn refuses jobs before anything is tried; asked once, after all plugins are open.
func (ssn *Session) AddJobValidFn(name string, fn ValidFn) {
	register(ssn, &ssn.jobValid, always, name, fn, fn == nil)
}

// AddJobReadyFn says whether a job has all that it needs to start.
func (ssn *Session) AddJobReadyFn(name string, fn TestFn) {
	register(ssn, &ssn.jobReady, conf.JobReady, name, fn, fn == nil)
}

// AddJobPipelinedFn says whether a job has it once what is being released is free.
func (ssn *Session) AddJobPipelinedFn(name string, fn TestFn) {
	register(ssn, &ssn.jobPipelined, conf.JobPipelined, name, fn, fn == nil)
}

// AddOverusedFn says whether a queue should stand back with a claim while others wait.
func (ssn *Session) AddOverusedFn(name string, fn QueueFn) {
	register(ssn, &ssn.overused, always, name, fn, fn == nil)
}

// AddAllocatableFn holds queues to hard caps.
func (ssn *Session) AddAllocatableFn(name string, fn CapFn) {
	register(ssn, &ssn.allocatable, always, name, fn, fn == nil)
}

// AddFilterFn excludes nodes for a shape, by node object alone. It is the part of the
// predicates that is remembered across sessions, and shares their switch.
func (ssn *Session) AddFilterFn(name string, fn FilterFn) {
	register(ssn, &ssn.filter, conf.Predicate, name, fn, fn == nil)
}

// AddPredicateFn excludes nodes for a task.
func (ssn *Session) AddPredicateFn(name string, fn PredicateFn) {
	register(ssn, &ssn.predicate, conf.Predicate, name, fn, fn == nil)
}

// AddReserveFn sets aside what tasks take besides room. It shares the switch of the predicates.
func (ssn *Session) AddReserveFn(name string, fn ReserveFn) {
	register(ssn, &ssn.reserving, conf.Predicate, name, fn, fn == nil)
}

// AddNodeOrderFn scores nodes for a task; scores of all plugins add up.
func (ssn *Session) AddNodeOrderFn(name string, fn ScoreFn) {
	register(ssn, &ssn.nodeOrder, conf.NodeOrder, name, fn, fn == nil)
}

// AddPreemptableFn votes on victims within a queue.
func (ssn *Session) AddPreemptableFn(name string, fn VictimFn) {
	register(ssn, &ssn.preemptable, conf.Preemptable, name, fn, fn == nil)
}

// AddReclaimableFn votes on victims in other queues.
func (ssn *Session) AddReclaimableFn(name string, fn VictimFn) {
	register(ssn, &ssn.reclaimable, conf.Reclaimable, name, fn, fn == nil)
}

// AddNonEvictableFn names pods that nothing may evict, not even what asks no votes.
func (ssn *Session) AddNonEvictableFn(name string, fn TaskFn) {
	register(ssn, &ssn.nonEvictable, always, name, fn, fn == nil)
}

// AddValidatePlanFn has the last word on a plan of preempt or reclaim before it is committed.
func (ssn *Session) AddValidatePlanFn(name string, fn PlanFn) {
	register(ssn, &ssn.validatePlan, always, name, fn, fn == nil)
}

// AddPreFilterPlanFn tells before reclaim looks for a plan whether one is possible at all. It is a
// necessary condition, and quick: a no ends the matter, a yes means nothing.
func (ssn *Session) AddPreFilterPlanFn(name string, fn PlanFn) {
	register(ssn, &ssn.preFilterPlan, always, name, fn, fn == nil)
}

// AddOpenedFn is called once when all plugins are open and all jobs validated, before the first
// action: the place for what needs the usable total or the answers of other plugins.
func (ssn *Session) AddOpenedFn(name string, fn func()) {
	register(ssn, &ssn.opened, always, name, fn, fn == nil)
}

// CompareJobs orders jobs: plugins first, then creation time, then id. It is never zero for
// two jobs.
func (ssn *Session) CompareJobs(a, b *api.JobInfo) int {
	if n := first(ssn.jobOrder, a, b); n != 0 {
		return n
	}
	if n := cmp.Compare(a.Created, b.Created); n != 0 {
		return n
	}
	return cmp.Compare(a.Key+"/"+string(a.ID), b.Key+"/"+string(b.ID))
}

// CompareQueues orders queues as plugins do; zero leaves it to the caller.
func (ssn *Session) CompareQueues(a, b *api.QueueInfo) int { return first(ssn.queueOrder, a, b) }

// CompareTasks orders tasks: plugins first, then creation time, then namespace and name.
func (ssn *Session) CompareTasks(a, b *api.TaskInfo) int {
	if n := first(ssn.taskOrder, a, b); n != 0 {
		return n
	}
	return api.CompareAge(a.Created, b.Created, a.Key, b.Key)
}

// JobReady tells whether the job has all that it needs to start.
func (ssn *Session) JobReady(j *api.JobInfo) bool {
	return all(ssn.jobReady, func(fn TestFn) bool { return fn(j) })
}

// JobPipelined tells whether the job has it once what is being released is free.
func (ssn *Session) JobPipelined(j *api.JobInfo) bool {
	return all(ssn.jobPipelined, func(fn TestFn) bool { return fn(j) })
}

// Overused tells whether the queue should stand back with the claim while others wait.
func (ssn *Session) Overused(q *api.QueueInfo, claim *api.Claim) bool {
	return some(ssn.overused, func(fn QueueFn) bool { return fn(q, claim) })
}

// Allocatable tells whether hard caps allow the job one more request.
func (ssn *Session) Allocatable(j *api.JobInfo, request api.Resource, when api.When) bool {
	for i := range ssn.allocatable {
		if !ssn.allocatable[i].fn(j, request, when) {
			return false
		}
	}
	return true
}

// Filter returns why no task of the shape may ever go to the node, or nil.
func (ssn *Session) Filter(s *api.Signature, n *api.NodeInfo) *api.Unfit {
	for i := range ssn.filter {
		if unfit := ssn.filter[i].fn(s, n); unfit != nil {
			return unfit
		}
	}
	return nil
}

// Predicate returns why the task cannot go to a node that passed Filter, room aside, or nil.
func (ssn *Session) Predicate(t *api.TaskInfo, n *api.NodeInfo, when api.When) *api.Unfit {
	for i := range ssn.predicate {
		if unfit := ssn.predicate[i].fn(t, n, when); unfit != nil {
			return unfit
		}
	}
	return nil
}

// reserveExternal sets aside what the task takes on the node besides room; nothing for most tasks.
func (ssn *Session) reserveExternal(t *api.TaskInfo, n *api.NodeInfo) []api.ExternalReservation {
	if !t.Signature.HasExternalResources() {
		return nil
	}
	var reservations []api.ExternalReservation
	for i := range ssn.reserving {
		if r := ssn.reserving[i].fn(t, n); r != nil {
			reservations = append(reservations, r)
		}
	}
	return reservations
}

// NodeScore sums the plugins' scores.
func (ssn *Session) NodeScore(t *api.TaskInfo, n *api.NodeInfo) api.Score {
	var sum api.Score
	for i := range ssn.nodeOrder {
		sum += ssn.nodeOrder[i].fn(t, n)
	}
	return sum
}

// Preemptable tells whether a unit may be evicted for a claim of the same queue.
func (ssn *Session) Preemptable(claim *api.Claim, unit api.Unit) bool {
	return admits(ssn.preemptable, claim, unit)
}

// Reclaimable tells whether a unit may be evicted for a claim of another queue.
func (ssn *Session) Reclaimable(claim *api.Claim, unit api.Unit) bool {
	return admits(ssn.reclaimable, claim, unit)
}

// NonEvictable tells whether nothing may evict the task.
func (ssn *Session) NonEvictable(t *api.TaskInfo) bool {
	return some(ssn.nonEvictable, func(fn TaskFn) bool { return fn(t) })
}

// PreFilterPlan tells whether evictions from other queues could ever make the claim fit.
func (ssn *Session) PreFilterPlan(claim *api.Claim) bool {
	return all(ssn.preFilterPlan, func(fn PlanFn) bool { return fn(claim) })
}

// ValidatePlan tells whether a plan for the claim, which the statement has carried out, may be
// committed.
func (ssn *Session) ValidatePlan(claim *api.Claim) bool {
	return all(ssn.validatePlan, func(fn PlanFn) bool { return fn(claim) })
}
