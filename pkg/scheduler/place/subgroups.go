// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/subgroups"
)

// trySubGroups is try for a gang with subgroups. Those that fit the fewest nodes come first, and in a second attempt last.
func trySubGroups(ssn *framework.Session, stmt *framework.Statement, job *api.JobInfo, tasks []*api.TaskInfo, place func(*framework.Statement, *api.TaskInfo) bool) *Failure {
	p := &placing{stmt, place}
	hardest := hardestFirst(ssn)
	ok, failed, placed := subgroups.Place(job, tasks, p, hardest)
	if ok {
		return nil
	}
	if again, _, _ := subgroups.Place(job, tasks, p, func(a, b *api.TaskInfo) int { return hardest(b, a) }); again {
		return nil
	}
	if failed == nil { // fewer members than needed; only without the gang plugin's check
		failed = tasks[len(tasks)-1]
	}
	return &Failure{Task: failed, Placed: placed}
}

// hardestFirst orders by the number of nodes that pass the filters, then by the share of the cluster that a task requests.
func hardestFirst(ssn *framework.Session) subgroups.Order {
	dims, total := ssn.Cluster().Dims(), ssn.Nodes().Total()
	return func(a, b *api.TaskInfo) int {
		return cmp.Or(
			cmp.Compare(ssn.Nodes().Feasible(a.Signature).Len(), ssn.Nodes().Feasible(b.Signature).Len()),
			dims.Dominant(b.Request, total).Compare(dims.Dominant(a.Request, total)))
	}
}

// placing places tasks in a statement.
type placing struct {
	stmt  *framework.Statement
	place func(*framework.Statement, *api.TaskInfo) bool
}

func (p *placing) Place(t *api.TaskInfo) bool { return p.place(p.stmt, t) }

func (p *placing) Mark() int { return int(p.stmt.Mark()) }

func (p *placing) Undo(mark int) { p.stmt.RollbackTo(framework.Mark(mark)) }
