// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "slices"

// Reservation is what a session reserves for a job on nodes and in a queue. It is never more than is available, and
// no task holds it: it does not count as allocated. Package model makes and releases it.
type Reservation struct {
	Job   *JobInfo // nil if there are no parts
	Parts []ReservedPart
	Queue *QueueInfo
	Cap   Resource // of the queue's capability
}

// ReservedPart is the part of a Reservation on one node.
type ReservedPart struct {
	Node   *NodeInfo
	Amount Resource
}

// Holders are the jobs for which resources of a node, or of the caps of a queue, are reserved. A job is listed once for
// each part.
type Holders []*JobInfo

// Add adds a part of a job.
func (h *Holders) Add(j *JobInfo) { *h = append(*h, j) }

// Remove removes a part of a job.
func (h *Holders) Remove(j *JobInfo) {
	if at := slices.Index(*h, j); at >= 0 {
		*h = slices.Delete(*h, at, at+1)
	}
}

// First returns the namespace/name of the first of the jobs of a namespace, by name; empty if there are none. Users learn
// nothing about jobs of other namespaces.
func (h Holders) First(namespace string) string {
	first := ""
	for _, j := range h {
		if j.Namespace == namespace && (first == "" || j.Key < first) {
			first = j.Key
		}
	}
	return first
}
