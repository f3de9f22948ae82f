package allocate

import (
	"context"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/internal/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Promised returns the action that goes before all others: it gives jobs the room for which pods
// were evicted in earlier cycles, on whatever nodes it is now.
func Promised() framework.Action { return promised{} }

type promised struct{}

func (promised) Name() string { return "promised" }

// Execute places as many tasks of each job as were promised room: its gang, then surplus.
func (promised) Execute(ctx context.Context, ssn *framework.Session) error {
	run := &run{ssn: ssn, placer: place.New(ssn), jobs: map[*api.JobInfo][]*api.TaskInfo{}}
	ssn.KeepPromises(func(job *api.JobInfo, tasks int) int {
		before := job.Count(api.Binding)
		for tasks > 0 {
			claim := run.claim(job)
			if claim == nil || !run.place(claim) {
				break
			}
			tasks -= len(claim.Tasks)
		}
		return int(job.Count(api.Binding) - before)
	})
	return ctx.Err()
}
