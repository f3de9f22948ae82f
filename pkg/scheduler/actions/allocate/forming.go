package allocate

import (
	"context"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/internal/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/internal/worklist"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// StarvationReservation returns the action that goes before those of every configuration and after Promised: it
// sets room aside for gangs that have waited long. Without it a stream of small jobs would take
// whatever becomes free, piece by piece, and a gang that needs many pieces at once would never start.
func StarvationReservation() framework.Action { return starvationReservation{} }

type starvationReservation struct{}

func (starvationReservation) Name() string { return "forming" }

// Execute chooses one gang of each queue, the first in job order that has waited long enough, and
// the places where it will have room soonest. What is free there is set aside until the session
// closes; the gang itself starts in its ordinary turn, when all of it fits.
func (starvationReservation) Execute(ctx context.Context, ssn *framework.Session) error {
	f := &reserver{ssn: ssn, reserver: place.NewReserver(ssn), starving: starving(ssn), served: map[*api.QueueInfo]bool{}}
	if len(f.starving) == 0 {
		return ctx.Err()
	}
	list := worklist.New(ssn, ssn.Jobs())
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		f.consider(job)
	}
	for _, c := range slices.Backward(f.chosen) {
		c.stmt.Discard()
	}
	for _, c := range f.chosen {
		ssn.Reserve(c.job, c.places)
	}
	return ctx.Err()
}

// starving returns the gangs that have waited long enough, and asks for a session when the next one
// will have.
func starving(ssn *framework.Session) map[*api.JobInfo]bool {
	found := map[*api.JobInfo]bool{}
	for _, j := range ssn.Jobs() {
		if ssn.StarvationAfter() == 0 || ssn.JobPipelined(j) {
			continue
		}
		if due := waitsSince(ssn, j).Add(ssn.StarvationAfter()); ssn.Now.Before(due) {
			ssn.WakeAt(due)
		} else {
			found[j] = true
		}
	}
	return found
}

// waitsSince returns when the last of the tasks was created that the gang needs: from then on it could
// have started, and every scheduler finds the same.
func waitsSince(ssn *framework.Session, j *api.JobInfo) time.Time {
	tasks := j.Tasks
	if need := max(j.MinMember-j.ReadyCount(), 1); need < j.Waiting() {
		tasks = ssn.WaitingTasks(j)[:need]
	}
	var last int64
	for _, t := range tasks {
		if t.Waiting() {
			last = max(last, t.Created)
		}
	}
	return time.Unix(0, last)
}

// reserver chooses gangs and places in one session.
type reserver struct {
	ssn      *framework.Session
	reserver *place.Reserver
	starving map[*api.JobInfo]bool
	first    *api.QueueInfo // in queue order, of those with a job that could start or grow
	served   map[*api.QueueInfo]bool
	chosen   []chosen
}

// chosen is a gang, pipelined to its places so that those chosen later go elsewhere.
type chosen struct {
	job    *api.JobInfo
	stmt   *framework.Statement
	places []api.Decision
}

// consider is called for all jobs, the best queue first.
func (f *reserver) consider(job *api.JobInfo) {
	starves := f.starving[job]
	if f.served[job.Queue] || f.first != nil && !starves || !f.couldStart(job) {
		return
	}
	if f.first == nil {
		f.first = job.Queue
	}
	if !starves {
		return
	}
	tasks := f.ssn.WaitingTasks(job)
	claim := worklist.Claim(f.ssn, job, tasks)
	if claim == nil || !f.mayForm(claim) {
		return
	}
	stmt := f.ssn.Statement()
	if f.reserver.Gang(stmt, claim, tasks) {
		f.served[job.Queue] = true
		f.chosen = append(f.chosen, chosen{job, stmt, stmt.Decisions()})
	}
}

func (f *reserver) couldStart(job *api.JobInfo) bool {
	tasks, enough := f.ssn.Nodes().CouldFit(job)
	for _, n := range tasks {
		if n > 0 {
			return enough
		}
	}
	return false
}

// mayForm tells whether a gang may take room from others: because its queue deserves it, or goes
// before all other queues. One that has begun to form goes on, or what was kept free for it would have
// been so for nothing. It may be the jobs of its own queue that stand between it and the caps, and
// nothing else.
func (f *reserver) mayForm(claim *api.Claim) bool {
	job, queue := claim.Job, claim.Job.Queue
	if !f.ssn.Allocatable(job, claim.Request, api.Future) &&
		(queue.CapAllows(claim.Request, api.Future) < 0 || !job.Allocated.Plus(claim.Request).Within(queue.Capability)) {
		return false
	}
	return queue == f.first || f.ssn.PreviousReservation(job) != nil || f.deserves(claim)
}

// deserves tells whether the queue holds no more than it deserves with the gang.
func (f *reserver) deserves(claim *api.Claim) bool {
	deserved := f.ssn.Deserved(claim.Job.Queue)
	if deserved == nil { // nobody shares out the cluster
		return true
	}
	dims := f.ssn.Cluster().Dims()
	for d, n := range claim.Request {
		if n > 0 && dims.Shared(d) && api.InParts(d, claim.QueueHeld.At(d)+n) > deserved.At(d) {
			return false
		}
	}
	return true
}
