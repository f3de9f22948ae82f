// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Namespace is what the model keeps of a namespace.
type Namespace struct {
	Labels labels.Set
	// Terminating namespaces are being deleted and accept no new pods.
	Terminating bool
}

func (n Namespace) equal(o Namespace) bool {
	return n.Terminating == o.Terminating && maps.Equal(n.Labels, o.Labels)
}

// namespaceTable holds the namespaces.
type namespaceTable struct {
	byName      map[string]Namespace
	terminating map[string]bool // of these, most of the time none
}

func newNamespaceTable() namespaceTable {
	return namespaceTable{map[string]Namespace{}, map[string]bool{}}
}

// set reports whether the namespace has changed.
func (nt namespaceTable) set(ns *v1.Namespace) bool {
	now := Namespace{
		Labels:      labels.Set(ns.Labels),
		Terminating: ns.DeletionTimestamp != nil || ns.Status.Phase == v1.NamespaceTerminating,
	}
	if old, known := nt.byName[ns.Name]; known && old.equal(now) {
		return false
	}
	nt.remove(ns.Name)
	nt.byName[ns.Name] = now
	if now.Terminating {
		nt.terminating[ns.Name] = true
	}
	return true
}

// remove reports whether the namespace was known.
func (nt namespaceTable) remove(name string) bool {
	_, known := nt.byName[name]
	delete(nt.byName, name)
	delete(nt.terminating, name)
	return known
}

func (nt namespaceTable) selected(selector labels.Selector) []string {
	var names []string
	for name, ns := range nt.byName {
		if selector.Matches(ns.Labels) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
