// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// domainIndex divides the nodes into the domains of topology levels. It knows the levels that sessions ask for.
type domainIndex struct {
	feasible *feasibleIndex
	known    map[string]*Domains // by TopologyLevel.Key
	// asked are those of levels that were asked for in this session: keys take long to make.
	asked map[*api.TopologyLevel]*Domains
}

// Domain is a domain of a topology level. It has at least one node.
type Domain struct {
	Path  string // see api.TopologyLevel.Path
	id    int    // dense among the domains of the level
	size  int
	nodes NodeSet
}

// Nodes returns the nodes of the domain. The set belongs to the Index.
func (d *Domain) Nodes() *NodeSet { return &d.nodes }

// Size returns the number of its nodes.
func (d *Domain) Size() int { return d.size }

// Contains reports whether a node is in the domain.
func (d *Domain) Contains(n *api.NodeInfo) bool { return n.Index >= 0 && d.nodes.Has(n.Index) }

// Includes reports whether all nodes of another domain are in the domain.
func (d *Domain) Includes(o *Domain) bool { return d == o || d.nodes.includes(&o.nodes) }

// Domains are the domains of a topology level. They follow the journal of node objects, and are valid until node objects
// change.
type Domains struct {
	level  *api.TopologyLevel
	index  *domainIndex
	wider  *Domains
	reader api.JournalReader // of NodeSpecChanges

	list    []*Domain // by path
	byPath  map[string]*Domain
	path    []byte // of the node that is assigned; kept to save allocations
	ids     map[string]int
	of      []*Domain // by node index; nil of nodes that are in no domain
	version uint64    // counts changes of what nodes are in which domain

	sums map[sumKey]*domainSum
	kept map[members]*memberCounts // of those that have nodes, as OfJob and OfSubGroup were asked in this session
	used bool                      // in this session
}

// Domains returns the domains of a level.
func (x *Index) Domains(level *api.TopologyLevel) *Domains { return x.domains.get(level) }

func (x *domainIndex) get(level *api.TopologyLevel) *Domains {
	if d := x.asked[level]; d != nil {
		d.update()
		return d
	}
	key := level.Key()
	d := x.known[key]
	if d == nil {
		d = &Domains{level: level, index: x, byPath: map[string]*Domain{}, ids: map[string]int{}, sums: map[sumKey]*domainSum{}, kept: map[members]*memberCounts{}}
		if wider := level.Wider(); wider != nil {
			d.wider = x.get(wider)
		}
		x.known[key] = d
	}
	if level.Topology != "" { // the level of a pod affinity is made for each question
		x.asked[level] = d
	}
	d.used = true
	d.update()
	return d
}

// dropUnused drops what no call has used since the last dropUnused.
func (x *domainIndex) dropUnused() {
	clear(x.asked)
	for key, d := range x.known {
		if !d.used {
			delete(x.known, key)
			continue
		}
		d.used = false
		clear(d.kept)
		for key, sum := range d.sums {
			if !sum.used || key.signature != nil && key.signature.Unreferenced() {
				delete(d.sums, key)
			}
			sum.used = false
		}
	}
}

// update assigns the nodes again whose objects have changed.
func (d *Domains) update() {
	if d.wider != nil {
		d.wider.used = true
		d.wider.update()
	}
	cluster := d.index.feasible.cluster
	nodes := cluster.Nodes()
	changed, known := d.reader.CatchUp(cluster.NodeSpecChanges(), len(nodes))
	if !known {
		d.list, d.of = nil, nil
		clear(d.byPath)
		clear(d.ids)
		for i, n := range nodes {
			d.assign(i, n)
		}
		return
	}
	for _, i := range changed {
		d.assign(int(i), nodes[i])
	}
}

// assign puts the node with an index into its domain; nil if there is none any more.
func (d *Domains) assign(index int, n *api.NodeInfo) {
	for index >= len(d.of) {
		d.of = append(d.of, nil)
	}
	var domain *Domain
	if n != nil {
		domain = d.domainOf(n)
	}
	before := d.of[index]
	if domain == before {
		return
	}
	d.version++
	if before != nil {
		before.nodes.set(index, false)
		if before.size--; before.size == 0 {
			at, _ := d.find(before.Path)
			d.list = slices.Delete(d.list, at, at+1)
			delete(d.byPath, before.Path)
		}
	}
	if d.of[index] = domain; domain != nil {
		domain.nodes.set(index, true)
		domain.size++
	}
}

// domainOf returns the domain of a node by its labels; nil if it is in none. It adds the domain if there is none.
func (d *Domains) domainOf(n *api.NodeInfo) *Domain {
	path, ok := d.level.AppendPath(d.path[:0], n.Node.Labels)
	d.path = path
	if !ok {
		return nil
	}
	domain := d.byPath[string(path)]
	if domain == nil {
		domain = d.newDomain(string(path))
		d.byPath[domain.Path] = domain
		at, _ := d.find(domain.Path)
		d.list = slices.Insert(d.list, at, domain)
	}
	return domain
}

// newDomain returns a domain without nodes. A domain that comes back has the id that it had.
func (d *Domains) newDomain(path string) *Domain {
	id, known := d.ids[path]
	if !known {
		id = len(d.ids)
		d.ids[path] = id
	}
	return &Domain{Path: path, id: id}
}

// widerOf returns the domain of the next wider level that contains a domain; nil if there is no such level.
func (d *Domains) widerOf(domain *Domain) (wider *Domain) {
	if d.wider != nil {
		domain.nodes.Until(func(i int) bool {
			wider = d.wider.of[i]
			return true
		})
	}
	return wider
}

func (d *Domains) find(path string) (at int, found bool) {
	return slices.BinarySearchFunc(d.list, path, func(domain *Domain, path string) int { return cmp.Compare(domain.Path, path) })
}

// Wider returns the domains of the next wider level; nil if there is none.
func (d *Domains) Wider() *Domains { return d.wider }

// Around returns the domain of the same level or of a wider one of the topology that contains a domain; nil if there is none.
func (d *Domains) Around(domain *Domain, level *api.TopologyLevel) *Domain {
	for at := d; at != nil && domain != nil; at = at.wider {
		if len(at.level.Labels) == len(level.Labels) {
			return domain
		}
		domain = at.widerOf(domain)
	}
	return nil
}

// Inside returns the domains that are inside a domain of the same level or of a wider one of the topology, by their paths.
// The slice belongs to the Index.
func (d *Domains) Inside(outer *Domain) []*Domain {
	prefix := outer.Path + "/"
	from := sort.Search(len(d.list), func(i int) bool { return d.list[i].Path+"/" >= prefix })
	to := from
	for to < len(d.list) && strings.HasPrefix(d.list[to].Path+"/", prefix) {
		to++
	}
	return d.list[from:to]
}

// Level returns the level.
func (d *Domains) Level() *api.TopologyLevel { return d.level }

// All returns all domains by their paths. The slice belongs to the Index.
func (d *Domains) All() []*Domain { return d.list }

// Of returns the domain of a node; nil if it is in none.
func (d *Domains) Of(n *api.NodeInfo) *Domain {
	if n.Index < 0 || n.Index >= len(d.of) {
		return nil
	}
	return d.of[n.Index]
}

// Holding returns the domains where members of a job have nodes, by their paths, and whether all of these nodes are in domains.
func (d *Domains) Holding(j *api.JobInfo) (holding []*Domain, all bool) {
	all = true
	if j.ReadyCount() == 0 && j.Count(api.Pipelined) == 0 { // most jobs that wait
		return nil, true
	}
	for _, t := range j.Tasks {
		switch domain := d.ofTask(t); {
		case domain == nil:
			all = all && !hasNode(t)
		case !slices.Contains(holding, domain):
			holding = append(holding, domain)
		}
	}
	slices.SortFunc(holding, func(a, b *Domain) int { return cmp.Compare(a.Path, b.Path) })
	return holding, all
}

// hasNode reports whether a task runs or will run on a node.
func hasNode(t *api.TaskInfo) bool {
	return t.Node != nil && t.Status != api.Releasing && !t.Status.Ended()
}

func (d *Domains) ofTask(t *api.TaskInfo) *Domain {
	if !hasNode(t) {
		return nil
	}
	return d.Of(t.Node)
}
