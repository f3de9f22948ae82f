// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeorder

import (
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// packing is the state of the scorer topologypacking.
//
// Gangs that require a rack need racks that are free as a whole, and a small pod that runs in a rack breaks it. So the scorer
// prefers nodes where more of the domain is in use. The domain of a node is the narrowest one that has more than one node:
// a level of single nodes, such as the host, says nothing. For example, members of queues hold resources on 3 of the 4 nodes
// of rack r1, and on none of r2:
//
//	score of the nodes of r1    3/4 of api.OneScore
//	score of the nodes of r2    0
//
// The scores are those of the beginning of the session. A placement must change the score of its own node only, see api.Score,
// so it cannot change the share of its domain before the next session.
type packing struct {
	topology string // the name; empty: the only one

	// What scores were computed of; empty if the topology is unknown.
	scores  []api.Score // by node index
	cluster api.ClusterView
	reader  api.JournalReader
	levels  []*api.TopologyLevel

	missing time.Time // since when the topology is unknown; zero if it is known
	logged  bool      // that it is unknown
}

// missingAfter is how long a topology is unknown before that is logged. The first sessions begin before topologies are read.
const missingAfter = time.Minute

// open computes the scores of a session. Nodes and their domains do not change until the session closes.
func (p *packing) open(ssn *framework.Session) {
	levels, unknown := ssn.TopologyLevels(p.topology)
	if unknown != "" {
		p.scores, p.cluster, p.levels = nil, nil, nil
		p.report(ssn, unknown)
		return
	}
	p.missing, p.logged = time.Time{}, false
	nodes, journal := ssn.Cluster().Nodes(), ssn.Cluster().NodeChanges()
	if ssn.Cluster() == p.cluster && p.reader.UpToDate(journal) && slices.Equal(levels, p.levels) {
		return
	}
	p.reader.CatchUp(journal, 0)
	p.cluster, p.levels = ssn.Cluster(), levels
	p.scores = append(p.scores[:0], make([]api.Score, len(nodes))...)
	for _, level := range levels { // a narrower one replaces the scores of a wider one
		domains := ssn.Nodes().Domains(level)
		inUse := domains.InUse()
		for _, domain := range domains.All() {
			if domain.Size() == 1 {
				continue
			}
			score := api.OneScore * api.Score(inUse.In(domain)) / api.Score(domain.Size())
			domain.Nodes().Each(func(i int) { p.scores[i] = score })
		}
	}
}

// report logs once that the topology is unknown.
func (p *packing) report(ssn *framework.Session, unknown string) {
	if p.missing.IsZero() {
		p.missing = ssn.Now
	}
	if !p.logged && ssn.Now.Sub(p.missing) >= missingAfter {
		p.logged = true
		ssn.Log.Info("Topology not found, topologypacking has no effect", "topology", p.topology, "reason", unknown)
	}
}

// requiresDomain reports whether a task must be in a domain with its gang, which package place then chooses. It is the same
// for all tasks of an equivalence class.
func requiresDomain(t *api.TaskInfo) bool { return t.Job != nil && t.Job.TopologyLevel != nil }

func packsDomains(q *scoreState) bool { return !q.pinned && len(q.packing.scores) > 0 }

func topologyPacking(q *scoreState, n *api.NodeInfo) api.Score {
	if n.Index < 0 || n.Index >= len(q.packing.scores) {
		return 0
	}
	return q.packing.scores[n.Index]
}
