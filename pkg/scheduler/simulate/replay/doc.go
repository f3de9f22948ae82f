// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package replay runs the scheduler over a trace on a virtual clock: the model, sessions, plugins and actions of the daemon,
// without a cluster. The clock jumps to the next event, or to the next time at which a session asked for another. Equal input
// gives equal results.
//
// A job of the trace is a PodGroup with pods. It runs from the session that binds the last of the pods that it needs, for its
// run time. An evicted pod ends after a grace period, and a new one takes its place. If too few pods are left, the run begins
// again when there are enough: nothing is kept of it.
package replay
