// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// Failure is the result of a failed attempt to place a gang: the first task that did not fit, and the tasks
// that had been placed by the end of the attempt. Domain is not nil if the gang must be in one domain: then the attempt
// is the one that placed the most tasks. Count is not nil if a subgroup must be in one domain and none holds it. Verdict is
// not nil if all tasks had nodes, and a plugin keeps the gang from starting.
type Failure struct {
	Task    *api.TaskInfo
	Placed  []*api.TaskInfo
	Domain  *Domain
	Count   *api.DomainCount
	Verdict *api.Verdict
}

// placeAll places all tasks of a claim, or changes nothing.
func placeAll(ssn *framework.Session, stmt *framework.Statement, claim *api.Claim, s search) *Failure {
	if claim.Job.SubGroups.HasConstraint() {
		return placeSurplus(ssn, stmt, claim, s)
	}
	start := stmt.Mark()
	for _, t := range claim.Tasks {
		if !s.place(stmt, t, s.domain) {
			stmt.RollbackTo(start)
			return &Failure{Task: t}
		}
	}
	return nil
}

// search is how an attempt searches for nodes.
type search struct {
	domain *Domain // of all tasks; nil: all nodes
	// place places a task in a domain, which is domain or inside it; nil stands for all nodes. It reports whether it found a node.
	place func(stmt *framework.Statement, t *api.TaskInfo, in *Domain) bool
	// fit returns how many tasks like t fit in each domain by the counts.
	fit func(*nodeindex.Domains, *api.TaskInfo) nodeindex.DomainCounts
	// before returns the domains that the gang chose before, which are tried first; nil: it chose none.
	before func(*nodeindex.Domains) map[*nodeindex.Domain]bool
}

// try places tasks in the given order until the gang is complete; nil on success. A class
// without a node does not stop the others, because the gang may be completed by them.
func try(ssn *framework.Session, stmt *framework.Statement, job *api.JobInfo, tasks []*api.TaskInfo, s search) *Failure {
	if job.SubGroups != nil {
		return trySubGroups(ssn, stmt, job, tasks, s)
	}
	start := stmt.Mark()
	var first *Failure
	failed := map[*api.EquivalenceClass]bool{}
	for i, t := range tasks {
		class := ssn.Cluster().ClassOf(t)
		if failed[class] {
			continue
		}
		if !s.place(stmt, t, s.domain) {
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
