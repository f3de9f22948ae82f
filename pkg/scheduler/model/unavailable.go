// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// setUnavailable reads from when n is not available; node is nil if it was deleted. The first and the last such node change
// what is an equivalence class.
func (nt *nodeTable) setUnavailable(n *api.NodeInfo, node *v1.Node) {
	before := nt.unavailableSoon
	if n.UnavailableFrom != 0 {
		nt.unavailableSoon--
	}
	n.UnavailableFrom = 0
	if node != nil {
		n.UnavailableFrom, _ = api.UnavailableFromOf(node) // an event says what cannot be read
	}
	n.Tracking.UnavailableSoon = n.UnavailableFrom != 0
	if n.Tracking.UnavailableSoon {
		nt.unavailableSoon++
	}
	if (before > 0) != (nt.unavailableSoon > 0) {
		nt.classesChanged()
	}
}

// TimePassed notes that time has passed since the last session: fewer tasks are over before nodes become unavailable.
func TimePassed(c *Cluster) {
	for _, n := range c.NodesUnavailableSoon() {
		c.generations.Model++
		c.nodes.touch(n)
	}
}
