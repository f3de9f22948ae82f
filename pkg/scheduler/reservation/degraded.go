// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// DegradedName is the name of the action that evicts degraded gangs, in logs and metrics.
const DegradedName = "degraded"

// Degraded registers the policy for gangs that have lost members and cannot be completed: they hold resources without
// being able to go on. Its action belongs after those of configurations that evict.
func Degraded() framework.ComponentSpec {
	return framework.ComponentSpec{Name: DegradedName, New: func(env framework.Environment) (framework.Plugin, framework.Action) {
		d := &degraded{grace: env.GangGrace, since: map[api.JobID]time.Time{}}
		return d, d
	}}
}

// degraded knows since when gangs hold some of what they need and cannot go on. Only this process knows it: after a
// restart the grace begins again.
type degraded struct {
	grace time.Duration // 0: gangs never count as degraded
	since map[api.JobID]time.Time
}

func (*degraded) Name() string { return DegradedName }

func (d *degraded) OnSessionOpen(ssn *framework.Session) {
	ssn.AddOpenedFn(DegradedName, func() { d.track(ssn) })
}

func (*degraded) OnSessionClose(*framework.Session) {}

func (d *degraded) track(ssn *framework.Session) {
	before := d.since
	d.since = map[api.JobID]time.Time{}
	for _, j := range ssn.Backlog().Others() {
		if !j.Degraded() {
			continue
		}
		since, known := before[j.ID]
		if !known {
			since = ssn.Now
		}
		d.since[j.ID] = since
		if due := since.Add(d.grace); d.grace > 0 && ssn.Now.Before(due) {
			ssn.WakeAt(due)
		}
	}
}

// Execute evicts at most one degraded gang.
func (d *degraded) Execute(ctx context.Context, ssn *framework.Session) error {
	// 1. Explain the state of all degraded gangs.
	gangs := d.gangs(ssn)
	for _, j := range gangs {
		ssn.ExplainDegraded(j, d.grace)
	}

	// 2. Evict the last one in job order without which another gang can start.
	for _, j := range slices.Backward(gangs) {
		if ctx.Err() != nil || replace(ssn, j, gangs) {
			return ctx.Err()
		}
	}

	// 3. Else evict the first one that can start in another domain of the topology level that it requires.
	for _, j := range gangs {
		if ctx.Err() != nil || move(ssn, j) {
			break
		}
	}
	return ctx.Err()
}

// gangs returns the gangs that have held fewer members than they need for longer than the grace, and have not been
// completed in this session, in job order.
func (d *degraded) gangs(ssn *framework.Session) []*api.JobInfo {
	var list []*api.JobInfo
	for id, since := range d.since {
		j := ssn.Cluster().Jobs()[id]
		if j != nil && j.Degraded() && !ssn.JobPipelined(j) && d.grace > 0 && !ssn.Now.Before(since.Add(d.grace)) {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, ssn.CompareJobs)
	return list
}

// replace evicts a gang if that lets another one start, a degraded one or one that waits.
func replace(ssn *framework.Session, gang *api.JobInfo, degraded []*api.JobInfo) bool {
	unit, ok := evictable(ssn, gang)
	if !ok {
		return false
	}
	defer ssn.ActivateReservation(nil)
	for _, preemptor := range preemptors(ssn, gang, degraded) {
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

// evictable returns the members of a degraded gang. It reports false if not all of them may be evicted.
func evictable(ssn *framework.Session, gang *api.JobInfo) (api.Unit, bool) {
	unit, ok := unitOf(ssn, gang)
	return unit, ok && !gang.Group.IsNonPreemptable(gang.Priority) && ssn.Cluster().BudgetsAllow(unit)
}

// move evicts a gang that is tied to a domain of a topology if another domain holds all that it needs: it cannot be completed
// where it is, and its members could not start elsewhere one by one.
//
// Pods that will replace the evicted ones do not exist yet, so the domains are compared by counts of the pods that do. So
// it moves no gang with subgroups, or with pods for which the counts mean little.
func move(ssn *framework.Session, gang *api.JobInfo) bool {
	level := gang.TopologyLevel
	unit, ok := evictable(ssn, gang)
	tasks := append(slices.Clone(unit.Tasks), ssn.WaitingTasks(gang)...)
	if level == nil || gang.SubGroups != nil || !ok || len(tasks) < int(gang.MinMember) {
		return false
	}
	claim := api.NewClaim(gang, tasks[:gang.MinMember])
	for _, t := range claim.Tasks {
		if !ssn.Cluster().ClassOf(t).NodeLocalUnpinned() {
			return false
		}
	}
	former := ssn.Nodes().Domains(level).OfJob(gang)
	stmt := ssn.Statement()
	for _, t := range unit.Tasks {
		stmt.Evict(t, gang, api.GangDegraded)
	}
	holds := func(d *place.Domain) bool { return d.HoldsAll && d.Domain != former }
	if ssn.Allocatable(gang, claim.Request, api.Future) && slices.ContainsFunc(place.Domains(ssn, claim, level), holds) {
		stmt.Commit()
		return true
	}
	stmt.Discard()
	return false
}

// preemptors lists the gangs that could start instead, in job order, degraded ones first.
func preemptors(ssn *framework.Session, gang *api.JobInfo, degraded []*api.JobInfo) []*api.JobInfo {
	isDegraded := func(j *api.JobInfo) bool { return slices.Contains(degraded, j) }
	var list []*api.JobInfo
	for _, j := range ssn.Jobs() {
		if j != gang && j.MinMember > 1 && !ssn.JobPipelined(j) {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *api.JobInfo) int {
		if isDegraded(a) != isDegraded(b) {
			if isDegraded(a) {
				return -1
			}
			return +1
		}
		return ssn.CompareJobs(a, b)
	})
	return list
}
