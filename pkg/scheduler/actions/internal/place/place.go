// Package place finds the best node for a task.
//
// Tasks of a class and priority are equal, so each such kind keeps one list of candidate nodes,
// ordered by score. A placement changes one node; that node alone is judged again, by every kind
// that is asked later. Classes that other pods have a say in (affinity, spread, volumes) are judged on
// all their nodes each time.
package place

import (
	"cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/internal/tournament"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// Placer places tasks in one session.
type Placer struct {
	ssn    *framework.Session
	kinds  map[kind]*candidates[api.Score]
	seen   seen
	domain Domain
	pinned map[*api.TaskInfo]*api.NodeInfo

	idleOnly bool

	scanned *tournament.Tree[api.Score]
}

// kind is what makes tasks equal in where they fit: their class, and their priority, because
// nodes keep room for nominated pods of other schedulers, but not from tasks above them.
type kind struct {
	class    *api.EquivalenceClass
	priority int32
	when     api.When
}

// New returns a placer.
func New(ssn *framework.Session) *Placer {
	return &Placer{ssn: ssn, kinds: map[kind]*candidates[api.Score]{}, scanned: tournament.New(ssn.Cluster().Nodes(), highest)}
}

// IdleOnly keeps the placements that follow off room that is being released, until called with false.
func (p *Placer) IdleOnly(on bool) { p.idleOnly = on }

// Pinned restricts the placements that follow to one node for each task, until called with nil.
func (p *Placer) Pinned(placements map[*api.TaskInfo]*api.NodeInfo) { p.pinned = placements }

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
	if p.pinned != nil {
		return p.pinnedNode(t, when)
	}
	class := p.ssn.Cluster().ClassOf(t)
	if p.domain != nil || !class.NodeLocal() {
		return p.scan(t, when)
	}
	k := kind{class, t.Priority, when}
	c := p.kinds[k]
	if c == nil {
		c = newCandidates(p.ssn, &p.seen, t, p.score(when), highest, p.among(when))
		p.kinds[k] = c
	}
	return c.best(t)
}

// pinnedNode returns the node that is meant for t, if there is room.
func (p *Placer) pinnedNode(t *api.TaskInfo, when api.When) *api.NodeInfo {
	n := p.pinned[t]
	if n == nil || !p.ssn.Nodes().Feasible(t.Signature).Has(n.Index) {
		return nil
	}
	if _, fits := p.score(when)(t, n); !fits {
		return nil
	}
	return n
}

// among narrows the nodes down to those that are known to be available, or where resources are being released.
func (p *Placer) among(when api.When) among {
	if when == api.Future {
		return func(*api.TaskInfo) *nodeindex.NodeSet { return p.ssn.Nodes().Releasing() }
	}
	return p.ssn.Nodes().KnownAvailable
}

func highest(a, b api.Score) int { return cmp.Compare(b, a) }

// score is the measure of nodes that have idle room, or in the Future where some is being released.
func (p *Placer) score(when api.When) measure[api.Score] {
	return func(t *api.TaskInfo, n *api.NodeInfo) (api.Score, bool) {
		if when == api.Future && !n.HasReleasing() || !n.Fits(t, when) || p.ssn.Predicate(t, n, when) != nil {
			return 0, false
		}
		return p.ssn.NodeScore(t, n), true
	}
}

// scan looks at all nodes that pass the filters for t. Scores cost little where predicates cost much, so
// the node with the best score is asked first.
func (p *Placer) scan(t *api.TaskInfo, when api.When) *api.NodeInfo {
	nodes := p.ssn.Cluster().Nodes()
	p.scanned.Fill(func(add func(*api.NodeInfo, api.Score)) {
		p.ssn.Nodes().Feasible(t.Signature).Each(func(i int) {
			n := nodes[i]
			if when == api.Future && !n.HasReleasing() || p.domain != nil && !p.domain(n) || !n.Fits(t, when) {
				return
			}
			add(n, p.ssn.NodeScore(t, n))
		})
	})
	for {
		best, _ := p.scanned.Best()
		if best == nil || p.ssn.Predicate(t, best, when) == nil {
			return best
		}
		p.scanned.Remove(best)
	}
}
