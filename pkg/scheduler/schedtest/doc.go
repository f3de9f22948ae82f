// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package schedtest runs scenario tests of actions and plugins: a cluster, declared row by row, and the transcript of
// the scheduler's decisions.
//
//	given: Given(
//		Node("n1", "2cpu 8Gi"),
//		Queue("q", 1),
//		Group("q/low", 2, Running(2, "1cpu 1Gi", "n1")),
//		Group("q/high", 1, Priority(9), Pending(1, "1cpu 1Gi")),
//	),
//	want: `pipeline q/high-0 n1`,
//
// Names are identities: "q/low" is the PodGroup low in queue q, and its pods are q/low-0, q/low-1 and so on. Every
// object is created one second after the previous one, so that all orders are total. A row that names a queue or a
// node that no row above declares fails the test.
//
// A Scenario has a fake API server: it delivers the objects to the model, opens sessions with the plugins and actions
// of a registry, and delivers bind and eviction results as the test requests. It checks invariants after each step;
// see invariants.go. It keeps three models: one receives the objects in the order of the rows, one in a shuffled
// order, and one never runs a session. The first two must make the same decisions, and all three must be equal after
// the session.
package schedtest
