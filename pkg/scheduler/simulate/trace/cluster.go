// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// What else than jobs a trace may have: the cluster itself.

// NodeState is what happens to a node.
type NodeState string

// The states of nodes. A node that is down does not exist, and its pods are lost.
const (
	NodeUp     NodeState = "up"
	NodeDown   NodeState = "down"
	NodeCordon NodeState = "cordon"
)

// NodeEvent changes a node. With Allocatable it also says what the node is from then on: it adds the node, or replaces it.
type NodeEvent struct {
	At    time.Duration
	Node  string
	State NodeState

	Allocatable v1.ResourceList
	Labels      map[string]string
	Taints      []v1.Taint
}

// Defines reports whether the event says what the node is.
func (e *NodeEvent) Defines() bool { return e.Allocatable != nil }

// Object returns the node that the event defines, ready and not cordoned.
func (e *NodeEvent) Object() *v1.Node {
	n := newNode(e.Node, e.Allocatable)
	for key, value := range e.Labels {
		n.Labels[key] = value
	}
	n.Spec.Taints = e.Taints
	return n
}

// Record is what a record of a cluster has besides jobs and nodes.
type Record struct {
	Queues []QueueEvent // by time
	Pods   []Pod        // by time
	// End is when the record ended; 0 if the trace does not say so.
	End time.Duration
}

// QueueEvent adds or changes a queue, or deletes it if Spec is nil.
type QueueEvent struct {
	At    time.Duration
	Queue string
	Spec  *v1alpha1.QueueSpec
}

// Pod is a pod of another scheduler. From At on it holds resources of its node, until it has run.
type Pod struct {
	At      time.Duration
	Name    string
	Node    string
	Run     time.Duration
	Unended bool // see Job.Unended
	Request v1.ResourceList
}

func (r *Record) sort() {
	slices.SortStableFunc(r.Queues, func(a, b QueueEvent) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(r.Pods, func(a, b Pod) int { return cmp.Compare(a.At, b.At) })
}

func (r *Record) scale(scaled func(time.Duration) time.Duration) {
	for i := range r.Queues {
		r.Queues[i].At = scaled(r.Queues[i].At)
	}
	for i := range r.Pods {
		r.Pods[i].At = scaled(r.Pods[i].At)
	}
	r.End = scaled(r.End)
}
