// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

// Score says how good a node is for a task, in millionths: a scorer with weight 1 answers
// between 0 and OneScore. Scores are absolute, not normalized over the nodes that happen to be
// feasible, so that one node's score changes only when that node does.
type Score int64

// OneScore is the best answer of a scorer of weight 1.
const OneScore Score = 1_000_000
