// Package place finds the best node for a task.
//
// Tasks of a class and priority are equal, so each such kind keeps one list of candidate nodes,
// ordered by score. A placement changes one node; that node alone is judged again, by every kind
// that is asked later. Classes that other pods have a say in (affinity, spread, volumes) are judged on
// all their nodes each time.
package place

import (
	"cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Placer places tasks in one session.
type Placer struct {
	ssn    *framework.Session
	kinds  map[kind]*candidates[api.Score]
	domain Domain
	seats  map[*api.TaskInfo]*api.NodeInfo

	idleOnly bool

	counted counted
	counts  api.NodeCounts
}

// kind is what makes tasks equal in where they fit: their class, and their priority, because
// nodes keep room for nominated pods of other schedulers, but not from tasks above them.
type kind struct {
	class    *api.Class
	priority int32
	when     api.When
}

// New returns a placer.
func New(ssn *framework.Session) *Placer {
	return &Placer{ssn: ssn, kinds: map[kind]*candidates[api.Score]{}}
}

// IdleOnly keeps the placements that follow off room that is being released, until called with false.
func (p *Placer) IdleOnly(on bool) { p.idleOnly = on }

// Seated restricts the placements that follow to one node for each task, until called with nil.
func (p *Placer) Seated(seats map[*api.TaskInfo]*api.NodeInfo) { p.seats = seats }

// Within restricts the placements that follow to a domain, until called with nil.
func (p *Placer) Within(domain Domain) { p.domain = domain }

// Place puts t on the best node, on idle room if there is any, else on room that is being
// released, and tells whether it found one. When the queue's caps allow t only once what its
// queue releases is gone, it is pipelined even on idle room.
func (p *Placer) Place(stmt *framework.Statement, t *api.TaskInfo) bool {
	if !p.ssn.Allocatable(t.Job, t.Request, api.Future) {
		return false
	}
	now := p.ssn.Allocatable(t.Job, t.Request, api.Now)
	if n := p.best(t, api.Now); n != nil {
		if now {
			stmt.Allocate(t, n)
		} else {
			stmt.Pipeline(t, n)
		}
		return true
	}
	if p.idleOnly {
		return false
	}
	if n := p.best(t, api.Future); n != nil {
		stmt.Pipeline(t, n)
		return true
	}
	return false
}

// best returns the best node with idle room for t, or nil; in the Future one with room once all
// that is being released there is gone.
func (p *Placer) best(t *api.TaskInfo, when api.When) *api.NodeInfo {
	if p.seats != nil {
		return p.seat(t, when)
	}
	class := p.ssn.Cluster().ClassOf(t)
	if p.domain != nil || alone(class) {
		return p.scan(t, when)
	}
	k := kind{class, t.Priority, when}
	c := p.kinds[k]
	if c == nil {
		c = newCandidates(p.ssn, t, p.score(when), highest)
		p.kinds[k] = c
	}
	return c.best(t)
}

// seat returns the node that is meant for t, if there is room.
func (p *Placer) seat(t *api.TaskInfo, when api.When) *api.NodeInfo {
	n := p.seats[t]
	if n == nil || !p.ssn.Passing(t.Shape).Has(n.Index) {
		return nil
	}
	if _, fits := p.score(when)(t, n); !fits {
		return nil
	}
	return n
}

// alone tells whether tasks of the class must be judged on all nodes each time.
func alone(class *api.Class) bool {
	return class.Social() || class.Shape.Volumes || class.Shape.Claims
}

func highest(a, b api.Score) int { return cmp.Compare(b, a) }

// score is the measure of nodes that have idle room, or in the Future where some is being released.
func (p *Placer) score(when api.When) measure[api.Score] {
	return func(t *api.TaskInfo, n *api.NodeInfo) (api.Score, bool) {
		if when == api.Future && !n.HasFutureRoom() || !n.Fits(t, when) || p.ssn.Predicate(t, n, when) != nil {
			return 0, false
		}
		return p.ssn.NodeScore(t, n), true
	}
}

// scan judges all nodes that pass the filters for t.
func (p *Placer) scan(t *api.TaskInfo, when api.When) *api.NodeInfo {
	nodes := p.ssn.Cluster().Nodes()
	var best *api.NodeInfo
	var bestScore api.Score
	p.ssn.Passing(t.Shape).Each(func(i int) {
		n := nodes[i]
		if when == api.Future && !n.HasFutureRoom() || p.domain != nil && !p.domain(n) {
			return
		}
		if !n.Fits(t, when) || p.ssn.Predicate(t, n, when) != nil {
			return
		}
		score := p.ssn.NodeScore(t, n)
		if best == nil || better(score, n, bestScore, best) {
			best, bestScore = n, score
		}
	})
	return best
}

// better orders by score, then by name.
func better(score api.Score, n *api.NodeInfo, than api.Score, other *api.NodeInfo) bool {
	if score != than {
		return score > than
	}
	return n.Name < other.Name
}

// Count says for every node of the cluster whether it has idle room for t, and if not why. Read only.
func (p *Placer) Count(t *api.TaskInfo) api.NodeCounts {
	class := p.ssn.Cluster().ClassOf(t)
	now := counted{kind{class, t.Priority, api.Now}, p.ssn.Cluster().Touched().Position()}
	if p.counted == now && !alone(class) {
		return p.counts
	}
	p.counted, p.counts = now, p.count(t)
	return p.counts
}

// counted says for which tasks nodes were counted, and at which position of the journal of touched
// nodes: many tasks of a kind may fail one after the other while nothing changes.
type counted struct {
	kind
	position uint64
}

func (p *Placer) count(t *api.TaskInfo) api.NodeCounts {
	var counts api.NodeCounts
	rooms := roomRefusals{dims: p.ssn.Cluster().Dims, aside: &api.Unfit{Reason: api.SetAside}}
	for _, n := range p.ssn.Cluster().Nodes() {
		if n != nil {
			counts.Count(p.judge(t, n, &rooms))
		}
	}
	counts.Sort()
	return counts
}

func (p *Placer) judge(t *api.TaskInfo, n *api.NodeInfo, rooms *roomRefusals) *api.Unfit {
	if unfit := p.ssn.Filter(t.Shape, n); unfit != nil {
		return unfit
	}
	if short := n.Short(t, api.Now); short >= 0 {
		if !n.Aside.IsZero() && t.Request.Fits(n.Idle) {
			return rooms.aside
		}
		return rooms.of(short)
	}
	return p.ssn.Predicate(t, n, api.Now)
}

// roomRefusals makes one refusal per dimension, and one for room that is set aside.
type roomRefusals struct {
	dims  *api.Dimensions
	known []*api.Unfit
	aside *api.Unfit
}

func (r *roomRefusals) of(dimension int) *api.Unfit {
	for dimension >= len(r.known) {
		r.known = append(r.known, nil)
	}
	if r.known[dimension] == nil {
		r.known[dimension] = &api.Unfit{Reason: api.NoRoom, Detail: string(r.dims.Name(dimension))}
	}
	return r.known[dimension]
}
