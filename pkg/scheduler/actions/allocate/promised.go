package allocate

import (
	"cmp"
	"context"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// Nominated returns the action that goes before all others: it gives jobs the room for which pods
// were evicted in earlier cycles.
func Nominated() framework.Action { return nominated{} }

type nominated struct{}

func (nominated) Name() string { return "promised" }

// Execute places as many tasks of each job as were promised room: its gang, then surplus. Jobs of
// the queue that are strictly above in priority go before: room that is promised is theirs without
// another eviction.
func (nominated) Execute(ctx context.Context, ssn *framework.Session) error {
	run := &run{ssn: ssn, placer: place.New(ssn), jobs: map[*api.JobInfo][]*api.TaskInfo{}}
	for _, job := range run.above(ssn.ReserveNominated()) {
		ssn.ActivateReservation(job)
		for claim := run.claim(job); claim != nil && run.place(claim); claim = run.claim(job) {
		}
	}
	ssn.ActivateReservation(nil)
	ssn.PlaceNominated(run.keep)
	return ctx.Err()
}

// above lists the other jobs that wait and have a higher priority than one of the given jobs of
// their queue, the highest first.
func (r *run) above(jobs []*api.JobInfo) []*api.JobInfo {
	least := map[*api.QueueInfo]int32{}
	given := map[*api.JobInfo]bool{}
	for _, j := range jobs {
		if priority, known := least[j.Queue]; !known || j.Priority < priority {
			least[j.Queue] = j.Priority
		}
		given[j] = true
	}
	var list []*api.JobInfo
	for _, j := range r.ssn.Jobs() {
		if priority, known := least[j.Queue]; known && j.Priority > priority && !given[j] {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *api.JobInfo) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), r.ssn.CompareJobs(a, b))
	})
	return list
}

// keep gives a job turns until as many tasks as were promised room have found some: at once anywhere, else
// where it was promised, else wherever there will be room.
func (r *run) keep(p framework.Nomination) {
	for before := p.Job.Waiting(); before-p.Job.Waiting() < int32(p.Tasks); {
		claim := r.claim(p.Job)
		if claim == nil || r.try(claim, place.Options{IdleOnly: true}) != nil && r.try(claim, place.Options{Nodes: p.Nodes}) != nil && !r.place(claim) {
			return
		}
	}
}
