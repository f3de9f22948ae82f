// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package proportion

import (
	"math/bits"
	"slices"
)

// party is one queue in one dimension of the division.
type party struct {
	weight    int64 // at least 1
	request   int64 // or the cap if that is less
	guarantee int64 // what it gets before all others, as far as it requests it
	deserved  int64 // the result
}

// divide gives each party its guarantee, then raises all that are not satisfied at a rate in
// proportion to their weights until they have what they request or nothing is left (progressive
// filling; Bertsekas and Gallager, Data Networks, section 6.5.2). Guarantees that together
// exceed the total are scaled down in proportion. All amounts are non-negative; what cannot be
// divided goes to the largest remainders, then to the first.
func divide(total int64, parties []party) {
	left := total - grantGuarantees(total, parties)
	var weights int64
	open := make([]*party, 0, len(parties))
	for i := range parties {
		if p := &parties[i]; p.request > p.deserved {
			open = append(open, p)
			weights += p.weight
		}
	}
	// The party that needs least for its weight is satisfied first.
	slices.SortStableFunc(open, func(a, b *party) int {
		return compareProducts(a.request-a.deserved, b.weight, b.request-b.deserved, a.weight)
	})
	for i, p := range open {
		need := p.request - p.deserved
		if compareProducts(need, weights, left, p.weight) > 0 {
			share(left, weights, open[i:])
			return
		}
		p.deserved += need
		left -= need
		weights -= p.weight
	}
}

// grantGuarantees sets deserved to the guarantees and returns their sum.
func grantGuarantees(total int64, parties []party) int64 {
	var sum int64
	for i := range parties {
		p := &parties[i]
		p.deserved = min(p.guarantee, p.request)
		sum = saturatingAdd(sum, p.deserved)
	}
	if sum <= total {
		return sum
	}
	for i := range parties {
		parties[i].deserved, _ = mulDiv(total, parties[i].deserved, sum)
	}
	return total // what rounding has left over is too little to divide
}

// share divides left among parties by weight.
func share(left, weights int64, parties []*party) {
	type part struct {
		p         *party
		remainder int64
	}
	parts := make([]part, len(parties))
	rest := left
	for i, p := range parties {
		amount, remainder := mulDiv(left, p.weight, weights)
		p.deserved += amount
		rest -= amount
		parts[i] = part{p, remainder}
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		switch {
		case a.remainder > b.remainder:
			return -1
		case a.remainder < b.remainder:
			return +1
		}
		return 0
	})
	for i := range parts {
		if rest <= 0 {
			return
		}
		parts[i].p.deserved++
		rest--
	}
}

// mulDiv returns a × b / c and the remainder without overflow, for a ≤ c or b ≤ c.
func mulDiv(a, b, c int64) (quotient, remainder int64) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(high, low, uint64(c))
	return int64(q), int64(r)
}

// compareProducts compares a × b with c × d without overflow; all are non-negative.
func compareProducts(a, b, c, d int64) int {
	leftHigh, leftLow := bits.Mul64(uint64(a), uint64(b))
	rightHigh, rightLow := bits.Mul64(uint64(c), uint64(d))
	switch {
	case leftHigh < rightHigh, leftHigh == rightHigh && leftLow < rightLow:
		return -1
	case leftHigh == rightHigh && leftLow == rightLow:
		return 0
	}
	return +1
}

func saturatingAdd(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<63 - 1
}
