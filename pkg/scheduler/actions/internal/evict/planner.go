// Package evict plans evictions: it finds the least that has to go so that a claim fits, and
// places the claim on the room that this will set free.
//
// A plan is made on a statement. The tasks of the claim are placed one by one: on room that is
// there if there is any, else on the node where the cheapest units set enough of it free. Nodes are
// kept in the order of that cost, and only those that have changed are looked at again. At the end
// units that turned out not to be needed are given back.
package evict

import (
	"math"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// Rules say what the plans of an action may take.
type Rules struct {
	// Cause is why victims go. What is remembered of claims is remembered for it.
	Cause api.EvictionCause
	// VictimQueues returns the queues that may have to give, who gives first first; asked before each
	// task, so shares are live.
	VictimQueues func() []*api.QueueInfo
	// May tells whether a job of a giver may be asked for units at all; asked often, it must be cheap.
	May func(*api.JobInfo) bool
	// Admits asks the plugins whether a unit may go, given what the plan has taken so far.
	Admits func(*api.Claim, api.Unit) bool
	// PreFilter is a quick necessary condition, asked before a plan is searched for; nil: there is none.
	PreFilter func(*api.Claim) bool
	// Accepts has the last word on a plan as a whole; nil: all are good.
	Accepts func(*api.Claim) bool
	// SurplusOnly leaves gangs whole.
	SurplusOnly bool
}

// Planner makes plans in one session.
type Planner struct {
	ssn      *framework.Session
	placer   *place.Placer
	victims  *victims
	searches map[string]*search

	withSurplus  []*api.JobInfo // jobs that had surplus when it was first asked for; it only dwindles
	surplusKnown bool
}

// New returns a planner.
func New(ssn *framework.Session) *Planner {
	return &Planner{ssn: ssn, placer: place.New(ssn), victims: newVictims(), searches: map[string]*search{}}
}

// KnownInfeasible tells whether a claim like this has found no plan since the model changed.
func (p *Planner) KnownInfeasible(claim *api.Claim, rules Rules) bool {
	return p.searchFor(claim, rules).hopeless(claim)
}

// Plan carries the claim out on the statement, with the evictions that it takes, and tells whether it
// could. It fails without a trace, also if it takes no evictions. Among plans it prefers those whose
// victims have lower priority, and among those one that breaks no gang. Jobs that have evicted in
// vain not long ago have to wait, and what has no plan is not asked again until the model changes.
func (p *Planner) Plan(stmt *framework.Statement, claim *api.Claim, rules Rules) bool {
	if !p.ssn.EvictionAllowed(claim.Job) || !completes(claim) {
		return false
	}
	s := p.searchFor(claim, rules)
	if s.hopeless(claim) {
		return false
	}
	if !p.hasCandidates(claim, rules) {
		s.giveUp(claim)
		return false
	}
	for _, within := range p.domains(claim) {
		a := &attempt{Planner: p, stmt: stmt, claim: claim, rules: rules, search: s, domain: within}
		switch a.plan() {
		case found:
			return true
		case needless:
			return false
		}
	}
	s.giveUp(claim)
	return false
}

// completes tells whether the claim's job has enough members with it. A gang that has lost members
// in this session may wait with too few.
func completes(claim *api.Claim) bool {
	return claim.Job.ReadyCount()+claim.Job.Count(api.Pipelined)+int32(len(claim.Tasks)) >= claim.Job.MinMember
}

// hasCandidates reports whether the plugins admit any unit at all. To find that out job by job costs much less than to
// search all nodes, and in queues full of equal jobs the plugins admit none.
func (p *Planner) hasCandidates(claim *api.Claim, rules Rules) bool {
	if rules.PreFilter != nil && !rules.PreFilter(claim) {
		return false
	}
	for _, q := range rules.VictimQueues() {
		for _, j := range q.Jobs {
			if victim(j) && rules.May(j) && p.anyUnit(claim, rules, j) {
				return true
			}
		}
	}
	return false
}

// anyUnit reports whether the plugins admit any unit of a job: the rest of its gang as a whole, or one of its
// surplus.
func (p *Planner) anyUnit(claim *api.Claim, rules Rules, j *api.JobInfo) bool {
	rest := p.victims.rest(j).unit
	if !rules.SurplusOnly && len(rest.Tasks) > 0 && rules.Admits(claim, rest) {
		return true
	}
	return j.Surplus() > 0 && slices.ContainsFunc(rest.Tasks, func(t *api.TaskInfo) bool {
		return rules.Admits(claim, api.NewUnit(j, []*api.TaskInfo{t}))
	})
}

// result is what comes of an attempt.
type result int8

const (
	impossible result = iota
	found
	needless // the claim fits without evictions, and is left to allocate
)

// attempt is one try at a plan.
type attempt struct {
	*Planner
	stmt   *framework.Statement
	claim  *api.Claim
	rules  Rules
	search *search
	domain place.Domain // nil: all nodes

	limit       int32 // no victim's job has a higher priority
	surplusOnly bool  // no gang is broken

	taken    []api.Unit             // in the order of their eviction
	stays    map[*api.TaskInfo]bool // refused by a plugin as a single
	whole    map[*api.JobInfo]bool  // refused by a plugin as a whole
	offers   map[candidateKey]*candidates
	bundle   victimSet
	relieved bool // units have gone so that the queue's caps allow more
}

// begin starts afresh.
func (a *attempt) begin(limit int32, surplusOnly bool) {
	a.limit, a.surplusOnly, a.relieved = limit, surplusOnly, false
	a.taken, a.stays, a.whole = nil, map[*api.TaskInfo]bool{}, map[*api.JobInfo]bool{}
	a.offers, a.search.offers = a.search.offers, nil
	if a.offers == nil || limit < math.MaxInt32 || a.domain != nil {
		a.offers = map[candidateKey]*candidates{}
	}
}

// leave lets the next attempt for such a claim begin with the offers of this one, unless they are
// about this claim alone.
func (a *attempt) leave() {
	if a.limit == math.MaxInt32 && a.domain == nil && a.claim.Job.Holding() == 0 {
		a.search.offers = a.offers
	}
}

// plan finds the best plan. Victims of the lowest priorities are found by taking cheapest first; if
// gangs had to be broken for it, surplus of no higher priority is tried instead.
func (a *attempt) plan() result {
	if a.begin(math.MaxInt32, a.rules.SurplusOnly); !a.run() {
		a.stmt.Discard()
		if len(a.stays)+len(a.whole) == 0 { // nothing that the next could be told otherwise
			a.leave()
		}
		return impossible
	}
	if highest, gangs := a.highestVictimPriority(); gangs && a.surplusUpTo(highest) {
		a.stmt.Discard()
		if a.begin(highest, true); !a.run() {
			a.stmt.Discard()
			a.begin(math.MaxInt32, a.rules.SurplusOnly)
			a.run()
		}
	}
	a.reprieve()
	switch {
	case len(a.taken) == 0:
		a.stmt.Discard()
		return needless
	case a.rules.Accepts != nil && !a.rules.Accepts(a.claim):
		a.stmt.Discard()
		return impossible
	}
	a.leave()
	return found
}

// highestVictimPriority returns the highest priority of a victim, and whether gangs are broken.
func (a *attempt) highestVictimPriority() (highest int32, gangs bool) {
	for i, u := range a.taken {
		for _, t := range u.Tasks {
			if r := rank(a.claim, t); i == 0 || r > highest {
				highest = r
			}
		}
		gangs = gangs || u.Whole
	}
	return highest, gangs
}

// surplusUpTo tells whether there is any surplus that could go instead of a gang.
func (a *attempt) surplusUpTo(limit int32) bool {
	if !a.surplusKnown {
		a.surplusKnown = true
		for _, j := range a.ssn.Cluster().Jobs() {
			if j.Surplus() > 0 && victim(j) {
				a.withSurplus = append(a.withSurplus, j)
			}
		}
	}
	victimQueues := a.rules.VictimQueues()
	return slices.ContainsFunc(a.withSurplus, func(j *api.JobInfo) bool {
		return j.Priority <= limit && j.Surplus() > 0 && slices.Contains(victimQueues, j.Queue) && a.rules.May(j)
	})
}

func (a *attempt) run() bool {
	for _, t := range a.claim.Tasks {
		if !a.placer.Place(a.stmt, t, place.Options{Domain: a.domain}) && !a.makeRoom(t) {
			return false
		}
	}
	return true
}

func (a *attempt) within(n *api.NodeInfo) bool { return a.domain == nil || a.domain(n) }

// makeRoom evicts what is cheapest for t and places it there. One giver is asked after the other,
// and at last all together.
func (a *attempt) makeRoom(t *api.TaskInfo) bool {
	if !a.ssn.Allocatable(t.Job, t.Request, api.Future) {
		if !a.makeRoomUnderCaps(t) {
			return false
		}
		if a.placer.Place(a.stmt, t, place.Options{Domain: a.domain}) {
			return true
		}
	}
	victimQueues := a.rules.VictimQueues()
	if len(victimQueues) > 1 {
		victimQueues = append(slices.Clip(victimQueues), nil)
	}
	for _, victimQueue := range victimQueues {
		if a.makeRoomFrom(victimQueue, t) {
			return true
		}
	}
	return false
}

func (a *attempt) makeRoomFrom(victimQueue *api.QueueInfo, t *api.TaskInfo) bool {
	offers := a.offersFor(t, victimQueue)
	for {
		node, units := offers.cheapest(a, t)
		if node == nil {
			return false
		}
		mark, taken := a.stmt.Mark(), len(a.taken)
		if a.take(units...) {
			if a.settle(t, node, victimQueue) {
				return true
			}
			offers.drop(node) // something else than room and neighbours keeps t away
		}
		a.rollBack(mark, taken)
		offers.look(a, t, node)
	}
}

func (a *attempt) rollBack(mark framework.Mark, taken int) {
	a.stmt.RollbackTo(mark)
	a.taken = a.taken[:taken]
}

// settle places t on a node where there is room for it now. If neighbours keep it away, they are
// evicted one by one until nobody does; those who did not matter are given back in the end.
func (a *attempt) settle(t *api.TaskInfo, node *api.NodeInfo, victimQueue *api.QueueInfo) bool {
	if a.fits(t, node) {
		a.stmt.Pipeline(t, node)
		return true
	}
	if !a.neighbourly(t) {
		return false
	}
	for _, v := range slices.Clone(a.victims.on(node)) {
		if v.Status == api.Releasing || !a.mayEvict(v.Job, victimQueue) {
			continue
		}
		if unit, ok := a.unitOf(v); ok && a.take(unit) && a.fits(t, node) {
			a.stmt.Pipeline(t, node)
			return true
		}
	}
	return false
}

// unitOf returns the unit in which a pod may go next.
func (a *attempt) unitOf(v *api.TaskInfo) (api.Unit, bool) {
	if v.Job.Surplus() > 0 && !a.stays[v] {
		return api.NewUnit(v.Job, []*api.TaskInfo{v}), true
	}
	if a.surplusOnly || a.whole[v.Job] {
		return api.Unit{}, false
	}
	return a.victims.rest(v.Job).unit, true
}

func (a *attempt) fits(t *api.TaskInfo, node *api.NodeInfo) bool {
	return node.Fits(t, api.Future) && a.ssn.Predicate(t, node, api.Future) == nil
}

// take evicts units one by one as far as disruption budgets and the plugins admit; the first
// refusal ends it, and is remembered.
func (a *attempt) take(units ...api.Unit) bool {
	for _, u := range units {
		if !a.admits(u) {
			if u.Whole {
				a.whole[u.Job] = true
			} else {
				a.stays[u.Tasks[0]] = true
			}
			return false
		}
		for _, t := range u.Tasks {
			a.stmt.Evict(t, a.claim.Job, a.rules.Cause)
		}
		a.taken = append(a.taken, u)
	}
	return true
}

func (a *attempt) admits(u api.Unit) bool {
	if !a.rules.Admits(a.claim, u) {
		return false
	}
	if a.ssn.Cluster().BudgetsAllow(u) {
		return true
	}
	for _, t := range u.Tasks {
		a.search.protected[t] = struct{}{}
	}
	return false
}

// admitsFirst asks about a unit when it comes into an offer, if the plan has taken nothing yet: who
// stays then stays in any plan. Later it is asked when it is taken.
func (a *attempt) admitsFirst(u api.Unit) bool {
	if len(a.taken) > 0 {
		return true
	}
	return a.search.admits(u, a.admits)
}
