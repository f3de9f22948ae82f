// Package allocate is the action that gives waiting jobs the room there is: gangs as a whole,
// then surplus tasks one by one, queues in the order of their shares.
package allocate

import (
	"context"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// Name is the action's name in configurations.
const Name = "allocate"

// New returns the action.
func New() framework.Action { return action{} }

type action struct{}

func (action) Name() string { return Name }

// Execute makes two passes of one loop. The first serves jobs whose queue has not got what it
// deserves; the second lets the rest borrow what is left, never beyond the queues' capability.
func (action) Execute(ctx context.Context, ssn *framework.Session) error {
	run := &run{ssn: ssn, placer: place.New(ssn), jobs: map[*api.JobInfo][]*api.TaskInfo{}}
	standingBack := run.pass(ctx, ssn.Jobs(), ssn.Overused)
	run.pass(ctx, standingBack, nobody)
	return ctx.Err()
}

// nobody stands back when queues borrow.
func nobody(*api.QueueInfo, *api.Claim) bool { return false }

// run is one execution.
type run struct {
	ssn    *framework.Session
	placer *place.Placer
	jobs   map[*api.JobInfo][]*api.TaskInfo // what is left to be placed of each, in task order
}

// pass gives turns until no job wants one: best queue, its best job, that job's claim. A job
// whose claim finds no room is out for good, because room only shrinks while we allocate; one
// whose queue stands back is returned for the next pass.
func (r *run) pass(ctx context.Context, jobs []*api.JobInfo, standsBack func(*api.QueueInfo, *api.Claim) bool) (back []*api.JobInfo) {
	list := worklist.New(r.ssn, jobs)
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		r.ssn.ActivateReservation(job)
		claim := r.claim(job)
		switch {
		case claim == nil: // has all that it can get
		case standsBack(job.Queue, claim):
			back = append(back, job)
		case r.place(claim):
			list.Return(job)
		}
	}
	r.ssn.ActivateReservation(nil)
	return back
}

// waiting returns what is left to be placed of a job. The first task of it still waits.
func (r *run) waiting(job *api.JobInfo) []*api.TaskInfo {
	tasks, known := r.jobs[job]
	if !known {
		tasks = r.ssn.WaitingTasks(job)
	}
	for len(tasks) > 0 && !tasks[0].Waiting() {
		tasks = tasks[1:] // placed in an earlier turn
	}
	r.jobs[job] = tasks
	return tasks
}

func (r *run) claim(job *api.JobInfo) *api.Claim {
	return worklist.Claim(r.ssn, job, r.waiting(job))
}

// place carries out the claim as a whole, or leaves no trace but an explanation. It tells whether the job
// may have another turn.
func (r *run) place(claim *api.Claim) bool {
	failure := r.try(claim, place.Options{})
	switch {
	case failure == nil:
		return len(r.waiting(claim.Job)) > 0
	case r.ssn.JobPipelined(claim.Job):
		r.explainSurplus(claim)
		return r.others(claim)
	}
	r.explainGang(claim, failure)
	return false
}

// try carries out the claim as a whole, or leaves no trace.
func (r *run) try(claim *api.Claim, o place.Options) *place.Failure {
	stmt := r.ssn.Statement()
	if r.ssn.JobPipelined(claim.Job) {
		if !r.placer.Place(stmt, claim.Tasks[0], o) {
			return &place.Failure{Task: claim.Tasks[0]}
		}
		stmt.Commit()
		return nil
	}
	failure := r.placer.Gang(stmt, claim, r.waiting(claim.Job), o)
	if failure == nil {
		stmt.Commit()
		r.explainHeld(claim)
	}
	return failure
}

// others leaves tasks out that are like the surplus task of the claim, for which there is no room, and tells
// whether there are any others.
func (r *run) others(claim *api.Claim) bool {
	class := r.ssn.Cluster().ClassOf(claim.Tasks[0])
	r.jobs[claim.Job] = slices.DeleteFunc(slices.Clone(r.waiting(claim.Job)), func(t *api.TaskInfo) bool {
		return r.ssn.Cluster().ClassOf(t) == class
	})
	return r.claim(claim.Job) != nil
}
