// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// memory is what lives from session to session of a profile, about one cluster object.
type memory struct {
	cluster *model.Cluster
	nodes   *nodeindex.Index

	plans   PlanCache
	backlog Backlog

	outcomes outcomes

	// For Refusals, so that counting does not allocate in each session.
	refusals    map[Refusal]int
	refusalList []RefusalCount
}

// of returns m if it is about the cluster object, else a new, empty memory; m may be nil.
func (m *memory) of(cluster *model.Cluster) *memory {
	if m != nil && m.cluster == cluster {
		return m
	}
	nodes := nodeindex.New(cluster, cluster.Dims())
	return &memory{
		cluster: cluster, nodes: nodes,
		plans:    PlanCache{infeasible: map[string]int{}},
		backlog:  newBacklog(nodes),
		refusals: map[Refusal]int{},
	}
}

// Nodes returns the index that answers questions about all nodes. Plugins and actions may use it once all plugins
// are open (see AddOpenedFn), until the session closes.
func (ssn *Session) Nodes() *nodeindex.Index { return ssn.memory.nodes }

// Plans returns the negative plan cache.
func (ssn *Session) Plans() *PlanCache { return &ssn.memory.plans }

// Backlog returns what is known about gangs that were refused.
func (ssn *Session) Backlog() *Backlog { return &ssn.memory.backlog }

// PlanCache holds kinds of claims for which no plan was found. It is cleared whenever a decision, a change of what runs
// on nodes, or a change of what queues deserve could make a plan possible.
type PlanCache struct {
	infeasible map[string]int // number of pods that disruption budgets protect
	placement  uint64         // Generations.Placement when the last session closed
	total      api.Resource   // of the last session
}

// KnownInfeasible reports whether no plan was found for a claim of that kind since the last change that could make
// one possible, and returns how many pods disruption budgets protected then.
func (c *PlanCache) KnownInfeasible(kind string) (protected int, infeasible bool) {
	protected, infeasible = c.infeasible[kind]
	return protected, infeasible
}

// SetInfeasible records that no plan was found for a claim of that kind.
func (c *PlanCache) SetInfeasible(kind string, protected int) { c.infeasible[kind] = protected }

// Invalidate clears what SetInfeasible has recorded. Plugins call it when something changes that decides over victims
// and is not in the model.
func (c *PlanCache) Invalidate() { clear(c.infeasible) }

// open is called when a session has opened.
func (c *PlanCache) open(ssn *Session) {
	total := ssn.Nodes().Total()
	if c.placement != ssn.cluster.Generations().Placement || !c.total.Equal(total) {
		c.Invalidate()
	}
	c.total = total
}
