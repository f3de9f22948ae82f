// Package evict plans evictions: it finds the least that has to go so that a claim fits, and
// places the claim on the room that this will set free.
//
// A plan is made on a statement. The tasks of the claim are placed one by one: on room that is
// there if there is any, else on the node where the cheapest units set enough of it free. Nodes are
// kept in a heap by that cost, and only those that have changed are looked at again. At the end
// units that turned out not to be needed are given back.
package evict

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/internal/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Rules say what a plan may take.
type Rules struct {
	// May tells whether a job may be asked for units at all; asked often, it must be cheap.
	May func(*api.JobInfo) bool
	// Admits asks the plugins whether a unit may go, given what the plan has taken so far.
	Admits func(*api.Claim, api.Unit) bool
	// SurplusOnly leaves gangs whole.
	SurplusOnly bool
}

// Planner makes plans in one session.
type Planner struct {
	ssn    *framework.Session
	placer *place.Placer
}

// New returns a planner.
func New(ssn *framework.Session) *Planner {
	return &Planner{ssn: ssn, placer: place.New(ssn)}
}

// Plan carries the claim out on the statement, with the evictions that it takes. It fails without a
// trace, also if it takes none. Among plans it prefers those whose victims have lower priority, and
// among those one that breaks no gang.
func (p *Planner) Plan(stmt *framework.Statement, claim *api.Claim, rules Rules) bool {
	for _, limit := range p.levels(claim, rules) {
		for _, gangs := range []bool{false, true} {
			if gangs && rules.SurplusOnly {
				continue
			}
			a := &attempt{Planner: p, stmt: stmt, claim: claim, rules: rules, limit: limit, gangs: gangs,
				stays: map[*api.TaskInfo]bool{}, whole: map[*api.JobInfo]bool{}, kinds: map[kind]*nodes{}}
			if a.run() {
				if a.giveBack(); len(a.taken) == 0 {
					stmt.Discard()
					return false // fits as it is
				}
				return true
			}
			stmt.Discard()
		}
	}
	return false
}

// levels returns the priorities that victims have, lowest first.
func (p *Planner) levels(claim *api.Claim, rules Rules) []int32 {
	seen := map[int32]bool{}
	for _, j := range p.ssn.Cluster().Jobs {
		if !victim(j) || !rules.May(j) {
			continue
		}
		for _, t := range j.Tasks {
			if t.Evictable() {
				seen[rank(claim, t)] = true
			}
		}
	}
	var list []int32
	for level := range seen {
		list = append(list, level)
	}
	slices.Sort(list)
	return list
}

// victim tells whether the job's members may be evicted at all: while some of them are on their
// way to their nodes, the job is left alone.
func victim(j *api.JobInfo) bool {
	return j.Holding() > 0 && j.Count(api.Allocated)+j.Count(api.Binding)+j.Count(api.Pipelined) == 0
}

// rank is the priority by which a victim counts: its job's, or its own among tasks of one job.
func rank(claim *api.Claim, t *api.TaskInfo) int32 {
	if t.Job == claim.Job {
		return t.Priority
	}
	return t.Job.Priority
}

// attempt is one try at a plan.
type attempt struct {
	*Planner
	stmt  *framework.Statement
	claim *api.Claim
	rules Rules
	limit int32 // no victim ranks higher
	gangs bool  // gangs may go as a whole

	taken []api.Unit             // in the order of their eviction
	stays map[*api.TaskInfo]bool // refused by a plugin as a single
	whole map[*api.JobInfo]bool  // refused by a plugin as a whole
	kinds map[kind]*nodes
}

func (a *attempt) run() bool {
	for _, t := range a.claim.Tasks {
		if !a.placer.Place(a.stmt, t) && !a.makeRoom(t) {
			return false
		}
	}
	return true
}

// makeRoom evicts what is cheapest for t and places it there.
func (a *attempt) makeRoom(t *api.TaskInfo) bool {
	if !a.ssn.Allocatable(t.Job, t.Request, api.Future) {
		return false
	}
	candidates := a.nodesFor(t)
	for {
		node, units := candidates.cheapest(a, t)
		if node == nil {
			return false
		}
		mark, taken := a.stmt.Mark(), len(a.taken)
		if a.take(units) {
			if node.Fits(t, api.Future) && a.ssn.Predicate(t, node, api.Future) == nil {
				a.stmt.Pipeline(t, node)
				return true
			}
			candidates.drop(node) // something else than room keeps t away
		}
		a.stmt.RollbackTo(mark)
		a.taken = a.taken[:taken]
	}
}

// take evicts units one by one as far as disruption budgets and the plugins admit; the first
// refusal ends it, and is remembered.
func (a *attempt) take(units []api.Unit) bool {
	for _, u := range units {
		if !a.ssn.Cluster().BudgetsAllow(u) || !a.rules.Admits(a.claim, u) {
			if u.Whole {
				a.whole[u.Job] = true
			} else {
				a.stays[u.Tasks[0]] = true
			}
			return false
		}
		for _, t := range u.Tasks {
			a.stmt.Evict(t, a.claim.Job)
		}
		a.taken = append(a.taken, u)
	}
	return true
}

// giveBack returns units that the plan does not need, last first. A gang that has gone keeps its
// surplus from coming back, because that alone could not run.
func (a *attempt) giveBack() {
	broken := map[*api.JobInfo]bool{}
	kept := a.taken[:0:0]
	for _, u := range slices.Backward(a.taken) {
		if broken[u.Job] || !a.spare(u) {
			kept = append(kept, u)
			broken[u.Job] = broken[u.Job] || u.Whole
		}
	}
	slices.Reverse(kept)
	a.taken = kept
}

// spare takes a unit out of the plan if the claim still fits.
func (a *attempt) spare(u api.Unit) bool {
	touched := map[*api.NodeInfo]bool{}
	for _, t := range u.Tasks {
		touched[t.Node] = true
		a.stmt.Revoke(t)
	}
	for _, t := range a.claim.Tasks {
		if (touched[t.Node] || a.ssn.Cluster().ClassOf(t).Social()) && !a.fitsAgain(t) {
			for _, victim := range u.Tasks {
				a.stmt.Evict(victim, a.claim.Job)
			}
			return false
		}
	}
	return true
}

// fitsAgain tells whether t, taken off its node, could go there.
func (a *attempt) fitsAgain(t *api.TaskInfo) bool {
	node, status := t.Node, t.Status
	a.stmt.Revoke(t)
	when := api.Future
	if status == api.Allocated {
		when = api.Now
	}
	fits := node.Fits(t, when) && a.ssn.Predicate(t, node, when) == nil
	if status == api.Allocated {
		a.stmt.Allocate(t, node)
	} else {
		a.stmt.Pipeline(t, node)
	}
	return fits
}
