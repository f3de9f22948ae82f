// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "math/bits"

// Score says how good a node is for a task, in millionths: a scorer with weight 1 answers
// between 0 and OneScore. Scores are absolute, not normalized over the nodes that happen to be
// feasible, so that one node's score changes only when that node does.
type Score int64

// OneScore is the best answer of a scorer of weight 1.
const OneScore Score = 1_000_000

// ScoreOf returns part/whole, limited to 0..1. The whole must be positive. The product with a million needs more than
// 64 bits for memory above 8 TiB.
func ScoreOf(part, whole int64) Score {
	if part <= 0 {
		return 0
	}
	if part >= whole {
		return OneScore
	}
	high, low := bits.Mul64(uint64(part), uint64(OneScore))
	quotient, _ := bits.Div64(high, low, uint64(whole))
	return Score(quotient)
}
