// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodeindex answers questions about all nodes without examining all nodes.
//
// Which nodes pass the filters for a pod signature, how many nodes have available resources for a task and why
// the others do not, what the cluster has available in one dimension: actions and plugins ask this for each
// job, several times in a cycle, and in most cycles few nodes have changed since the last answer. An Index
// keeps each answer as one part per node and follows the model's journals of changed nodes. It examines
// again the nodes that have changed, and corrects the sums by the difference of their parts. For example, if
// one of 5,000 nodes has changed, counting the nodes with available resources examines one node.
//
// The answers live as long as the configuration and the cluster object. All of them are derived: dropping an Index
// costs time and never correctness. The tests compare each of them with a walk over all nodes, after random
// changes.
//
// The package is below the framework: an Index reads the model through the interface Cluster and asks the
// current session through the interface Filters.
package nodeindex
