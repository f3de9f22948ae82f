// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// mostHolders is how many PodGroups of a domain are named.
const mostHolders = 3

// leastHolders is the least width of the column with their names.
const leastHolders = 20

// TopologyUsage is what the nodes of a Topology are used for.
type TopologyUsage struct {
	Name   string       `json:"name"`
	Levels []LevelUsage `json:"levels"`
	// UnlabelledNodes are in no domain of any level.
	UnlabelledNodes int `json:"unlabelledNodes"`
}

// LevelUsage are the domains of a level.
type LevelUsage struct {
	Name      string              `json:"name"`
	NodeLabel string              `json:"nodeLabel"`
	Whole     int                 `json:"wholeDomains"` // without pods of queues
	Resource  corev1.ResourceName `json:"resource"`     // of Free and Total
	Domains   []DomainUsage       `json:"domains"`
}

// DomainUsage is a domain. Nodes that are cordoned or not ready have nothing free.
type DomainUsage struct {
	Name     string            `json:"name"`
	Nodes    int               `json:"nodes"`
	InUse    int               `json:"nodesInUse"` // with pods of queues
	Cordoned int               `json:"nodesCordoned"`
	NotReady int               `json:"nodesNotReady"` // and not cordoned
	Free     resource.Quantity `json:"free"`
	Total    resource.Quantity `json:"total"`
	// Holders are PodGroups with pods in the domain, those that hold the most first. Other are the other pods of queues, and
	// OtherHeld is what all other pods hold, also those of other schedulers.
	Holders   []Holder          `json:"podGroups"`
	Other     int               `json:"otherPods"`
	OtherHeld resource.Quantity `json:"otherHeld"`
}

// Holder is a PodGroup, NAMESPACE/NAME, and what its pods hold in a domain.
type Holder struct {
	PodGroup string            `json:"podGroup"`
	Pods     int               `json:"pods"`
	Held     resource.Quantity `json:"held"`
	// ExpectedEnd is when the pods are expected to end; nil if that is not known.
	ExpectedEnd *metav1.Time `json:"expectedEnd,omitempty"`
}

// nodeUse is what the pods of a node hold.
type nodeUse struct {
	node   *corev1.Node
	held   resource.Quantity
	groups map[string]*Holder // by PodGroup
	other  int                // other pods of queues
}

// Topologies returns how pods use the nodes of topologies, which are sorted by name.
func Topologies(topologies []v1alpha1.Topology, nodes []corev1.Node, pods []corev1.Pod) []TopologyUsage {
	usages := make([]TopologyUsage, len(topologies))
	for i := range topologies {
		main := mainResource(nodesIn(&topologies[i], nodes))
		usages[i] = usageOf(&topologies[i], usesOf(nodes, pods, main), main)
	}
	slices.SortFunc(usages, func(a, b TopologyUsage) int { return cmp.Compare(a.Name, b.Name) })
	return usages
}

// nodesIn returns the nodes that are in domains of the widest level.
func nodesIn(t *v1alpha1.Topology, nodes []corev1.Node) (in []corev1.Node) {
	for i := range nodes {
		if len(t.Spec.Levels) > 0 && nodes[i].Labels[t.Spec.Levels[0].NodeLabel] != "" {
			in = append(in, nodes[i])
		}
	}
	return in
}

// mainResource returns the resource that stands for nodes: GPUs, or cpu if there are none.
func mainResource(nodes []corev1.Node) corev1.ResourceName {
	all := corev1.ResourceList{}
	for i := range nodes {
		for name, q := range nodes[i].Status.Allocatable {
			if !q.IsZero() {
				all[name] = q
			}
		}
	}
	names := text.Resources(all)
	if at := slices.IndexFunc(names, func(name corev1.ResourceName) bool { return strings.HasSuffix(string(name), "/gpu") }); at >= 0 {
		return names[at]
	}
	return corev1.ResourceCPU
}

// usesOf returns the nodes by name.
func usesOf(nodes []corev1.Node, pods []corev1.Pod, main corev1.ResourceName) []*nodeUse {
	byName := map[string]*nodeUse{}
	var uses []*nodeUse
	for i := range nodes {
		u := &nodeUse{node: &nodes[i], groups: map[string]*Holder{}}
		byName[nodes[i].Name] = u
		uses = append(uses, u)
	}
	slices.SortFunc(uses, func(a, b *nodeUse) int { return cmp.Compare(a.node.Name, b.node.Name) })
	for i := range pods {
		p := &pods[i]
		u := byName[p.Spec.NodeName]
		if u == nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		held := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})[main]
		u.held.Add(held)
		switch name := PodGroupOf(p); {
		case name != "":
			if u.groups[name] == nil {
				u.groups[name] = &Holder{PodGroup: name}
			}
			u.groups[name].add(1, held)
		case p.Annotations[v1alpha1.AnnotationQueue] != "":
			u.other++
		}
	}
	return uses
}

// PodGroupOf returns the PodGroup, NAMESPACE/NAME, of a pod that a queue has placed; empty if it has none.
func PodGroupOf(p *corev1.Pod) string {
	name := cmp.Or(p.Labels[v1alpha1.LabelPodGroup], p.Annotations[v1alpha1.AnnotationGroupName])
	if name == "" || p.Annotations[v1alpha1.AnnotationQueue] == "" {
		return ""
	}
	return p.Namespace + "/" + name
}

func (h *Holder) add(pods int, held resource.Quantity) {
	h.Pods += pods
	h.Held.Add(held)
}

func usageOf(t *v1alpha1.Topology, uses []*nodeUse, main corev1.ResourceName) TopologyUsage {
	usage := TopologyUsage{Name: t.Name, Levels: []LevelUsage{}}
	level := &api.TopologyLevel{}
	for i, l := range t.Spec.Levels {
		level.Labels = append(level.Labels, l.NodeLabel)
		u := LevelUsage{Name: cmp.Or(l.Name, l.NodeLabel), NodeLabel: l.NodeLabel, Resource: main}
		byPath := map[string][]*nodeUse{}
		for _, use := range uses {
			if path, ok := level.Path(use.node.Labels); ok {
				byPath[path] = append(byPath[path], use)
			} else if i == 0 {
				usage.UnlabelledNodes++
			}
		}
		u.Domains = []DomainUsage{}
		for _, path := range slices.Sorted(maps.Keys(byPath)) {
			d := domainOf(path, byPath[path], main)
			if d.InUse == 0 {
				u.Whole++
			}
			u.Domains = append(u.Domains, d)
		}
		usage.Levels = append(usage.Levels, u)
	}
	return usage
}

// Domain returns how pods use the nodes of a domain with this name, by one resource.
func Domain(name string, nodes []corev1.Node, pods []corev1.Pod, of corev1.ResourceName) DomainUsage {
	return domainOf(name, usesOf(nodes, pods, of), of)
}

func domainOf(path string, uses []*nodeUse, main corev1.ResourceName) DomainUsage {
	d := DomainUsage{Name: path, Nodes: len(uses), Holders: []Holder{}}
	groups := map[string]*Holder{}
	for _, u := range uses {
		total := u.node.Status.Allocatable[main]
		d.Total.Add(total)
		switch free := total.DeepCopy(); {
		case u.node.Spec.Unschedulable:
			d.Cordoned++
		case !ready(u.node):
			d.NotReady++
		default:
			free.Sub(u.held)
			d.Free.Add(free)
		}
		if len(u.groups)+u.other > 0 {
			d.InUse++
		}
		d.Other += u.other
		d.OtherHeld.Add(u.held)
		for name, h := range u.groups {
			if groups[name] == nil {
				groups[name] = &Holder{PodGroup: name}
			}
			groups[name].add(h.Pods, h.Held)
		}
	}
	for _, h := range groups {
		d.Holders = append(d.Holders, *h)
		d.OtherHeld.Sub(h.Held)
	}
	slices.SortFunc(d.Holders, func(a, b Holder) int {
		return cmp.Or(b.Held.Cmp(a.Held), cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.PodGroup, b.PodGroup))
	})
	return d
}

// ready reports whether the kubelet of a node says so.
func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// TopTopology returns a summary row for each level, and a row for each of its domains.
func TopTopology(u *TopologyUsage) []string {
	var lines []string
	for i := range u.Levels {
		l := &u.Levels[i]
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, fmt.Sprintf("Level %s of topology %s: %s, %d whole; resource %s",
			l.Name, u.Name, text.Count(len(l.Domains), "domain", "domains"), l.Whole, l.Resource))
		if len(l.Domains) == 0 {
			continue
		}
		t := text.Table{
			Titles: []string{"DOMAIN", "NODES", "IN USE", "FREE", "OF", "PODGROUPS"},
			Right:  []bool{false, true, true, true, true, false},
		}
		for k := range l.Domains {
			d := &l.Domains[k]
			t.Rows = append(t.Rows, text.Row{Cells: []string{
				d.Name, strconv.Itoa(d.Nodes), strconv.Itoa(d.InUse), text.Amount(d.Free), text.Amount(d.Total), d.holders(),
			}})
		}
		used := 0
		for _, width := range t.Widths(nil)[:len(t.Titles)-1] {
			used += width + len("  ")
		}
		for k := range t.Rows {
			cells := t.Rows[k].Cells
			cells[len(cells)-1] = text.Cut(cells[len(cells)-1], max(Width-used, leastHolders))
		}
		lines = append(lines, t.Lines(Width, 0)...)
	}
	if u.UnlabelledNodes > 0 {
		lines = append(lines, "", text.Count(u.UnlabelledNodes, "node is", "nodes are")+" in no domain")
	}
	return lines
}

// holders names the PodGroups that hold the most of a domain.
func (d *DomainUsage) holders() string {
	var parts []string
	for _, h := range d.Holders[:min(len(d.Holders), mostHolders)] {
		parts = append(parts, h.PodGroup)
	}
	if more := len(d.Holders) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	if d.Other > 0 {
		parts = append(parts, text.Count(d.Other, "pod", "pods"))
	}
	return dash(strings.Join(parts, ", "))
}
