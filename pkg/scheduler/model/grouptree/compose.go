// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package grouptree

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// compose returns the group that a tree is, given its root and all of its groups, each after its parent.
func (t *Trees) compose(root *node, nodes []*node) *api.Group {
	g := *root.read
	g.PodGroup = &v1alpha1.PodGroup{
		TypeMeta: root.read.TypeMeta, ObjectMeta: root.read.ObjectMeta, Status: root.read.Status,
		Spec: v1alpha1.PodGroupSpec{MinMember: 1, TopologyConstraint: root.read.Spec.TopologyConstraint},
	}
	g.Tree = &api.GroupTree{Parts: map[string]*api.Group{}}
	names := namesOf(nodes)
	levels := map[*node]int{}
	for _, n := range nodes {
		parent := t.composite(n.parent())
		levels[n] = levels[parent] + 1
		s := v1alpha1.SubGroup{Name: names[n], Parent: names[parent]}
		if n.read.Source == api.SourceComposite {
			s.MinSubGroup = ptr.To(n.read.MinGroups)
		} else {
			s.MinMember = ptr.To(n.read.Spec.MinMember)
		}
		if constraint := n.read.Spec.TopologyConstraint; constraint != nil && n != root {
			s.TopologyConstraint = &v1alpha1.RequiredTopology{Topology: constraint.Topology, RequiredTopologyLevel: constraint.RequiredTopologyLevel}
		}
		g.Spec.SubGroups = append(g.Spec.SubGroups, s)
		if n != root {
			g.Tree.Parts[names[n]] = n.read
		}
		if levels[n] > v1alpha1.MaxSubGroupLevels && g.Tree.Refusal == nil {
			g.Tree.Refusal = tooDeep(n.read)
		}
	}
	if len(nodes) > v1alpha1.MaxSubGroups {
		g.Tree.Refusal = tooMany(len(nodes))
	}
	agree(&g, nodes)
	if g.Tree.Refusal != nil {
		g.Spec.SubGroups = nil
	}
	return &g
}

// namesOf returns the names of the subgroups: those of the groups. A composite group may have the name of a PodGroup.
func namesOf(nodes []*node) map[*node]string {
	names, taken := map[*node]string{}, map[string]bool{}
	for _, n := range nodes {
		if n.read.Source != api.SourceComposite {
			names[n], taken[n.read.Name] = n.read.Name, true
		}
	}
	for _, n := range nodes {
		if n.read.Source != api.SourceComposite {
			continue
		}
		names[n] = n.read.Name
		if taken[n.read.Name] {
			names[n] = "CompositePodGroup/" + n.read.Name // no name has a slash
		}
	}
	return names
}

// agree sets what the groups of a tree say together: the queue, the priority, and what the scheduler cannot honour. Those
// that say nothing of a queue or a priority follow the others.
func agree(g *api.Group, nodes []*node) {
	var queue, priority *api.Group // the first that names one
	for _, n := range nodes {
		read := n.read
		if g.NotSupported == "" && read.NotSupported != "" {
			g.NotSupported = read.NotSupported + " of " + describe(read)
		}
		if read.Spec.Queue != "" && queue == nil {
			queue, g.Spec.Queue = read, read.Spec.Queue
		}
		if (read.Priority != nil || read.Spec.PriorityClassName != "") && priority == nil {
			priority, g.Priority, g.Spec.PriorityClassName = read, read.Priority, read.Spec.PriorityClassName
		}
		switch {
		case g.Tree.Refusal != nil:
		case read.Spec.Queue != "" && read.Spec.Queue != g.Spec.Queue:
			g.Tree.Refusal = queueConflict(queue, read)
		case (read.Priority != nil || read.Spec.PriorityClassName != "") && !samePriority(priority, read):
			g.Tree.Refusal = conflict("priorities", describe(priority)+" has "+priorityOf(priority), describe(read)+" has "+priorityOf(read))
		case read.NeverPreempts != g.NeverPreempts:
			g.Tree.Refusal = conflict("preemption policies", describe(g), describe(read))
		}
	}
}

// samePriority compares the numbers, or the classes if one has no number.
func samePriority(a, b *api.Group) bool {
	if a == b {
		return true
	}
	if a.Priority != nil && b.Priority != nil {
		return *a.Priority == *b.Priority
	}
	return a.Spec.PriorityClassName == b.Spec.PriorityClassName && a.Spec.PriorityClassName != ""
}

func priorityOf(g *api.Group) string {
	if g.Priority != nil {
		return fmt.Sprint(*g.Priority)
	}
	return "that of class " + g.Spec.PriorityClassName
}

// describe names a group as users write it.
func describe(g *api.Group) string {
	kind := "PodGroup"
	if g.Source == api.SourceComposite {
		kind = "CompositePodGroup"
	}
	return fmt.Sprintf("%s %q", kind, g.Name)
}

func parentNotFound(g *api.Group) *api.Verdict {
	return &api.Verdict{Reason: v1alpha1.ReasonGroupNotFound, Detail: fmt.Sprintf(
		"CompositePodGroup %q, the parent of %s, does not exist in the namespace, or the scheduler cannot read it", g.Parent, describe(g))}
}

func invalid(detail string) *api.Verdict {
	return &api.Verdict{Reason: v1alpha1.ReasonInvalidSubGroups, Detail: detail}
}

func cycle(g *api.Group) *api.Verdict {
	return invalid("the parents of " + describe(g) + " form a cycle")
}

func tooDeep(g *api.Group) *api.Verdict {
	return invalid(fmt.Sprintf("%s is below more than %d levels of groups", describe(g), v1alpha1.MaxSubGroupLevels-1))
}

func tooMany(groups int) *api.Verdict {
	return invalid(fmt.Sprintf("the tree of groups has %d groups; at most %d are supported", groups, v1alpha1.MaxSubGroups))
}

func queueConflict(a, b *api.Group) *api.Verdict {
	return &api.Verdict{Reason: v1alpha1.ReasonQueueConflict, Detail: fmt.Sprintf(
		"%s names queue %s, and %s names queue %s; name one queue with the label %s on the root of the tree",
		describe(a), a.Spec.Queue, describe(b), b.Spec.Queue, v1alpha1.LabelQueue)}
}

func conflict(of string, sides ...string) *api.Verdict {
	return &api.Verdict{Reason: v1alpha1.ReasonGroupConflict, Detail: fmt.Sprintf(
		"the groups of the tree have different %s: %s", of, strings.Join(sides, ", "))}
}
