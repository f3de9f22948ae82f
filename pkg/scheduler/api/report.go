// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Report is what a cycle found out, for the status writers. It shares nothing
// that changes with the model, so any goroutine may read it at any time.
type Report struct {
	// PodGroups that changed in this cycle or wait.
	PodGroups []PodGroupReport
	// Queues are all queues.
	Queues []QueueReport
	// Topologies are those of which other domains or nodes were counted than before.
	Topologies []TopologyReport
	// Pods are waiting pods with the PodScheduled condition that they should show.
	Pods []PodReport
}

// PodGroupReport is the status that a PodGroup should show.
type PodGroupReport struct {
	Source          GroupSource
	Namespace, Name string
	UID             types.UID
	Generation      int64 // of the spec that the cycle saw
	Part            bool  // of a tree of groups: the events are those of the root

	Phase                               v1alpha1.PodGroupPhase
	Pending, Running, Succeeded, Failed int32

	// Started is when the PodGroup started, in nanoseconds since 1970; 0 if it has not. Start is when it will.
	Started int64
	Start   StartEstimate

	// Topology are the domains where it has nodes; empty without a topology constraint.
	Topology OccupiedDomains

	// Scheduled, Reason and Message are the condition PodGroupScheduled. An empty reason leaves
	// the condition as it is.
	Scheduled bool
	Reason    string
	Message   string
	// Plugins are the names, with commas between them, of those that refuse the PodGroup or nodes for its pods. They are
	// written with the condition.
	Plugins string
	// Domain is the one that the message is about. It is written with the condition.
	Domain DomainName
}

// QueueReport is the status that a Queue should show.
type QueueReport struct {
	Name   string
	UID    types.UID
	Status v1alpha1.QueueStatus
}

// TopologyReport is the status that a Topology should show.
type TopologyReport struct {
	Name   string
	UID    types.UID
	Status v1alpha1.TopologyStatus
}

// PodReport is the PodScheduled=False condition that a waiting pod should show, and the node where
// others are evicted for it, if any.
type PodReport struct {
	Namespace, Name string
	UID             types.UID
	Reason          string
	Message         string
	NominatedNode   string
}
