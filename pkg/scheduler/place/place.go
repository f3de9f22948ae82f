// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package place finds the best node for a task.
//
// Tasks of one equivalence class and priority are equal, so the Placer keeps one list of candidate nodes
// for each such kind, ordered by score. A placement changes one node. Each kind that is used later evaluates that
// node again, and no other. Tasks that must be in one topology domain have such a list for each domain that is tried.
// Classes that depend on other pods or on volumes (affinity, spread) evaluate all their feasible nodes for each placement.
package place

import (
	"cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/tournament"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// Placer places tasks in one session.
type Placer struct {
	ssn   *framework.Session
	kinds map[kind]*candidates[api.Score]
	inner innerCandidates
	seen  seen

	scanned *tournament.Tree[api.Score]
}

// kind is what makes tasks equal in where they fit: their class, and their priority, because
// nodes reserve resources for nominated pods of other schedulers, except against tasks of higher priority.
type kind struct {
	class    *api.EquivalenceClass
	priority int32
	when     api.When
}

// New returns a placer.
func New(ssn *framework.Session) *Placer {
	return &Placer{ssn: ssn, kinds: map[kind]*candidates[api.Score]{}, scanned: tournament.New(ssn.Cluster().Nodes(), highest)}
}

// Options restrict where tasks may be placed. The zero value allows all nodes.
type Options struct {
	// IdleOnly excludes resources that are being released.
	IdleOnly bool
	// Nodes is the one node for each task; tasks that are not in it cannot be placed. Nil allows all nodes.
	Nodes map[*api.TaskInfo]*api.NodeInfo
	// Allowed reports whether a node may be used; nil allows all nodes.
	Allowed func(*api.NodeInfo) bool
	// Domain is the domain of all tasks; nil allows all nodes.
	Domain *Domain
}

// Place puts t on the best node that the options allow: on idle resources if there are any, else on
// resources that are being released. It reports whether it found a node. If the queue's caps allow t only
// once the resources are free that the queue releases, Place pipelines t even on idle resources.
func (p *Placer) Place(stmt *framework.Statement, t *api.TaskInfo, o Options) bool {
	if !p.ssn.Allocatable(t.Job, t.ShareRequest, api.Future) {
		return false
	}
	now := p.ssn.Allocatable(t.Job, t.ShareRequest, api.Now)
	if n := p.best(t, api.Now, o); n != nil {
		if now {
			stmt.Allocate(t, n)
		} else {
			stmt.Pipeline(t, n)
		}
		return true
	}
	if o.IdleOnly {
		return false
	}
	if n := p.best(t, api.Future, o); n != nil {
		stmt.Pipeline(t, n)
		return true
	}
	return false
}

// best returns the best node with idle resources for t, or nil; in the Future, one that has enough once all
// that is being released there is free.
func (p *Placer) best(t *api.TaskInfo, when api.When, o Options) *api.NodeInfo {
	if o.Nodes != nil {
		return p.givenNode(t, when, o.Nodes[t])
	}
	class := p.ssn.Cluster().ClassOf(t)
	domain := domainOf(p.ssn, t, class, o.Domain)
	k := kind{class, t.Priority, when}
	switch {
	case o.Allowed == nil && domain != nil && class.NodeLocalInDomain() && membersAllow(p.ssn, t, domain):
		return p.inner.best(p, t, k, domain)
	case domain != nil:
		return p.scan(t, when, domain.Nodes(), o.Allowed)
	case o.Allowed != nil || !class.NodeLocal():
		return p.scan(t, when, nil, o.Allowed)
	}
	c := p.kinds[k]
	if c == nil {
		c = newCandidates(p.ssn, &p.seen, t, p.score(when), highest, p.among(when))
		p.kinds[k] = c
	}
	return c.best(t)
}

// givenNode returns n if it can take t, else nil. It accepts nil.
func (p *Placer) givenNode(t *api.TaskInfo, when api.When, n *api.NodeInfo) *api.NodeInfo {
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

// score is the measure of nodes on which t fits now, or in the Future once resources are released there.
func (p *Placer) score(when api.When) measure[api.Score] {
	return func(t *api.TaskInfo, n *api.NodeInfo) (api.Score, bool) {
		if when == api.Future && !n.HasReleasing() || !n.Fits(t, when) || p.ssn.Predicate(t, n, when) != nil {
			return 0, false
		}
		return p.ssn.NodeScore(t, n), true
	}
}

// scan looks at all allowed nodes of a set that pass the filters for t; nil is the set of all nodes. Scores cost little where
// predicates cost much, so the node with the best score is asked first.
func (p *Placer) scan(t *api.TaskInfo, when api.When, among *nodeindex.NodeSet, allowed func(*api.NodeInfo) bool) *api.NodeInfo {
	nodes, feasible := p.ssn.Cluster().Nodes(), p.ssn.Nodes().Feasible(t.Signature)
	if among == nil {
		among = feasible
	}
	p.scanned.Fill(func(add func(*api.NodeInfo, api.Score)) {
		among.Each(func(i int) {
			n := nodes[i]
			if !feasible.Has(i) || when == api.Future && !n.HasReleasing() || allowed != nil && !allowed(n) || !n.Fits(t, when) {
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
