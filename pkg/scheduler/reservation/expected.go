// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// ExpectedName is the name of the component that reserves resources for pods that are expected.
const ExpectedName = "expected"

// Expected registers the policy that a gang starts only if the rest of spec.minResources is available too, and that the
// rest stays reserved for a time: pods that come later, such as the executors that a driver creates, find resources then.
// The rest is what spec.minResources requests besides the pods of the gang. Without a duration in the configuration the
// component does nothing.
func Expected() framework.ComponentSpec {
	return framework.ComponentSpec{Name: ExpectedName, New: func(env framework.Environment) (framework.Plugin, framework.Action) {
		e := &expectations{keep: env.Configuration.Expect, byJob: map[api.JobID]*expectation{}}
		if e.keep > 0 {
			e.restore(env.Cluster)
		}
		return e, nil
	}}
}

// expectation is what a gang that has started expects. It ends
//
//   - when the pods of the group hold all of spec.minResources;
//   - when so much time has passed since the start;
//   - when the gang has lost members that it needs.
type expectation struct {
	since      time.Time // zero if it is not known
	parts      []part    // that were chosen last
	generation uint64    // of the job then

	// The rest belongs to the session that is open.
	job  *api.JobInfo
	held *api.Reservation // nil while the resources are available to the current job
}

// part is what is reserved on a node.
type part struct {
	node   string
	amount api.Resource
}

// expectations are those of all gangs that have started, from session to session.
type expectations struct {
	keep  time.Duration
	byJob map[api.JobID]*expectation

	// The rest belongs to the session that is open.
	ssn  *framework.Session
	open []*expectation
}

func (*expectations) Name() string { return ExpectedName }

func (e *expectations) OnSessionOpen(ssn *framework.Session) {
	if e.keep == 0 {
		return
	}
	e.ssn = ssn
	ssn.AddOpenedFn(ExpectedName, e.holdAll)
	ssn.AddStartableFn(ExpectedName, e.startable)
	ssn.AddEvictionAllowedFn(ExpectedName, e.evictionAllowed)
	ssn.AddCommittedFn(ExpectedName, e.committed)
	ssn.AddReservationFns(ExpectedName, framework.ReservationFns{Activate: e.activate})
	ssn.AddClosedFn(ExpectedName, e.close)
}

func (e *expectations) OnSessionClose(*framework.Session) {
	*e = expectations{keep: e.keep, byJob: e.byJob}
}

// restore finds the gangs that an earlier scheduler process has started. Those whose time has passed end with the first
// session.
func (e *expectations) restore(c api.ClusterView) {
	for id, j := range c.Jobs() {
		if j.MinResources != nil && j.Holding() > 0 {
			e.byJob[id] = &expectation{since: firstScheduled(j)}
		}
	}
}

// firstScheduled returns when the first of the pods was bound that a job has, as their conditions say; zero if none has
// the condition.
func firstScheduled(j *api.JobInfo) (first time.Time) {
	for _, t := range j.Tasks {
		for _, condition := range t.Pod.Status.Conditions {
			at := condition.LastTransitionTime.Time
			if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionTrue && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first
}

// holdAll reserves what the last session had reserved at its end, and forgets expectations that have ended. More is reserved
// only when a job is activated: nominations, which have reserved by then what they need, count on what is being released.
func (e *expectations) holdAll() {
	for _, id := range slices.Sorted(maps.Keys(e.byJob)) {
		one := e.byJob[id]
		if one.since.IsZero() {
			one.since = e.ssn.Now
		}
		one.job = e.ssn.Cluster().Jobs()[id]
		until := one.since.Add(e.keep)
		if one.job == nil || one.job.Queue == nil || !e.ssn.Now.Before(until) || !e.ssn.JobReady(one.job) || e.rest(one.job) == nil {
			delete(e.byJob, id)
			continue
		}
		e.ssn.WakeAt(until)
		e.open = append(e.open, one)
		e.reserve(one)
	}
}

// rest returns what spec.minResources requests besides what the pods of the job hold or will hold; nil if nothing.
func (e *expectations) rest(j *api.JobInfo) api.Resource { return e.restWithout(j, j.Allocated) }

func (e *expectations) restWithout(j *api.JobInfo, held api.Resource) (rest api.Resource) {
	for d, n := range j.MinResources {
		if left := n - held.At(d); left > 0 && e.ssn.Cluster().Dims().Shared(d) {
			if rest == nil {
				rest = make(api.Resource, len(j.MinResources))
			}
			rest[d] = left
		}
	}
	return rest
}

// startable keeps a gang from starting whose rest is not available, or not within the caps of its queue.
func (e *expectations) startable(claim *api.Claim) *api.Verdict {
	j := claim.Job
	rest := e.rest(j)
	if rest == nil {
		return nil
	}
	q := j.Queue
	v := &api.Verdict{Expected: true, Name: string(q.ID), Dimension: -1, Detail: "requested by spec.minResources for pods that are expected"}
	if d := q.CapAllows(rest, api.Now); d >= 0 {
		v.Reason, v.Dimension, v.Limit, v.Held, v.Asked = v1alpha1.ReasonQueueFull, d, q.Capability[d], q.Allocated.At(d), rest[d]
		return v
	}
	if !e.ssn.Allocatable(j, rest, api.Now) {
		v.Reason, v.Borrowed = v1alpha1.ReasonOverShare, q.Reclaimable
		return v
	}
	found := sum(e.choose(j, rest, nil))
	for d, n := range rest {
		if available := found.At(d); available < n {
			v.Reason, v.Dimension, v.Asked, v.Held = v1alpha1.ReasonNotEnoughResources, d, n, available
			return v
		}
	}
	return nil
}

// evictionAllowed keeps a gang from evicting to start if more than its pods is expected: victims are evicted for pods only,
// and would end for nothing if the rest is not available afterwards.
func (e *expectations) evictionAllowed(j *api.JobInfo) bool {
	if j.MinResources == nil || e.ssn.JobPipelined(j) {
		return true
	}
	held := j.Allocated.Clone()
	for _, t := range worklist.Needed(j, e.ssn.WaitingTasks(j)) {
		held.Add(t.Request)
	}
	return e.restWithout(j, held) == nil
}

// committed notices that a gang starts: a statement binds all the pods of it that hold resources.
func (e *expectations) committed(decisions []api.Decision, held bool) {
	if held {
		return
	}
	var job *api.JobInfo
	binds := int32(0)
	for _, d := range decisions {
		if d.Kind == api.Allocate {
			job = d.Task.Job
			binds++
		}
	}
	if job == nil || job.MinResources == nil || e.byJob[job.ID] != nil || job.Holding() != binds || e.rest(job) == nil {
		return
	}
	one := &expectation{since: e.ssn.Now, job: job}
	e.byJob[job.ID] = one
	e.open = append(e.open, one)
	e.ssn.WakeAt(one.since.Add(e.keep))
}

// activate makes what is reserved for the current job available.
func (e *expectations) activate(current *api.JobInfo) {
	for _, one := range e.open {
		if current != nil && mayUse(e.ssn, current, one.job) {
			e.release(one)
		} else {
			e.hold(one)
		}
	}
}

// hold reserves what is expected, as far as it is available. It chooses nodes again if what pods of the job hold has changed.
func (e *expectations) hold(one *expectation) {
	if one.generation != one.job.Generation {
		e.release(one)
		one.generation, one.parts = one.job.Generation, e.choose(one.job, e.rest(one.job), one.parts)
	}
	if one.held == nil {
		e.reserve(one)
	}
}

// reserve reserves the parts of an expectation on nodes that exist.
func (e *expectations) reserve(one *expectation) {
	var parts []api.ReservedPart
	for _, p := range one.parts {
		if n := e.ssn.Cluster().Node(p.node); n != nil {
			parts = append(parts, api.ReservedPart{Node: n, Amount: p.amount})
		}
	}
	one.held = e.ssn.ReserveParts(one.job, parts)
}

func (e *expectations) release(one *expectation) {
	if one.held != nil {
		e.ssn.Unreserve(one.held)
		one.held = nil
	}
}

// close ends the reservations of the session.
func (e *expectations) close() {
	for _, one := range e.open {
		e.release(one)
		one.job = nil
	}
}
