// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"math"
	"math/bits"
)

// Share is a non-negative fraction, compared exactly: no floats, no rounding. Anything of
// nothing is above every finite share; nothing of nothing is zero.
type Share struct{ Part, Whole int64 }

// Compare returns a negative number, zero, or a positive one as s is less than, equal to or
// greater than o.
func (s Share) Compare(o Share) int {
	a, b := s.kind(), o.kind()
	if a != b || a != finite {
		return a - b
	}
	sHigh, sLow := bits.Mul64(uint64(s.Part), uint64(o.Whole))
	oHigh, oLow := bits.Mul64(uint64(o.Part), uint64(s.Whole))
	switch {
	case sHigh != oHigh:
		return order(sHigh, oHigh)
	default:
		return order(sLow, oLow)
	}
}

const (
	zero = iota
	finite
	infinite
)

func (s Share) kind() int {
	switch {
	case s.Part <= 0:
		return zero
	case s.Whole <= 0:
		return infinite
	}
	return finite
}

func order(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return +1
	}
	return 0
}

// Parts is how finely one unit of a dimension is divided between queues: thousandths. Bytes are not
// divided, since thousandths of a byte mean nothing and would overflow above 8 PiB.
func Parts(dimension int) int64 {
	if dimension == Memory {
		return 1
	}
	return 1000
}

// InParts converts units, which may be many more than there are parts to count them in: no queue is to
// look poor for asking for too much.
func InParts(dimension int, units int64) int64 {
	parts := Parts(dimension)
	return min(max(units, math.MinInt64/parts), math.MaxInt64/parts) * parts
}

// Units rounds parts to whole units, for people.
func Units(parts Resource) Resource {
	units := parts.Clone()
	for d := range units {
		units[d] = (units[d] + Parts(d)/2) / Parts(d)
	}
	return units
}

// Dominant returns the greatest share of whole that part takes in any shared dimension: the
// dominant share of Ghodsi et al., "Dominant Resource Fairness", NSDI 2011.
func (d *Dimensions) Dominant(part, whole Resource) Share {
	var most Share
	for i, n := range part {
		if n > 0 && d.Shared(i) {
			if s := (Share{n, whole.At(i)}); s.Compare(most) > 0 {
				most = s
			}
		}
	}
	return most
}

// Fairer reports whether a preemptor whose share changes from before to after, at the cost of a victim that
// has left then, brings shares closer together permanently: t < t′ ≤ v′. The preemptor's share rises
// strictly, and ends at or below what the victim has left. Then the sorted vector of shares rises lexicographically with every such
// step, so that no sequence of them comes back to where it began; with t = t′ allowed two
// preemptors could evict each other endlessly in a dimension that changes neither share.
func Fairer(before, after, left Share) bool {
	return before.Compare(after) < 0 && after.Compare(left) <= 0
}
