// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// points are the extension points of one session.
type points struct {
	jobOrder              chain[CompareFn[*api.JobInfo]]
	queueOrder            chain[CompareFn[*api.QueueInfo]]
	taskOrder             chain[CompareFn[*api.TaskInfo]]
	jobValid              chain[ValidFn]
	jobReady              chain[TestFn]
	jobPipelined          chain[TestFn]
	overused              chain[QueueFn]
	allocatable           chain[CapFn]
	filter                chain[FilterFn]
	predicate             chain[PredicateFn]
	reserving             chain[ReserveFn]
	nodeOrder             chain[ScoreFn]
	startable             chain[StartFn]
	activateReservation   chain[ActivateFn]
	starvationReservation chain[StarvationFn]
	skip                  chain[TestFn]
	unplaced              chain[TestFn]
	devices               chain[DevicesFn]
	opened                chain[func()]
	committed             chain[CommittedFn]
	closed                chain[func()]

	evictionPoints

	unfits api.Attributed // of Filter and Predicate
}

// CompareJobs orders jobs: plugins first, then creation time, then namespace and name, then id. It is never zero for
// two jobs.
func (p *points) CompareJobs(a, b *api.JobInfo) int {
	if n := first(p.jobOrder, a, b); n != 0 {
		return n
	}
	return api.CompareJobAge(a, b)
}

// CompareQueues orders queues as plugins do; zero leaves it to the caller.
func (p *points) CompareQueues(a, b *api.QueueInfo) int { return first(p.queueOrder, a, b) }

// CompareTasks orders the tasks of a job: plugins first, then the index of the pods, then creation time, then namespace and
// name.
func (p *points) CompareTasks(a, b *api.TaskInfo) int {
	if n := first(p.taskOrder, a, b); n != 0 {
		return n
	}
	if n := api.CompareRank(a, b); n != 0 {
		return n
	}
	return api.CompareAge(a.Created, b.Created, a.Key, b.Key)
}

// JobReady reports whether the job has all that it needs to start.
func (p *points) JobReady(j *api.JobInfo) bool {
	return all(p.jobReady, func(fn TestFn) bool { return fn(j) })
}

// JobPipelined reports whether the job has it once the resources are free that are being released.
func (p *points) JobPipelined(j *api.JobInfo) bool {
	return all(p.jobPipelined, func(fn TestFn) bool { return fn(j) })
}

// Overused reports whether the queue should wait with the claim while other queues have claims.
func (p *points) Overused(q *api.QueueInfo, claim *api.Claim) bool {
	return some(p.overused, func(fn QueueFn) bool { return fn(q, claim) })
}

// Allocatable reports whether hard caps allow the job one more request.
func (p *points) Allocatable(j *api.JobInfo, request api.Resource, when api.When) bool {
	return p.CappedBy(j, request, when) == ""
}

// CappedBy returns the plugin whose hard cap does not allow the job one more request; empty if all allow it.
func (p *points) CappedBy(j *api.JobInfo, request api.Resource, when api.When) string {
	for i := range p.allocatable {
		if !p.allocatable[i].fn(j, request, when) {
			return p.allocatable[i].plugin
		}
	}
	return ""
}

// Filter returns why no task of the signature can ever run on the node, or nil.
func (p *points) Filter(s *api.Signature, n *api.NodeInfo) *api.Unfit {
	for i := range p.filter {
		if unfit := p.filter[i].fn(s, n); unfit != nil {
			return p.unfits.To(p.filter[i].plugin, unfit)
		}
	}
	return nil
}

// Feasible reports whether Filter returns nil.
func (p *points) Feasible(s *api.Signature, n *api.NodeInfo) bool {
	for i := range p.filter {
		if p.filter[i].fn(s, n) != nil {
			return false
		}
	}
	return true
}

// Predicate returns why the task cannot be placed on a node that passed Filter, or nil. It does not check resources.
func (p *points) Predicate(t *api.TaskInfo, n *api.NodeInfo, when api.When) *api.Unfit {
	for i := range p.predicate {
		if unfit := p.predicate[i].fn(t, n, when); unfit != nil {
			return p.unfits.To(p.predicate[i].plugin, unfit)
		}
	}
	return nil
}

// reserveExternal reserves what the task needs on the node besides node resources; nothing for most tasks.
func (p *points) reserveExternal(t *api.TaskInfo, n *api.NodeInfo) []api.ExternalReservation {
	if !t.Signature.HasExternalResources() {
		return nil
	}
	var reservations []api.ExternalReservation
	for i := range p.reserving {
		if r := p.reserving[i].fn(t, n); r != nil {
			reservations = append(reservations, r)
		}
	}
	return reservations
}

// NodeScore sums the plugins' scores.
func (p *points) NodeScore(t *api.TaskInfo, n *api.NodeInfo) api.Score {
	var sum api.Score
	for i := range p.nodeOrder {
		sum += p.nodeOrder[i].fn(t, n)
	}
	return sum
}

// Startable returns why the gang of a claim, whose tasks have nodes, must not start; nil if it may.
func (p *points) Startable(claim *api.Claim) *api.Verdict {
	for i := range p.startable {
		if v := p.startable[i].fn(claim); v != nil {
			return v
		}
	}
	return nil
}

// ActivateReservation makes j the current job: what is reserved for it is available to it from now on, and what was
// available to the job before is reserved again. An action calls it with each job that it serves, before it places
// tasks of that job, and with nil after the last one.
func (p *points) ActivateReservation(j *api.JobInfo) {
	for i := range p.activateReservation {
		p.activateReservation[i].fn(j)
	}
}

// Skip reports whether there is no need to try the gang of a job.
func (p *points) Skip(j *api.JobInfo) bool {
	return some(p.skip, func(fn TestFn) bool { return fn(j) })
}

// Unplaced reports to plugins that the gang of j, the current job, could not be placed. It reports whether it is to be tried
// once more.
func (p *points) Unplaced(j *api.JobInfo) (again bool) {
	for i := range p.unplaced {
		again = p.unplaced[i].fn(j) || again
	}
	return again
}

// FollowsUnplaced reports whether a plugin follows all jobs that could not be placed, in their order.
func (p *points) FollowsUnplaced() bool { return len(p.unplaced) > 0 }

// StarvationReservation returns what is reserved for j, the current job, because it has waited long; nil if nothing is.
func (p *points) StarvationReservation(j *api.JobInfo) *api.StarvationReservation {
	for i := range p.starvationReservation {
		if r := p.starvationReservation[i].fn(j); r != nil {
			return r
		}
	}
	return nil
}

// Devices returns what the claims of t request, and if nearest is set, the node that has the fewest devices too few; nil
// for a task that requests no devices.
func (p *points) Devices(t *api.TaskInfo, nearest bool) *api.DeviceDemand {
	if !t.Signature.RequestsDevices() {
		return nil
	}
	for i := range p.devices {
		if d := p.devices[i].fn(t, nearest); d != nil {
			return d
		}
	}
	return nil
}
