// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/tournament"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// innerCandidates are the candidates of one job inside single topology domains: its equivalence classes are not those of
// other jobs.
type innerCandidates struct {
	job *api.JobInfo
	of  map[innerKind]*candidates[api.Score]
}

type innerKind struct {
	kind
	domain *nodeindex.Domain
}

// domainOf returns the domain where t, which has a class, may be placed: a given one, or that where members of its job are;
// nil if these are all nodes.
func domainOf(ssn *framework.Session, t *api.TaskInfo, class *api.EquivalenceClass, given *Domain) *nodeindex.Domain {
	if given != nil {
		return given.Domain
	}
	if s := class.SubGroup; s != nil {
		if pinned := ssn.Nodes().Domains(s.TopologyLevel).OfSubGroup(t.Job, s); pinned != nil {
			return pinned
		}
	}
	if class.Level != nil {
		return ssn.Nodes().Domains(class.Level).OfJob(t.Job)
	}
	return nil
}

// membersAllow reports whether the members of t's gang, and of its subgroups, that have nodes leave all nodes of a domain to
// t. Then what predicates say about a node of the domain depends on the node alone.
//
// For example, no member of a gang that requires one rack has a node: any rack will do. As soon as one has a node in rack r1,
// that is the only rack; and of block b1, which contains it, most nodes are refused.
func membersAllow(ssn *framework.Session, t *api.TaskInfo, domain *nodeindex.Domain) bool {
	if level := t.Job.TopologyLevel; level != nil {
		if pinned := ssn.Nodes().Domains(level).OfJob(t.Job); pinned != nil && !pinned.Includes(domain) {
			return false
		}
	}
	for s := t.SubGroup(); s != nil; s = s.Parent {
		if s.TopologyLevel == nil {
			continue
		}
		if pinned := ssn.Nodes().Domains(s.TopologyLevel).OfSubGroup(t.Job, s); pinned != nil && !pinned.Includes(domain) {
			return false
		}
	}
	return true
}

// best returns the best node of a domain for t, or nil. Members allow all nodes of it.
func (i *innerCandidates) best(p *Placer, t *api.TaskInfo, k kind, domain *nodeindex.Domain) *api.NodeInfo {
	if i.job != t.Job || i.of == nil {
		i.job, i.of = t.Job, map[innerKind]*candidates[api.Score]{}
	}
	key := innerKind{k, domain}
	c := i.of[key]
	if c == nil {
		among := func(*api.TaskInfo) *nodeindex.NodeSet { return domain.Nodes() }
		c = newCandidates(p.ssn, &p.seen, t, p.score(k.when), highest, among)
		c.within = domain.Nodes()
		if nodes := p.ssn.Cluster().Nodes(); domain.Size()*entriesPerNode < len(nodes) {
			c.nodes = tournament.NewOfFew(nodes, highest, domain.Size())
			c.most = domain.Size() * entriesPerNode
		}
		i.of[key] = c
	}
	return c.best(t)
}
