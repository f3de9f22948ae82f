// Package stale is the action that dissolves gangs that have lost members and cannot be completed:
// they hold room without being able to go on. It goes after those of configurations that evict.
package stale

import (
	"context"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// Name is the action's name in logs and metrics; configurations do not name it.
const Name = "stale"

// New returns the action.
func New() framework.Action { return action{} }

type action struct{}

func (action) Name() string { return Name }

// Execute evicts the last stale gang in job order that another gang can start without, and no more
// than one in a session. The others stay and say what they lack.
func (action) Execute(ctx context.Context, ssn *framework.Session) error {
	gangs := ssn.DegradedGangs()
	for _, j := range gangs {
		ssn.ExplainDegraded(j)
	}
	for _, j := range slices.Backward(gangs) {
		if ctx.Err() != nil || dissolve(ssn, j, gangs) {
			break
		}
	}
	return ctx.Err()
}

// dissolve evicts a gang if that lets another one start: a stale one, or one that waits.
func dissolve(ssn *framework.Session, gang *api.JobInfo, stale []*api.JobInfo) bool {
	unit, ok := unitOf(ssn, gang)
	if !ok {
		return false
	}
	defer ssn.ActivateReservation(nil)
	for _, preemptor := range preemptors(ssn, gang, stale) {
		ssn.ActivateReservation(preemptor)
		tasks := ssn.WaitingTasks(preemptor)
		claim := worklist.Claim(ssn, preemptor, tasks)
		if claim == nil {
			continue
		}
		stmt, placer := ssn.Statement(), place.New(ssn)
		for _, t := range unit.Tasks {
			stmt.Evict(t, preemptor, api.GangDegraded)
		}
		if placer.Gang(stmt, claim, tasks, place.Options{}) == nil {
			stmt.Commit()
			return true
		}
		stmt.Discard()
	}
	return false
}

// unitOf returns all that the gang holds, if all of it may go.
func unitOf(ssn *framework.Session, gang *api.JobInfo) (api.Unit, bool) {
	var tasks []*api.TaskInfo
	for _, t := range gang.Tasks {
		if t.Evictable() && !ssn.NonEvictable(t) {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, func(a, b *api.TaskInfo) int { return api.CompareAge(a.Created, b.Created, a.Key, b.Key) })
	unit := api.NewUnit(gang, tasks)
	return unit, len(tasks) == int(gang.Holding()) && ssn.Cluster().BudgetsAllow(unit)
}

// preemptors lists the gangs that could start instead, in job order, stale ones first.
func preemptors(ssn *framework.Session, gang *api.JobInfo, stale []*api.JobInfo) []*api.JobInfo {
	isStale := func(j *api.JobInfo) bool { return slices.Contains(stale, j) }
	var list []*api.JobInfo
	for _, j := range ssn.Jobs() {
		if j != gang && j.MinMember > 1 && !ssn.JobPipelined(j) {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *api.JobInfo) int {
		if isStale(a) != isStale(b) {
			if isStale(a) {
				return -1
			}
			return +1
		}
		return ssn.CompareJobs(a, b)
	})
	return list
}
