// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeorder

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// counts holds, for every signature with preferences for other pods, the number of selected pods in each topology
// domain. It builds the counts of a signature on first use and then updates them from the model's journal, node by node.
type counts struct {
	comparison  bool // tolerations may use the operators Lt and Gt
	cluster     api.ClusterView
	bySignature map[*api.Signature]*neighbours
}

func (c *counts) open(cluster api.ClusterView) {
	if c.cluster != cluster {
		c.cluster, c.bySignature = cluster, map[*api.Signature]*neighbours{}
	}
	for _, n := range c.bySignature {
		n.asked = false
	}
}

// close drops signatures that the session did not use.
func (c *counts) close() {
	for signature, n := range c.bySignature {
		if !n.asked || signature.Unreferenced() {
			delete(c.bySignature, signature)
		}
	}
}

func (c *counts) of(signature *api.Signature) *neighbours {
	n := c.bySignature[signature]
	if n == nil {
		n = &neighbours{cluster: c.cluster, terms: preferredTerms(signature), spread: softConstraints(signature, c.comparison)}
		c.bySignature[signature] = n
	}
	n.asked = true
	return n
}

// neighbours holds the pod preferences of a signature and their counts.
type neighbours struct {
	cluster api.ClusterView
	terms   []term
	spread  []constraint
	asked   bool

	reader     api.JournalReader
	namespaces uint64 // generation of namespaces
}

// sync brings the counts up to date.
func (b *neighbours) sync() {
	nodes, journal := b.cluster.Nodes(), b.cluster.NodeChanges()
	if b.reader.UpToDate(journal) {
		return
	}
	if namespaces := b.cluster.Generations().Namespaces; namespaces != b.namespaces {
		b.namespaces = namespaces
		b.reader.Invalidate()
	}
	changed, known := b.reader.CatchUp(journal, len(nodes))
	for _, index := range changed {
		b.recount(int(index), nodes[index])
	}
	if !known {
		b.clear()
		for i, n := range nodes {
			b.recount(i, n)
		}
	}
}

func (b *neighbours) clear() {
	for i := range b.terms {
		b.terms[i].domains = domains{}
	}
	for i := range b.spread {
		b.spread[i].domains = domains{}
	}
}

// recount counts the pods of one node again; nil if there is none at that index.
func (b *neighbours) recount(index int, n *api.NodeInfo) {
	for i := range b.terms {
		t := &b.terms[i]
		t.domains.set(index, t.contribution(b.cluster, n))
	}
	for i := range b.spread {
		c := &b.spread[i]
		c.domains.set(index, c.contribution(n))
	}
}

// contribution is what one node adds to a count. An absent one adds nothing, not even its domain.
type contribution struct {
	present bool
	domain  string // value of the topology label
	pods    int64
}

// domains counts pods per value of a topology label.
type domains struct {
	byNode []contribution // by node index
	total  map[string]*domain
	// least is the smallest number of pods in any domain, when leastKnown.
	least      int64
	leastKnown bool
}

type domain struct{ nodes, pods int64 }

// set replaces what the node with that index adds.
func (d *domains) set(index int, c contribution) {
	for index >= len(d.byNode) {
		d.byNode = append(d.byNode, contribution{})
	}
	old := d.byNode[index]
	if old == c {
		return
	}
	d.byNode[index], d.leastKnown = c, false
	if d.total == nil {
		d.total = map[string]*domain{}
	}
	if old.present {
		if total := d.total[old.domain]; total.nodes == 1 {
			delete(d.total, old.domain)
		} else {
			total.nodes--
			total.pods -= old.pods
		}
	}
	if c.present {
		total := d.total[c.domain]
		if total == nil {
			total = &domain{}
			d.total[c.domain] = total
		}
		total.nodes++
		total.pods += c.pods
	}
}

// pods returns how many pods were counted in a domain.
func (d *domains) pods(name string) int64 {
	if total := d.total[name]; total != nil {
		return total.pods
	}
	return 0
}

// fewest returns the smallest number of pods in any domain.
func (d *domains) fewest() int64 {
	if !d.leastKnown {
		first := true
		d.least, d.leastKnown = 0, true
		for _, total := range d.total {
			if first || total.pods < d.least {
				d.least, first = total.pods, false
			}
		}
	}
	return d.least
}
