// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// Execute places the tasks of all nominations: of each job its gang, then surplus.
func (n *nominations) Execute(ctx context.Context, ssn *framework.Session) error {
	// 1. Drop the backoffs of jobs that do not exist any more. Most sessions have no nominations.
	n.backoffs.drop(ssn.Cluster())
	if len(n.byJob) == 0 {
		return ctx.Err()
	}

	// 2. Reserve the resources of all nominations.
	jobs := n.reserve()
	allocator := place.NewAllocator(ssn)

	// 3. Place the waiting jobs with a strictly higher priority in the same queue first: they may use what is reserved for
	// nominations without another eviction.
	inherited := n.placeAbove(allocator, jobs)

	// 4. Place the nominations.
	n.placeAll(allocator)
	maps.Copy(n.byJob, inherited)
	return ctx.Err()
}

// placeAbove places the jobs above some jobs. Those that wait for victims then have a nomination of their own: otherwise a
// job that is tried before them in the next session, such as one of their queue that requests other resources, could
// take what they wait for, and the same pods would be evicted again.
func (n *nominations) placeAbove(allocator *place.Allocator, jobs []*api.JobInfo) map[api.JobID]*nomination {
	inherited := map[api.JobID]*nomination{}
	for _, job := range jobsAbove(n.ssn, jobs) {
		n.ssn.ActivateReservation(job)
		before := len(n.held)
		for claim := allocator.Claim(job); claim != nil && allocator.Allocate(claim); claim = allocator.Claim(job) {
		}
		one := &nomination{}
		for _, d := range n.held[before:] {
			one.placements = append(one.placements, place.PlacementOf(d))
		}
		if one.victims = n.terminatingOn(one.placements); len(one.victims) > 0 {
			inherited[job.ID] = one
		}
	}
	n.ssn.ActivateReservation(nil)
	return inherited
}

// reserve keeps the resources of all nominations, as far as they are there, for their jobs and for jobs above them. It
// returns the jobs in job order.
func (n *nominations) reserve() []*api.JobInfo {
	var jobs []*api.JobInfo
	for _, j := range n.ssn.Jobs() {
		if n.byJob[j.ID] != nil {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, n.ssn.CompareJobs)
	for _, j := range jobs {
		one := n.byJob[j.ID]
		one.reservation = &reservation{job: j, placements: n.tasksFor(j, one.placements)}
		one.reservation.hold(n.ssn)
		n.reserved = append(n.reserved, one)
	}
	return jobs
}

// tasksFor finds tasks for the placements on nodes that still exist.
func (n *nominations) tasksFor(j *api.JobInfo, placements []place.Placement) []api.Decision {
	waiting := map[*api.Signature][]*api.TaskInfo{}
	for _, t := range n.ssn.WaitingTasks(j) {
		waiting[t.Signature] = append(waiting[t.Signature], t)
	}
	var found []api.Decision
	for _, p := range placements {
		node, tasks := n.ssn.Cluster().Node(p.Node), waiting[p.Signature]
		if len(tasks) == 0 || node == nil {
			continue
		}
		found = append(found, api.Decision{Kind: api.Pipeline, Task: tasks[0], Node: node})
		waiting[p.Signature] = tasks[1:]
	}
	return found
}

// jobsAbove lists the other jobs that wait and have a higher priority than one of the given jobs of their queue, the
// highest first.
func jobsAbove(ssn *framework.Session, jobs []*api.JobInfo) []*api.JobInfo {
	least := map[*api.QueueInfo]int32{}
	given := map[*api.JobInfo]bool{}
	for _, j := range jobs {
		if priority, known := least[j.Queue]; !known || j.Priority < priority {
			least[j.Queue] = j.Priority
		}
		given[j] = true
	}
	var list []*api.JobInfo
	for _, j := range ssn.Jobs() {
		if priority, known := least[j.Queue]; known && j.Priority > priority && !given[j] {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *api.JobInfo) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), ssn.CompareJobs(a, b))
	})
	return list
}

// placeAll places nominations one after the other: first those whose victims have all ended, because they would
// otherwise lose the resources to jobs whose own victims have not; then in job order. A job that gets nothing has a
// backoff before it evicts again; except if evictions failed: then its resources, as far as they are there, stay
// reserved in this session, so that it can make another plan.
func (n *nominations) placeAll(allocator *place.Allocator) {
	logEnded(n)
	clear(n.byJob)
	slices.SortStableFunc(n.reserved, func(a, b *nomination) int { return cmp.Compare(n.anyPending(a), n.anyPending(b)) })
	var kept []*nomination
	for i, one := range n.reserved {
		job := one.reservation.job
		one.reservation.release(n.ssn)
		switch bound := n.place(allocator, one, idleFor(n.reserved[i+1:])); {
		case bound > 0:
			n.backoffs.succeeded(job.ID)
		case n.byJob[job.ID] != nil: // waits still
		case n.failed(one):
			one.reservation.hold(n.ssn)
			kept = append(kept, one)
			logNoEffect(n.ssn, job, evictionFailed, 0)
		default:
			n.backoffs.failed(job.ID, n.ssn.Now)
			logNoEffect(n.ssn, job, noResources, n.backoffs[job.ID].length)
		}
	}
	n.reserved = kept
}

// idleFor returns where the tasks of a nomination may take idle resources before those of its victims: anywhere, or while
// other nominations still have to be placed, where nothing is reserved. What is reserved counts as taken from resources that
// are being released first, so that nodes of others seem to have idle resources, which these would miss.
func idleFor(others []*nomination) place.Options {
	o := place.Options{IdleOnly: true}
	if len(others) > 0 {
		o.Allowed = func(n *api.NodeInfo) bool { return n.Reserved.IsZero() }
	}
	return o
}

// place places the tasks of one nomination and returns how many of them are bound. It nominates what still waits again.
func (n *nominations) place(allocator *place.Allocator, one *nomination, idle place.Options) (bound int) {
	job, nodes := one.reservation.job, map[*api.TaskInfo]*api.NodeInfo{}
	for _, d := range one.reservation.placements {
		nodes[d.Task] = d.Node
	}
	heldBefore, boundBefore := len(n.held), n.bound
	placeUpTo(allocator, job, len(one.placements), idle, nodes)
	one.placements = nil
	for _, d := range n.held[heldBefore:] {
		one.placements = append(one.placements, place.PlacementOf(d))
	}
	left, until := n.pending(one)
	if left == 0 && len(one.placements) > 0 { // it waits for the victims of other jobs, which have taken its own resources
		one.victims = n.terminatingOn(one.placements)
		left, until = n.pending(one)
	}
	switch {
	case left == 0:
	case len(one.placements) > 0:
		n.byJob[job.ID] = one
		n.explain(job, one, until)
	default:
		n.outstanding[job.ID] = one.victims
	}
	return n.bound - boundBefore
}

// placeUpTo places up to so many tasks of a job: on idle resources, else on the given nodes, else wherever there will be
// resources.
func placeUpTo(allocator *place.Allocator, job *api.JobInfo, tasks int, idle place.Options, nodes map[*api.TaskInfo]*api.NodeInfo) {
	planned := plannedTasks(job, nodes)
	for before := job.Waiting(); before-job.Waiting() < int32(tasks); {
		claim := allocator.ClaimOf(job, planned)
		if claim == nil {
			claim = allocator.Claim(job)
		}
		if claim == nil ||
			!allocator.Try(claim, idle) &&
				!allocator.Try(claim, place.Options{Nodes: nodes}) &&
				!allocator.Allocate(claim) {
			return
		}
	}
}

// plannedTasks returns the tasks with a planned node of a job with subgroups, in no order. Which of its tasks come next
// depends on what its subgroups have, which can have changed since the plan. Other jobs have one task order.
func plannedTasks(job *api.JobInfo, nodes map[*api.TaskInfo]*api.NodeInfo) []*api.TaskInfo {
	if job.SubGroups == nil {
		return nil
	}
	return slices.Collect(maps.Keys(nodes))
}
