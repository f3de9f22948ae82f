// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// topologyCounts count the domains and nodes of topologies for their status. They follow the journal of node objects, so a
// cycle in which no node object changes costs nothing. They do not use the domains of package nodeindex, because those keep a
// set of nodes for each domain, and a topology may have levels that no gang names, such as one of single nodes.
type topologyCounts struct {
	journal *api.Journal // of the model that reader follows
	reader  api.JournalReader
	known   map[types.UID]*topologyCount
}

// topologyCount counts one topology.
type topologyCount struct {
	levels   []levelCount
	nodes    int32
	counted  []bool // by node index: the node exists
	reported bool   // the numbers have not changed since the last report
}

// levelCount counts one level.
type levelCount struct {
	level *api.TopologyLevel
	nodes int32
	paths []string         // by node index; empty if the node is in no domain
	sizes map[string]int32 // nodes by the path of their domain
}

// report adds the topologies of which the numbers have changed.
func (c *topologyCounts) report(ssn *framework.Session, report *api.Report) {
	topologies := ssn.Cluster().JobTable().Topologies()
	if len(topologies) == 0 {
		c.known, c.journal = nil, nil
		return
	}
	nodes, journal := ssn.Cluster().Nodes(), ssn.Cluster().NodeSpecChanges()
	if c.journal != journal { // there is another model
		c.journal, c.known = journal, nil
		c.reader = api.JournalReader{}
	}
	changed, followed := c.reader.CatchUp(journal, len(nodes))
	before := c.known
	c.known = make(map[types.UID]*topologyCount, len(topologies))
	for _, topology := range topologies {
		count := before[topology.UID]
		if count == nil || !followed || !count.counts(topology.Levels) {
			count = newTopologyCount(topology.Levels)
			for i, n := range nodes {
				count.update(i, n)
			}
		} else {
			for _, i := range changed {
				count.update(int(i), nodes[i])
			}
		}
		c.known[topology.UID] = count
		if !count.reported {
			count.reported = true
			report.Topologies = append(report.Topologies, api.TopologyReport{Name: topology.Name, UID: topology.UID, Status: count.status()})
		}
	}
}

func newTopologyCount(levels []*api.TopologyLevel) *topologyCount {
	c := &topologyCount{}
	for _, level := range levels {
		c.levels = append(c.levels, levelCount{level: level, sizes: map[string]int32{}})
	}
	return c
}

// counts reports whether the levels are those that are counted.
func (c *topologyCount) counts(levels []*api.TopologyLevel) bool {
	return slices.EqualFunc(c.levels, levels, func(l levelCount, level *api.TopologyLevel) bool { return l.level == level })
}

// update counts the node with an index again; nil if there is none any more.
func (c *topologyCount) update(index int, n *api.NodeInfo) {
	for index >= len(c.counted) {
		c.counted = append(c.counted, false)
	}
	exists := n != nil && n.Node != nil
	if exists != c.counted[index] {
		c.counted[index], c.reported = exists, false
		c.nodes += difference(exists)
	}
	for i := range c.levels {
		path := ""
		if exists {
			path, _ = c.levels[i].level.Path(n.Node.Labels)
		}
		if c.levels[i].set(index, path) {
			c.reported = false
		}
	}
}

// set moves a node into a domain, and reports whether it was elsewhere. An empty path is no domain.
func (l *levelCount) set(index int, path string) bool {
	for index >= len(l.paths) {
		l.paths = append(l.paths, "")
	}
	before := l.paths[index]
	if before == path {
		return false
	}
	l.paths[index] = path
	if before != "" {
		l.nodes--
		if l.sizes[before]--; l.sizes[before] == 0 {
			delete(l.sizes, before)
		}
	}
	if path != "" {
		l.nodes++
		l.sizes[path]++
	}
	return true
}

func (c *topologyCount) status() v1alpha1.TopologyStatus {
	s := v1alpha1.TopologyStatus{UnlabelledNodes: c.nodes}
	for i := range c.levels {
		l := &c.levels[i]
		s.Levels = append(s.Levels, v1alpha1.TopologyLevelStatus{Name: l.level.Name, Domains: int32(len(l.sizes)), Nodes: l.nodes})
	}
	if len(s.Levels) > 0 {
		s.UnlabelledNodes -= s.Levels[0].Nodes
	}
	return s
}

func difference(added bool) int32 {
	if added {
		return 1
	}
	return -1
}
