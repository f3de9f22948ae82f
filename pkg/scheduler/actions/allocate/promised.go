package allocate

import (
	"cmp"
	"context"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/internal/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Promised returns the action that goes before all others: it gives jobs the room for which pods
// were evicted in earlier cycles, on whatever nodes it is now.
func Promised() framework.Action { return promised{} }

type promised struct{}

func (promised) Name() string { return "promised" }

// Execute places as many tasks of each job as were promised room: its gang, then surplus. Jobs of
// the queue that are strictly above in priority go before: room that is promised is theirs without
// another eviction.
func (promised) Execute(ctx context.Context, ssn *framework.Session) error {
	run := &run{ssn: ssn, placer: place.New(ssn), jobs: map[*api.JobInfo][]*api.TaskInfo{}}
	ahead := map[*api.QueueInfo][]*api.JobInfo{}
	ssn.KeepPromises(func(job *api.JobInfo, tasks int, now bool) framework.Kept {
		if _, known := ahead[job.Queue]; !known {
			ahead[job.Queue] = run.above(job)
		}
		for list := ahead[job.Queue]; len(list) > 0 && list[0].Priority > job.Priority; list = ahead[job.Queue] {
			run.placeUpTo(list[0], len(list[0].Tasks))
			ahead[job.Queue] = list[1:]
		}
		run.placer.IdleOnly(now)
		defer run.placer.IdleOnly(false)
		return run.placeUpTo(job, tasks)
	})
	return ctx.Err()
}

// above lists the jobs of the queue that wait and have a higher priority, the highest first.
func (r *run) above(job *api.JobInfo) []*api.JobInfo {
	var list []*api.JobInfo
	for _, j := range r.ssn.Jobs() {
		if j.Queue == job.Queue && j.Priority > job.Priority {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *api.JobInfo) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), r.ssn.CompareJobs(a, b))
	})
	return list
}

// placeUpTo gives a job turns until that many tasks have found room.
func (r *run) placeUpTo(job *api.JobInfo, tasks int) framework.Kept {
	var kept framework.Kept
	for before := job.Count(api.Binding); kept.Now+kept.Later < tasks; {
		claim := r.claim(job)
		if claim == nil || !r.place(claim) {
			break
		}
		now := int(job.Count(api.Binding) - before)
		kept.Later += len(claim.Tasks) - (now - kept.Now)
		kept.Now = now
	}
	return kept
}
