// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"cmp"
	"context"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// Execute places the tasks of all nominations: of each job its gang, then surplus. First come the waiting jobs with a
// strictly higher priority in the same queue: they may use what is reserved for nominations without another eviction.
func (n *nominations) Execute(ctx context.Context, ssn *framework.Session) error {
	allocator := place.NewAllocator(ssn)
	for _, job := range jobsAbove(ssn, n.open.reserve()) {
		ssn.ActivateReservation(job)
		for claim := allocator.Claim(job); claim != nil && allocator.Allocate(claim); claim = allocator.Claim(job) {
		}
	}
	ssn.ActivateReservation(nil)
	n.open.placeAll(allocator)
	return ctx.Err()
}

// reserve keeps the resources of all nominations, as far as they are there, for their jobs and for jobs above them. It
// returns the jobs in job order.
func (o *nominated) reserve() []*api.JobInfo {
	var jobs []*api.JobInfo
	for _, j := range o.ssn.Jobs() {
		if o.byJob[j.ID] != nil {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, o.ssn.CompareJobs)
	for _, j := range jobs {
		n := o.byJob[j.ID]
		r := &reservation{job: j, placements: o.tasksFor(j, n.placements)}
		r.hold(o.ssn)
		o.reservations = append(o.reservations, r)
		o.nomination[r] = n
	}
	return jobs
}

// tasksFor finds tasks for the placements on nodes that still exist.
func (o *nominated) tasksFor(j *api.JobInfo, placements []place.Placement) []api.Decision {
	waiting := map[*api.Signature][]*api.TaskInfo{}
	for _, t := range o.ssn.WaitingTasks(j) {
		waiting[t.Signature] = append(waiting[t.Signature], t)
	}
	var found []api.Decision
	for _, p := range placements {
		n, tasks := o.ssn.Cluster().Node(p.Node), waiting[p.Signature]
		if len(tasks) == 0 || n == nil {
			continue
		}
		found = append(found, api.Decision{Kind: api.Pipeline, Task: tasks[0], Node: n})
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
func (o *nominated) placeAll(allocator *place.Allocator) {
	logEnded(o)
	clear(o.byJob)
	slices.SortStableFunc(o.reservations, func(a, b *reservation) int {
		return cmp.Compare(o.anyPending(o.nomination[a]), o.anyPending(o.nomination[b]))
	})
	var kept []*reservation
	for _, r := range o.reservations {
		r.release(o.ssn)
		switch bound := o.place(allocator, r); {
		case bound > 0:
			o.backoffs.succeeded(r.job.ID)
		case o.byJob[r.job.ID] != nil: // waits still
		case o.failed(o.nomination[r]):
			r.hold(o.ssn)
			kept = append(kept, r)
			logNoEffect(o.ssn, r.job, evictionFailed, 0)
		default:
			o.backoffs.failed(r.job.ID, o.ssn.Now)
			logNoEffect(o.ssn, r.job, noResources, o.backoffs[r.job.ID].length)
		}
	}
	o.reservations = kept
	o.backoffs.drop(o.ssn.Cluster())
}

// place places the tasks of one nomination and returns how many of them are bound. It nominates what still waits again.
func (o *nominated) place(allocator *place.Allocator, r *reservation) (bound int) {
	n, job := o.nomination[r], r.job
	nodes := make(map[*api.TaskInfo]*api.NodeInfo, len(r.placements))
	for _, d := range r.placements {
		nodes[d.Task] = d.Node
	}
	heldBefore, boundBefore := len(o.held), o.bound
	placeUpTo(allocator, job, len(n.placements), nodes)
	n.placements = nil
	for _, d := range o.held[heldBefore:] {
		n.placements = append(n.placements, place.PlacementOf(d))
	}
	left, until := o.pending(n)
	if left == 0 && len(n.placements) > 0 { // it waits for the victims of other jobs, which have taken its own resources
		n.victims = o.terminatingOn(n.placements)
		left, until = o.pending(n)
	}
	switch {
	case left == 0:
	case len(n.placements) > 0:
		o.byJob[job.ID] = n
		o.explain(job, left, until)
	default:
		o.outstanding[job.ID] = n.victims
	}
	return o.bound - boundBefore
}

// placeUpTo places up to so many tasks of a job: on idle resources of any node, else on the given nodes, else wherever
// there will be resources.
func placeUpTo(allocator *place.Allocator, job *api.JobInfo, tasks int, nodes map[*api.TaskInfo]*api.NodeInfo) {
	for before := job.Waiting(); before-job.Waiting() < int32(tasks); {
		claim := allocator.Claim(job)
		if claim == nil ||
			!allocator.Try(claim, place.Options{IdleOnly: true}) &&
				!allocator.Try(claim, place.Options{Nodes: nodes}) &&
				!allocator.Allocate(claim) {
			return
		}
	}
}
