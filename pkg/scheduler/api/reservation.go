// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

// Reservation is what a session reserves for a job on nodes and in a queue. It is never more than is available, and
// no task holds it: it does not count as allocated. Package model makes and releases it.
type Reservation struct {
	Parts []ReservedPart
	Queue *QueueInfo
	Cap   Resource // of the queue's capability
}

// ReservedPart is the part of a Reservation on one node.
type ReservedPart struct {
	Node   *NodeInfo
	Amount Resource
}
