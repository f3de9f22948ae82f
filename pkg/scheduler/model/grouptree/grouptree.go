// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package grouptree makes one gang of a tree of groups: of composite groups of Kubernetes and of the PodGroups below them.
//
// The root of a tree is a composite group without a parent. It becomes a group with subgroups: one for each group of the
// tree, also for the root itself. The subgroup of a composite group needs so many of its children, that of a PodGroup so
// many pods. All pods of the tree are members of the root, each in the subgroup of the PodGroup that it names:
//
//	CompositePodGroup train, 2 groups      subGroups:
//	  PodGroup driver, 1 pod          =>   - {name: train, minSubGroup: 2}
//	  PodGroup workers, 4 pods             - {name: driver, parent: train, minMember: 1}
//	                                       - {name: workers, parent: train, minMember: 4}
//
// The objects of a tree are created, changed and deleted one by one, in any order. Each change derives the groups of its
// tree again. Groups without a root, because a parent does not exist or parents form a cycle, are refused, each with a
// job of its own; so is a tree whose groups contradict each other, with the job of its root.
package grouptree

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Trees are the trees of groups that exist, and parts of trees. The zero value has none.
type Trees struct {
	groups map[api.GroupKey]*node
	parts  map[string]map[api.GroupKey]*node // by the namespace/name of the parent
}

// node is a group of a tree: as it was read, and what the tree makes of it.
type node struct{ read, derived *api.Group }

// parent returns the namespace/name of the parent; empty if it has none.
func (n *node) parent() string {
	if n.read.Parent == "" {
		return ""
	}
	return n.read.Namespace + "/" + n.read.Parent
}

// Has reports whether a group is in a tree, with or without a root.
func (t *Trees) Has(key api.GroupKey) bool { return t.groups[key] != nil }

// Set adds or replaces a group, and returns what this changes: the group itself, and others of its trees.
func (t *Trees) Set(g *api.Group) []*api.Group {
	affected := t.drop(g.Key())
	if !g.IsPart() {
		return append(t.derive(affected), g)
	}
	if t.groups == nil {
		t.groups, t.parts = map[api.GroupKey]*node{}, map[string]map[api.GroupKey]*node{}
	}
	n := &node{read: g}
	t.groups[g.Key()] = n
	if parent := n.parent(); parent != "" {
		if t.parts[parent] == nil {
			t.parts[parent] = map[api.GroupKey]*node{}
		}
		t.parts[parent][g.Key()] = n
	}
	return t.derive(append(affected, n))
}

// Delete removes the group with this key if it has this UID, and returns the groups that this changes.
func (t *Trees) Delete(key api.GroupKey, uid types.UID) []*api.Group {
	if n := t.groups[key]; n == nil || n.read.UID != uid {
		return nil
	}
	return t.derive(t.drop(key))
}

// drop removes a group, and returns its parent and its children, of those that exist.
func (t *Trees) drop(key api.GroupKey) []*node {
	n := t.groups[key]
	if n == nil {
		return nil
	}
	delete(t.groups, key)
	var affected []*node
	if parent := n.parent(); parent != "" {
		delete(t.parts[parent], key)
		if len(t.parts[parent]) == 0 {
			delete(t.parts, parent)
		}
		if above := t.composite(parent); above != nil {
			affected = append(affected, above)
		}
	}
	return append(affected, t.children(n)...)
}

// composite returns the composite group with a namespace/name; nil if there is none.
func (t *Trees) composite(name string) *node {
	return t.groups[api.GroupKey{Source: api.SourceComposite, Name: name}]
}

// children returns the groups whose parent is n, by name.
func (t *Trees) children(n *node) []*node {
	if n.read.Source != api.SourceComposite {
		return nil
	}
	children := slices.Collect(maps.Values(t.parts[n.read.Key().Name]))
	slices.SortFunc(children, func(a, b *node) int {
		return cmp.Or(cmp.Compare(a.read.Name, b.read.Name), cmp.Compare(a.read.Source, b.read.Source))
	})
	return children
}

// derive derives all groups of the trees that contain the given ones, and returns those that are not as before.
func (t *Trees) derive(given []*node) []*api.Group {
	var changed []*api.Group
	done := map[*node]bool{}
	for _, n := range given {
		if t.groups[n.read.Key()] != n || done[n] { // not in the tree any more
			continue
		}
		top, refusal := t.top(n)
		nodes := t.below(top)
		for _, n := range nodes {
			done[n] = true
			var derived *api.Group
			switch {
			case refusal != nil:
				derived = with(n.read, &api.GroupTree{Refusal: refusal})
			case n != top:
				derived = with(n.read, &api.GroupTree{Root: top.read.Key().Name})
			default:
				derived = t.compose(top, nodes)
			}
			if n.derived == nil || !api.EqualGroups(n.derived, derived) {
				n.derived = derived
				changed = append(changed, derived)
			}
		}
	}
	return changed
}

func with(g *api.Group, tree *api.GroupTree) *api.Group {
	derived := *g
	derived.Tree = tree
	return &derived
}

// top returns the root of the tree of n; or the group below which all groups are refused, and why.
func (t *Trees) top(n *node) (*node, *api.Verdict) {
	seen := []*node{n}
	for n.parent() != "" {
		above := t.composite(n.parent())
		if above == nil {
			return n, parentNotFound(n.read)
		}
		if at := slices.Index(seen, above); at >= 0 {
			first := slices.MinFunc(seen[at:], func(a, b *node) int { return cmp.Compare(a.read.Name, b.read.Name) })
			return first, cycle(first.read)
		}
		seen = append(seen, above)
		n = above
	}
	return n, nil
}

// below returns top and all groups below it, each after its parent.
func (t *Trees) below(top *node) []*node {
	nodes, seen := []*node{top}, map[*node]bool{top: true}
	for i := 0; i < len(nodes); i++ { // the loop appends nodes
		for _, c := range t.children(nodes[i]) {
			if !seen[c] {
				seen[c] = true
				nodes = append(nodes, c)
			}
		}
	}
	return nodes
}
