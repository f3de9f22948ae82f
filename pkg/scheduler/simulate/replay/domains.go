// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// domains counts for each level of all topologies the whole free domains, which have nodes and no pods of jobs. It is nil
// without topologies, and then all methods do nothing.
type domains struct {
	levels []*levelDomains
	nodes  map[string]*domainNode // that are up
	time   time.Duration          // that was counted
	until  time.Duration          // the time at the last mark
}

type levelDomains struct {
	*api.TopologyLevel
	byPath map[string]*domain
	free   int
	// freeFor is the integral of free over time in domain-seconds, and marked that at the last mark.
	freeFor, marked float64
}

type domain struct{ nodes, pods int }

// domainNode is a node and its domain of each level, nil if it is in none.
type domainNode struct {
	in   []*domain
	pods int
}

func newDomains(topologies []api.Topology) *domains {
	if len(topologies) == 0 {
		return nil
	}
	d := &domains{nodes: map[string]*domainNode{}}
	for _, t := range topologies {
		for _, level := range t.Levels {
			d.levels = append(d.levels, &levelDomains{TopologyLevel: level, byPath: map[string]*domain{}})
		}
	}
	return d
}

// setNode adds a node, or moves it into the domains that its labels now name.
func (d *domains) setNode(n *v1.Node) {
	if d == nil {
		return
	}
	pods := 0
	if before := d.nodes[n.Name]; before != nil {
		pods = before.pods
	}
	d.removeNode(n.Name)
	node := &domainNode{in: make([]*domain, len(d.levels)), pods: pods}
	for i, l := range d.levels {
		path, ok := l.Path(n.Labels)
		if !ok {
			continue
		}
		if l.byPath[path] == nil {
			l.byPath[path] = &domain{}
		}
		node.in[i] = l.byPath[path]
		l.change(node.in[i], 1, pods)
	}
	d.nodes[n.Name] = node
}

// removeNode removes a node if it is there.
func (d *domains) removeNode(name string) {
	if d == nil || d.nodes[name] == nil {
		return
	}
	node := d.nodes[name]
	delete(d.nodes, name)
	for i, l := range d.levels {
		l.change(node.in[i], -1, -node.pods)
	}
}

// use counts a pod on a node, or with the sign -1 one less.
func (d *domains) use(name string, sign int) {
	if d == nil || d.nodes[name] == nil {
		return
	}
	node := d.nodes[name]
	node.pods += sign
	for i, l := range d.levels {
		l.change(node.in[i], 0, sign)
	}
}

// change adds nodes and pods to a domain.
func (l *levelDomains) change(in *domain, nodes, pods int) {
	if in == nil {
		return
	}
	if in.free() {
		l.free--
	}
	in.nodes, in.pods = in.nodes+nodes, in.pods+pods
	if in.free() {
		l.free++
	}
}

func (in *domain) free() bool { return in.nodes > 0 && in.pods == 0 }

// advance lets time pass.
func (d *domains) advance(by time.Duration) {
	if d == nil {
		return
	}
	d.time += by
	for _, l := range d.levels {
		l.freeFor += float64(l.free) * by.Seconds()
	}
}

// mark makes means end now.
func (d *domains) mark() {
	if d == nil {
		return
	}
	d.until = d.time
	for _, l := range d.levels {
		l.marked = l.freeFor
	}
}

// ofJob returns in how many domains of each level pods of a job run.
func (d *domains) ofJob(j *job) []int {
	if d == nil {
		return nil
	}
	counts := make([]int, len(d.levels))
	for i := range counts {
		seen := map[*domain]bool{}
		for _, p := range j.pods {
			if node := d.nodes[p.Spec.NodeName]; p.running && node != nil && node.in[i] != nil {
				seen[node.in[i]] = true
			}
		}
		counts[i] = len(seen)
	}
	return counts
}

// freeNow returns the number of whole free domains of each level.
func (d *domains) freeNow() []int {
	if d == nil {
		return nil
	}
	counts := make([]int, len(d.levels))
	for i, l := range d.levels {
		counts[i] = l.free
	}
	return counts
}

// summaries returns the measures of each level.
func (d *domains) summaries(jobs []Job) []LevelSummary {
	if d == nil {
		return nil
	}
	list := make([]LevelSummary, len(d.levels))
	for i, l := range d.levels {
		s := &list[i]
		s.Topology, s.Level = l.Topology, l.Name
		for _, in := range l.byPath {
			if in.nodes > 0 {
				s.Domains++
			}
		}
		if d.until > 0 {
			s.MeanFree = round(l.marked / d.until.Seconds())
		}
		for k := range jobs {
			if j := &jobs[k]; j.Gang > 1 && j.Runs > 0 {
				s.Gangs++
				if j.Domains[i] == 1 {
					s.InOneDomain++
				}
			}
		}
	}
	return list
}

// constraintOf returns the topology constraint of the PodGroup of a job; nil if it has none.
func constraintOf(c *trace.Constraint) *v1alpha1.TopologyConstraint {
	if c == nil {
		return nil
	}
	return &v1alpha1.TopologyConstraint{Topology: c.Topology, RequiredTopologyLevel: c.Required, PreferredTopologyLevel: c.Preferred}
}

// checkConstraints returns an error for the first job that names a topology or a level that does not exist: it would wait
// without end.
func checkConstraints(c *model.Cluster, t *trace.Trace) error {
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.Topology == nil {
			continue
		}
		unknown := model.TopologiesOf(c).Unknown(constraintOf(j.Topology))
		if unknown != "" {
			return fmt.Errorf("job %q has a topology constraint: %s", j.ID, unknown)
		}
	}
	return nil
}
