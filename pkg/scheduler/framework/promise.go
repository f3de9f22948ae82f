package framework

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// promise is room that pods were evicted for. Until their end the beneficiary goes before all
// others in each session, so that nobody takes the room and the evictions were not for nothing.
type promise struct {
	job     api.JobID
	tasks   int // how many tasks of the job were to be placed
	victims []api.TaskID
}

// makePromise remembers for whom a statement evicts.
func (s *Statement) makePromise() {
	var p promise
	for i := range s.ops {
		switch o := &s.ops[i]; o.Kind {
		case api.Evict:
			p.job = o.For.ID
			p.victims = append(p.victims, o.Task.ID)
		default:
			p.tasks++
		}
	}
	if len(p.victims) > 0 && p.tasks > 0 {
		s.ssn.memory.promises = append(s.ssn.memory.promises, &p)
	}
}

// KeepPromises calls place for each job that room was promised to, in job order, with the number
// of tasks that still wait for it. place returns how many of them are on their way to a node now.
// Promises that are kept, or cannot be kept, are forgotten.
func (ssn *Session) KeepPromises(place func(job *api.JobInfo, tasks int) int) {
	jobs := map[api.JobID]*api.JobInfo{}
	for _, j := range ssn.jobs {
		jobs[j.ID] = j
	}
	list := slices.DeleteFunc(ssn.memory.promises, func(p *promise) bool { return jobs[p.job] == nil })
	slices.SortStableFunc(list, func(a, b *promise) int {
		if a.job == b.job {
			return 0
		}
		return ssn.CompareJobs(jobs[a.job], jobs[b.job])
	})
	ssn.memory.promises = nil
	for _, p := range list {
		if p.tasks -= place(jobs[p.job], p.tasks); p.tasks > 0 && ssn.awaits(p) {
			ssn.memory.promises = append(ssn.memory.promises, p)
		}
	}
}

// awaits tells whether any victim is still there.
func (ssn *Session) awaits(p *promise) bool {
	return slices.ContainsFunc(p.victims, func(id api.TaskID) bool {
		t := ssn.cluster.Tasks[id]
		return t != nil && t.Status == api.Releasing
	})
}
