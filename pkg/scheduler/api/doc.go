// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package api holds the types of the scheduler's model of the cluster: tasks, jobs, queues, nodes, their
// resource vectors, and the types of decisions and refusals. It is pure data with rules: no client,
// no lock, no clock. Package model builds these objects and is the only package that changes them;
// plugins and actions read them, through ClusterView.
//
// Report is the only type of this package that other goroutines may read: it shares nothing with the model that changes.
package api
