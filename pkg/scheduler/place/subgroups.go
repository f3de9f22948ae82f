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
func trySubGroups(ssn *framework.Session, stmt *framework.Statement, job *api.JobInfo, tasks []*api.TaskInfo, s search) *Failure {
	p := newPlacing(ssn, stmt, job, tasks, s)
	hardest := hardestFirst(ssn)
	ok, failed, placed := subgroups.Place(job, tasks, p, hardest)
	if ok {
		return nil
	}
	if p.asked { // else no domain holds a subgroup by the counts, whatever comes first
		again := newPlacing(ssn, stmt, job, tasks, s)
		if ok, _, _ := subgroups.Place(job, tasks, again, func(a, b *api.TaskInfo) int { return hardest(b, a) }); ok {
			return nil
		}
	}
	if failed == nil { // no domain holds a subgroup; or fewer members than needed, only without the gang plugin's check
		failed = p.first(tasks)
	}
	return &Failure{Task: failed, Placed: placed, Count: p.count}
}

// placeSurplus places a segment or an optional subgroup, which is all that the claim has.
func placeSurplus(ssn *framework.Session, stmt *framework.Statement, claim *api.Claim, s search) *Failure {
	p := newPlacing(ssn, stmt, claim.Job, claim.Tasks, s)
	ok, failed := subgroups.PlaceSurplus(claim.Job, claim.Tasks, p)
	if ok {
		return nil
	}
	if failed == nil {
		failed = p.first(claim.Tasks)
	}
	return &Failure{Task: failed, Count: p.count}
}

// hardestFirst orders by the number of nodes that pass the filters, then by the share of the cluster that a task requests,
// or all tasks that must be in one domain with it.
func hardestFirst(ssn *framework.Session) subgroups.Order {
	dims, total := ssn.Cluster().Dims(), ssn.Nodes().Total()
	share := func(t *api.TaskInfo) api.Share {
		request := t.Request
		if s := t.ConstrainedSubGroup(); s != nil {
			request = request.Times(int64(s.Lacks(pipelinedIn)))
		}
		return dims.Dominant(request, total)
	}
	return func(a, b *api.TaskInfo) int {
		return cmp.Or(
			cmp.Compare(ssn.Nodes().Feasible(a.Signature).Len(), ssn.Nodes().Feasible(b.Signature).Len()),
			share(b).Compare(share(a)))
	}
}

func pipelinedIn(s *api.SubGroup) int32 { return s.PipelinedCount() }

// placing places the tasks of a gang with subgroups in a statement.
type placing struct {
	ssn    *framework.Session
	stmt   *framework.Statement
	job    *api.JobInfo
	search search
	domain *Domain // of the subgroup that is being filled; nil: all nodes

	waiting map[*api.SubGroup][]*api.TaskInfo // of each subgroup itself, without its children
	lacking map[*api.SubGroup][]kindOfTasks   // see lacks; since the last placement
	orders  map[*api.SubGroup]segmentOrder    // by the subgroup that is divided into the segments; since the last undo
	tries   int                               // of domains, in vain
	asked   bool                              // for a node
	failed  *api.SubGroup                     // the first subgroup that no domain held
	count   *api.DomainCount                  // of that subgroup
}

func newPlacing(ssn *framework.Session, stmt *framework.Statement, job *api.JobInfo, tasks []*api.TaskInfo, s search) *placing {
	p := &placing{ssn: ssn, stmt: stmt, job: job, search: s, domain: s.domain}
	if level := job.TopologyLevel; level != nil && p.domain == nil {
		if pinned := ssn.Nodes().Domains(level).OfJob(job); pinned != nil {
			p.domain = &Domain{Domain: pinned, Level: level}
		}
	}
	if job.SubGroups.HasConstraint() {
		p.waiting = map[*api.SubGroup][]*api.TaskInfo{}
		for _, t := range tasks {
			p.waiting[t.SubGroup()] = append(p.waiting[t.SubGroup()], t)
		}
	}
	return p
}

func (p *placing) Place(t *api.TaskInfo) bool {
	p.lacking, p.asked = nil, true
	return p.search.place(p.stmt, t, p.domain)
}

func (p *placing) Mark() int { return int(p.stmt.Mark()) }

func (p *placing) Undo(mark int) {
	p.stmt.RollbackTo(framework.Mark(mark))
	p.lacking, p.orders = nil, nil
}

// Within fills a subgroup in one of the domains that could hold it, inside the domain of the subgroup around it.
func (p *placing) Within(s *api.SubGroup, fill func() bool) bool {
	outer := p.domain
	defer func() { p.domain = outer }()
	for _, d := range p.domainsOf(s) {
		p.domain = &Domain{Domain: d, Level: s.TopologyLevel}
		if fill() {
			return true
		}
		if p.tries++; p.tries >= maxDomainTries {
			break
		}
	}
	p.domain = outer
	if p.failed == nil {
		p.failed, p.count = s, p.countIn(s)
	}
	return false
}

// first returns the first of the tasks that the failed subgroup lacks, or the last of all.
func (p *placing) first(tasks []*api.TaskInfo) *api.TaskInfo {
	for _, t := range tasks {
		if p.failed != nil && t.SubGroup().Within(p.failed) {
			return t
		}
	}
	return tasks[len(tasks)-1]
}
