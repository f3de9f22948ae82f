package evict

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// makeRoomUnderCaps evicts units of the claim's own queue, cheapest first, until its caps allow t
// once they are gone.
func (a *attempt) makeRoomUnderCaps(t *api.TaskInfo) bool {
	queue := t.Job.Queue
	if !slices.Contains(a.rules.VictimQueues(), queue) {
		return false
	}
	for _, v := range a.membersOf(queue) {
		if a.ssn.Allocatable(t.Job, t.Request, api.Future) {
			return true
		}
		if v.Evictable() && overlaps(v.Request, t.Request) && a.mayEvict(v.Job, queue) {
			if unit, ok := a.unitOf(v); ok {
				a.relieved = a.take(unit) || a.relieved
			}
		}
	}
	return a.ssn.Allocatable(t.Job, t.Request, api.Future)
}

// membersOf lists the members of a queue that stand on nodes, the cheapest to lose first: by the
// priority of their jobs, surplus before gangs.
func (a *attempt) membersOf(q *api.QueueInfo) []*api.TaskInfo {
	var list []*api.TaskInfo
	for _, j := range q.Jobs {
		for _, t := range j.Tasks {
			if t.Evictable() {
				list = append(list, t)
			}
		}
	}
	slices.SortFunc(list, func(x, y *api.TaskInfo) int {
		return cmp.Or(
			cmp.Compare(x.Job.Priority, y.Job.Priority),
			cmp.Compare(min(y.Job.Surplus(), 1), min(x.Job.Surplus(), 1)),
			cheapestFirst(x, y),
		)
	})
	return list
}

// overlaps tells whether two requests have a dimension in common, beside the place of one pod.
func overlaps(x, y api.Resource) bool {
	for d, n := range x {
		if d != api.Pods && n > 0 && y.At(d) > 0 {
			return true
		}
	}
	return false
}
