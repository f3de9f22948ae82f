// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// When says as of when resources and pods of a node are considered.
type When bool

const (
	Now    When = false // resources that are free; pods that are being deleted still run
	Future When = true  // resources once everything that is being released is free
)

// NodeInfo is a node with its accounts. What the search for the best node reads of each comes first, so that
// it is in few cache lines.
type NodeInfo struct {
	// Index is dense over existing nodes and reused when a node is deleted; -1 for others.
	Index int
	// Rank orders nodes by name, as of the last Recompute; 0 if it is not known yet. Many nodes of a cluster are
	// equal but for their names, which take long to compare.
	Rank int32
	// Tracking is maintained by package model.
	Tracking NodeTracking

	// Idle is allocatable less the requests of all pods on the node that have not ended. If it is
	// negative, nothing is available.
	Idle        Resource
	Allocatable Resource
	// Pipelined sums the tasks placed on resources that are being released.
	Pipelined Resource
	// Reserved is what a session reserves for single jobs: gangs that have been pending for long, and
	// preemptors.
	Reserved Resource
	// ReservedFor are the jobs that Reserved is for.
	ReservedFor Holders
	// Nominated are pods of other schedulers that have preempted pods of this node and are pending.
	Nominated []*TaskInfo
	// PortTasks are the tasks that use host ports; most nodes have few.
	PortTasks []*TaskInfo

	// Releasing sums the pods that are being deleted, except those that are overdue.
	Releasing Resource
	// Foreign is what pods that belong to no queue hold.
	Foreign Resource
	// Members is what members of queues hold here; members that are being deleted hold nothing.
	Members Resource

	Name string
	// Node is nil for a node that pods name but the API server does not show.
	Node *v1.Node
	// Generation changes when anything on the node does. No value is used twice, so it also
	// distinguishes a node from its predecessor at the same Index.
	Generation uint64
	// OwnGeneration is the Generation of the last change but those of Reserved and ReservedFor, which change and change back
	// in each session.
	OwnGeneration uint64
	// UnavailableFrom is when the node is not available any more, in nanoseconds since 1970; 0: never.
	UnavailableFrom int64
	// Tasks are all pods on the node, and those placed on it, by id.
	Tasks map[TaskID]*TaskInfo
}

// NodeTracking is what package model reads from the node object once, because sessions need it too often to search the
// object each time.
type NodeTracking struct {
	Ready, SoftTaints bool
	UnavailableSoon   bool  // NodeInfo.UnavailableFrom is set
	ExtendedResources uint8 // of how many the node has some; a byte, because of the cache lines of NodeInfo
}

// Exists reports whether the API server shows the node.
func (n *NodeInfo) Exists() bool { return n.Node != nil }

// Ready reports whether the kubelet reports the node as ready. A node that has no such
// condition yet counts as ready, as it does for kube-scheduler.
func (n *NodeInfo) Ready() bool { return n.Tracking.Ready }

// SoftTaints reports whether the node has a taint with the effect PreferNoSchedule.
func (n *NodeInfo) SoftTaints() bool { return n.Tracking.SoftTaints }

// ExtendedResources returns of how many extended resources the node has some.
func (n *NodeInfo) ExtendedResources() int { return int(n.Tracking.ExtendedResources) }

// Outlasts reports whether t could run on the node for longer than the node is available, if it started now, in nanoseconds
// since 1970.
func (n *NodeInfo) Outlasts(t *TaskInfo, now int64) bool {
	if !n.Tracking.UnavailableSoon {
		return false
	}
	limit := t.Limit()
	return limit == 0 || now+int64(limit) > n.UnavailableFrom
}

// UnavailableFromOf reads the annotation of a node, in nanoseconds since 1970; zero if it has none. An annotation that cannot
// be read is an error, and none.
func UnavailableFromOf(node *v1.Node) (int64, error) {
	text, present := node.Annotations[v1alpha1.AnnotationUnavailableFrom]
	if !present {
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Unix() <= 0 {
		return 0, fmt.Errorf("the annotation %s is %q, not a time such as 2026-01-31T22:00:00Z", v1alpha1.AnnotationUnavailableFrom, text)
	}
	return at.UnixNano(), nil
}

// Condition returns the status of a condition of the node; empty if the node does not report it.
func (n *NodeInfo) Condition(kind v1.NodeConditionType) v1.ConditionStatus {
	if n.Node == nil {
		return v1.ConditionUnknown
	}
	for i := range n.Node.Status.Conditions {
		if n.Node.Status.Conditions[i].Type == kind {
			return n.Node.Status.Conditions[i].Status
		}
	}
	return ""
}

// UnderPressure reports whether the node reports the pressure condition kind.
func (n *NodeInfo) UnderPressure(kind v1.NodeConditionType) bool {
	return n.Condition(kind) == v1.ConditionTrue
}

// Fits reports whether the node has the resources that t requests.
func (n *NodeInfo) Fits(t *TaskInfo, when When) bool { return n.InsufficientDimension(t, when) < 0 }

// InsufficientDimension returns the dimension of which the node has too little for t, the most specific one if there are
// several, or -1 if t fits.
func (n *NodeInfo) InsufficientDimension(t *TaskInfo, when When) int {
	if when == Now && n.idleIsAvailable() {
		return t.Request.InsufficientDimension(n.Idle)
	}
	for d := len(t.Request) - 1; d >= fixedDimensions; d-- {
		if asked := t.Request[d]; asked > 0 && asked > n.AvailableIn(d, t.Priority, when) {
			return d
		}
	}
	for d, asked := range t.Request[:min(len(t.Request), fixedDimensions)] {
		if asked > 0 && asked > n.AvailableIn(d, t.Priority, when) {
			return d
		}
	}
	return -1
}

// MissingDimension returns the dimension of a request of which the node has none, even if no pod runs there: an extended
// resource or a size of hugepages. It returns the last one if there are several, and -1 if there is none.
func (n *NodeInfo) MissingDimension(request Resource) int {
	for d := len(request) - 1; d >= fixedDimensions; d-- {
		if request[d] > 0 && n.Allocatable.At(d) <= 0 {
			return d
		}
	}
	return -1
}

// Shortfall returns the resources that are missing on the node for t now, as a new vector; zero if t fits.
func (n *NodeInfo) Shortfall(t *TaskInfo) Resource {
	missing := t.Request.beyond(n.Available(t.Priority, Now))
	for d := range missing {
		if t.Request.At(d) <= 0 { // the node may be over capacity
			missing[d] = 0
		}
	}
	return missing
}

// Deficit measures how far t is from fitting now: for each dimension the part of the request that is missing on the
// node, in thousandths, rounded up, and added up; at most 1000 per dimension. Zero if t fits.
func (n *NodeInfo) Deficit(t *TaskInfo) int64 {
	deficit, whole := int64(0), n.idleIsAvailable()
	for i, asked := range t.Request {
		there := n.Idle.At(i)
		if !whole {
			there = n.AvailableIn(i, t.Priority, Now)
		}
		switch {
		case asked <= there || asked <= 0:
		case there <= 0: // most nodes of a full cluster: no need to divide
			deficit += 1000
		default:
			deficit += ((asked-there)*1000 + asked - 1) / asked
		}
	}
	return deficit
}

// FitsWithoutForeignPods reports whether t would fit now if only pods of queues ran here, and does not because of others.
// What is nominated or reserved stays so. Extended resources are compared first, because they are what is missing in most
// cases.
func (n *NodeInfo) FitsWithoutForeignPods(t *TaskInfo) bool {
	if n.Foreign.IsZero() {
		return false
	}
	whole := n.idleIsAvailable()
	for i := len(t.Request) - 1; i >= 0; i-- {
		there := n.Idle.At(i)
		if !whole {
			there = n.AvailableIn(i, t.Priority, Now)
		}
		if asked := t.Request[i]; asked > 0 && asked > saturatingAdd(there, n.Foreign.At(i)) {
			return false
		}
	}
	return true
}

// idleIsAvailable reports whether all idle resources are available.
func (n *NodeInfo) idleIsAvailable() bool {
	return len(n.Nominated) == 0 && n.Pipelined.IsZero() && n.Reserved.IsZero()
}

// Available returns what a task of the given priority could take, as a new vector: idle, less the requests of
// pods nominated by other schedulers at or above that priority; in the Future also
// what is being released. Pipelined tasks and reservations are deducted from what is
// being released first and, where that does not suffice, from what is idle. Resources being released on a
// node that is not Ready do not count: when its pods will end is unknown.
func (n *NodeInfo) Available(priority int32, when When) Resource {
	dims := max(len(n.Idle), len(n.Pipelined), len(n.Reserved), len(n.Releasing))
	for _, t := range n.Nominated {
		dims = max(dims, len(t.Request))
	}
	free := make(Resource, dims)
	for d := range free {
		free[d] = n.AvailableIn(d, priority, when)
	}
	return free
}

// AvailableIn returns one dimension of Available.
func (n *NodeInfo) AvailableIn(d int, priority int32, when When) int64 {
	free := n.Idle.At(d)
	for _, t := range n.Nominated {
		if t.Priority >= priority {
			free = saturatingSub(free, t.Request.At(d))
		}
	}
	committed := saturatingAdd(n.Pipelined.At(d), n.Reserved.At(d))
	if n.Ready() {
		if when == Future {
			free = saturatingAdd(free, n.Releasing.At(d))
		} else {
			committed = max(saturatingSub(committed, n.Releasing.At(d)), 0)
		}
	}
	return saturatingSub(free, committed)
}

// HasReleasing reports whether anything is being released here.
func (n *NodeInfo) HasReleasing() bool { return !n.Releasing.IsZero() && n.Ready() }

// PortConflict reports whether a host port that t requests is in use.
func (n *NodeInfo) PortConflict(t *TaskInfo, when When) bool {
	if len(t.Signature.Ports) == 0 || len(n.PortTasks) == 0 {
		return false
	}
	for _, other := range n.PortTasks {
		if other == t || when == Future && other.Status == Releasing && !other.Tracking.Overdue {
			continue
		}
		for _, a := range t.Signature.Ports {
			for _, b := range other.Signature.Ports {
				if a.conflicts(b) {
					return true
				}
			}
		}
	}
	return false
}
