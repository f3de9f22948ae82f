// Package allocate is the action that gives waiting jobs the room there is: gangs as a whole,
// then surplus tasks one by one, queues in the order of their shares.
package allocate

import (
	"context"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/internal/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/internal/worklist"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
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
	run := &run{ssn: ssn, placer: place.New(ssn), jobs: map[*api.JobInfo]*waiting{}}
	standingBack := run.pass(ctx, ssn.Jobs(), ssn.Overused)
	run.pass(ctx, standingBack, func(*api.QueueInfo, *api.Claim) bool { return false })
	return ctx.Err()
}

// run is one execution.
type run struct {
	ssn    *framework.Session
	placer *place.Placer
	jobs   map[*api.JobInfo]*waiting
}

// pass gives turns until no job wants one: best queue, its best job, that job's claim. A job
// whose claim finds no room is out for good, because room only shrinks while we allocate; one
// whose queue stands back is returned for the next pass.
func (r *run) pass(ctx context.Context, jobs []*api.JobInfo, standsBack func(*api.QueueInfo, *api.Claim) bool) (back []*api.JobInfo) {
	list := worklist.New(r.ssn, jobs)
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		claim := r.claim(job)
		switch {
		case claim == nil: // has all that it can get
		case standsBack(job.Queue, claim):
			back = append(back, job)
		case r.place(claim):
			list.Return(job)
		}
	}
	return back
}

// waiting is what is left of a job in this execution.
type waiting struct {
	tasks  []*api.TaskInfo     // in task order
	failed map[*api.Class]bool // found no room as surplus
}

func (r *run) waiting(job *api.JobInfo) *waiting {
	w := r.jobs[job]
	if w == nil {
		w = &waiting{tasks: r.ssn.WaitingTasks(job), failed: map[*api.Class]bool{}}
		r.jobs[job] = w
	}
	for len(w.tasks) > 0 && !w.tasks[0].Waiting() {
		w.tasks = w.tasks[1:] // placed in an earlier turn
	}
	return w
}

// claim is what the job asks for in this turn: its whole gang while it cannot start, then one
// surplus task; nil when there is nothing (more) to ask for. Surplus tasks that ask for nothing
// are left to backfill.
func (r *run) claim(job *api.JobInfo) *api.Claim {
	w := r.waiting(job)
	if len(w.tasks) == 0 {
		return nil
	}
	if !r.ssn.JobPipelined(job) {
		need := int(max(job.MinMember-job.ReadyCount(), 1))
		return api.NewClaim(job, w.tasks[:min(need, len(w.tasks))])
	}
	if !r.ssn.JobReady(job) {
		return nil // the gang waits for room that is being released
	}
	for i, t := range w.tasks {
		if t.Waiting() && !t.BestEffort() && !w.failed[r.ssn.Cluster().ClassOf(t)] {
			return api.NewClaim(job, w.tasks[i:i+1])
		}
	}
	return nil
}

// place carries out the claim as a whole, or leaves no trace but an explanation.
func (r *run) place(claim *api.Claim) bool {
	if r.ssn.JobPipelined(claim.Job) {
		return r.placeSurplus(claim)
	}
	return r.placeGang(claim)
}

func (r *run) placeSurplus(claim *api.Claim) bool {
	task := claim.Tasks[0]
	stmt := r.ssn.Statement()
	if r.placer.Place(stmt, task) {
		stmt.Commit()
		return true
	}
	r.waiting(claim.Job).failed[r.ssn.Cluster().ClassOf(task)] = true
	r.explainSurplus(claim)
	return r.claim(claim.Job) != nil // tasks of another class may still fit
}
