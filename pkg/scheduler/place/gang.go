// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Failure is the result of a failed attempt to place a gang: the first task that did not fit, and the tasks
// that had been placed by the end of the attempt. Domain is not nil if the gang must be in one domain: then the attempt
// is the one that placed the most tasks. Verdict is not nil if all tasks had nodes, and a plugin keeps the gang from
// starting.
type Failure struct {
	Task    *api.TaskInfo
	Placed  []*api.TaskInfo
	Domain  *Domain
	Verdict *api.Verdict
}

// Gang completes the gang of a claim in task order. If that fails and the pod signatures differ, it tries again with the
// largest tasks first. A gang that must be in one domain is tried domain by domain. The tasks are those of the
// claim, followed by their substitutes. If the gang cannot be completed, Gang leaves the statement unchanged
// and returns the failure of the first attempt.
func (p *Placer) Gang(stmt *framework.Statement, claim *api.Claim, tasks []*api.TaskInfo, o Options) *Failure {
	inTaskOrder := func(tasks []*api.TaskInfo) *Failure {
		return p.tryDomains(claim, tasks, o, func(place func(*framework.Statement, *api.TaskInfo) bool) *Failure {
			return try(p.ssn, stmt, claim.Job, tasks, place)
		})
	}
	failure := inTaskOrder(tasks)
	if failure != nil && claim.Job.SubGroups == nil && signaturesDiffer(claim.Tasks) && inTaskOrder(largestFirst(p.ssn, claim, tasks)) == nil {
		return nil
	}
	return failure
}

// Surplus places all tasks of a claim whose gang has what it needs. If that fails, it leaves the statement unchanged.
func (p *Placer) Surplus(stmt *framework.Statement, claim *api.Claim, o Options) *Failure {
	if claim.Job.PreferredLevel == nil {
		return placeAll(stmt, claim.Tasks, p.placeWith(o))
	}
	return p.tryDomains(claim, claim.Tasks, o, func(place func(*framework.Statement, *api.TaskInfo) bool) *Failure {
		return placeAll(stmt, claim.Tasks, place)
	})
}

func placeAll(stmt *framework.Statement, tasks []*api.TaskInfo, place func(*framework.Statement, *api.TaskInfo) bool) *Failure {
	start := stmt.Mark()
	for _, t := range tasks {
		if !place(stmt, t) {
			stmt.RollbackTo(start)
			return &Failure{Task: t}
		}
	}
	return nil
}

// try places tasks in the given order until the gang is complete; nil on success. A class
// without a node does not stop the others, because the gang may be completed by them.
func try(ssn *framework.Session, stmt *framework.Statement, job *api.JobInfo, tasks []*api.TaskInfo, place func(*framework.Statement, *api.TaskInfo) bool) *Failure {
	if job.SubGroups != nil {
		return trySubGroups(ssn, stmt, job, tasks, place)
	}
	start := stmt.Mark()
	var first *Failure
	failed := map[*api.EquivalenceClass]bool{}
	for i, t := range tasks {
		class := ssn.Cluster().ClassOf(t)
		if failed[class] {
			continue
		}
		if !place(stmt, t) {
			failed[class] = true
			if first == nil {
				first = &Failure{Task: t}
			}
			if !couldComplete(ssn, job, tasks[i+1:], failed) {
				break
			}
			continue
		}
		if ssn.JobPipelined(job) {
			return nil
		}
	}
	if first == nil { // fewer members than needed; only without the gang plugin's check
		first = &Failure{Task: tasks[len(tasks)-1]}
	}
	first.Placed = placedOf(tasks)
	stmt.RollbackTo(start)
	return first
}

// placedOf returns the tasks that have a node.
func placedOf(tasks []*api.TaskInfo) []*api.TaskInfo {
	count := 0
	for _, t := range tasks {
		if t.Node != nil {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	placed := make([]*api.TaskInfo, 0, count)
	for _, t := range tasks {
		if t.Node != nil {
			placed = append(placed, t)
		}
	}
	return placed
}

// couldComplete reports whether enough tasks of classes that have not failed are left.
func couldComplete(ssn *framework.Session, job *api.JobInfo, rest []*api.TaskInfo, failed map[*api.EquivalenceClass]bool) bool {
	missing := job.MinMember - job.ReadyCount() - job.Count(api.Pipelined)
	for _, t := range rest {
		if missing <= 0 {
			break
		}
		if !failed[ssn.Cluster().ClassOf(t)] {
			missing--
		}
	}
	return missing <= 0
}

func signaturesDiffer(tasks []*api.TaskInfo) bool {
	for _, t := range tasks[1:] {
		if t.Signature != tasks[0].Signature {
			return true
		}
	}
	return false
}

// largestFirst orders the gang by the greatest share of the usable total that a task requests
// in any one dimension; tasks beyond the gang stay behind as substitutes.
func largestFirst(ssn *framework.Session, claim *api.Claim, tasks []*api.TaskInfo) []*api.TaskInfo {
	dims, total := ssn.Cluster().Dims(), ssn.Nodes().Total()
	sorted := slices.Clone(tasks)
	slices.SortStableFunc(sorted[:len(claim.Tasks)], func(a, b *api.TaskInfo) int {
		return dims.Dominant(b.Request, total).Compare(dims.Dominant(a.Request, total))
	})
	return sorted
}
