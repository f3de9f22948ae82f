// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// members are those of a job, or of one of its subgroups.
type members struct {
	job *api.JobInfo
	of  *api.SubGroup // nil: the job
}

func (m members) has(t *api.TaskInfo) bool {
	return t.Job == m.job && hasNode(t) && (m.of == nil || t.SubGroup().Within(m.of))
}

// memberCounts count the members that have nodes in each domain. Predicates ask for the domain of a gang after each
// placement, so the counts follow the journal of nodes: the members on one node are counted, and not those of a large gang.
type memberCounts struct {
	reader  api.JournalReader // of NodeChanges
	version uint64            // of the domains
	on      map[int]int32     // by node index
	in      map[*Domain]int32
	most    *Domain
}

// OfJob returns the domain where members of a job have nodes, also those that a statement has placed; nil if there are none.
// Members that are being deleted do not count. If the labels of nodes have changed and members are in several domains, it
// is the one with the most of them.
func (d *Domains) OfJob(j *api.JobInfo) *Domain {
	if j.ReadyCount() == 0 && j.Count(api.Pipelined) == 0 { // most jobs that wait
		return nil
	}
	return d.ofMembers(members{job: j})
}

// OfSubGroup is OfJob for the members of a subgroup of the job.
func (d *Domains) OfSubGroup(j *api.JobInfo, s *api.SubGroup) *Domain {
	if s.PipelinedCount() == 0 { // most of those that wait
		return nil
	}
	return d.ofMembers(members{j, s})
}

// ofMembers returns the domain of members that have nodes.
func (d *Domains) ofMembers(m members) *Domain {
	c := d.kept[m]
	if c == nil {
		c = &memberCounts{}
		d.kept[m] = c
	}
	c.update(d, m)
	return c.most
}

func (c *memberCounts) update(d *Domains, m members) {
	journal := d.index.feasible.cluster.NodeChanges()
	if c.version != d.version {
		c.version = d.version
		c.reader.Invalidate()
	}
	if c.reader.UpToDate(journal) {
		return
	}
	changed, known := c.reader.CatchUp(journal, len(m.job.Tasks))
	if !known {
		c.on, c.in = map[int]int32{}, map[*Domain]int32{}
		for _, t := range m.job.Tasks {
			if m.has(t) && d.Of(t.Node) != nil {
				c.on[t.Node.Index]++
				c.in[d.Of(t.Node)]++
			}
		}
	}
	nodes := d.index.feasible.cluster.Nodes()
	for at, i := range changed {
		if at == 0 || changed[at-1] != i { // a placement adds two entries
			c.recount(d, m, nodes[i], int(i))
		}
	}
	c.findMost()
}

// recount counts the members on a node with an index again.
func (c *memberCounts) recount(d *Domains, m members, n *api.NodeInfo, index int) {
	domain := d.of[index]
	if domain == nil {
		return
	}
	now := int32(0)
	for _, t := range n.Tasks {
		if m.has(t) {
			now++
		}
	}
	if before := c.on[index]; now != before {
		c.on[index] = now
		if c.in[domain] += now - before; c.in[domain] == 0 {
			delete(c.in, domain)
		}
	}
}

func (c *memberCounts) findMost() {
	c.most = nil
	for domain, n := range c.in {
		if c.most == nil || n > c.in[c.most] || n == c.in[c.most] && domain.Path < c.most.Path {
			c.most = domain
		}
	}
}
