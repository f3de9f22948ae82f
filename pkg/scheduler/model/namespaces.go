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

// namespaceTable holds the namespaces by name.
type namespaceTable map[string]Namespace

// set reports whether the namespace has changed.
func (nt namespaceTable) set(ns *v1.Namespace) bool {
	now := Namespace{
		Labels:      labels.Set(ns.Labels),
		Terminating: ns.DeletionTimestamp != nil || ns.Status.Phase == v1.NamespaceTerminating,
	}
	if old, known := nt[ns.Name]; known && old.equal(now) {
		return false
	}
	nt[ns.Name] = now
	return true
}

func (nt namespaceTable) selected(selector labels.Selector) []string {
	var names []string
	for name, ns := range nt {
		if selector.Matches(ns.Labels) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
