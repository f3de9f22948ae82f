// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package model is the live model of the cluster: the objects that the API server shows, the operations that are
// in flight, and the decisions of the open session, with all sums over them. It has no client, no lock and no clock.
// One goroutine, the scheduling one, owns a Cluster.
//
// Cluster is the read side, and implements api.ClusterView. Events applies what the API server shows, Ledger
// what the scheduler decides. The memory is divided between tables, each in a file of its own: nodes, jobs (with
// queues and groups), signatures (with affinity terms), namespaces, budgets, evictions, and the record
// of operations in flight, which survives a rebuild of the model.
//
// The sums of nodes, jobs and queues depend on status, node, job and signature of their tasks. Every change of these
// is bracketed by Cluster.detach, which subtracts the task everywhere, and Cluster.attach, which adds it. Changes that concern
// a whole job or node (its queue, its reservation) move the sums in the one function that makes the change. Package audit
// recomputes all sums in tests.
package model
