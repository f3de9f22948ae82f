// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"cmp"
	"slices"
)

// Parts is the sum of the weights of Popular.
const Parts = 32

// coveredPercent is of which part of all pods there are types, if MaxTypes suffice.
const coveredPercent = 95

// Popular returns the most frequent types. Weights are numbers of pods, which it replaces by parts of Parts, so that few
// arrivals change a weight: the part of each type is rounded down, and those with the largest remainders get one more. Types
// with less than a part are left out. Among equally frequent ones, the first count.
//
//	given    500, 300, 120, 40, 40 pods
//	covered  the first four are 96 % of all pods
//	parts    16 2/3, 10, 4, 1 1/3, so 17, 10, 4 and 1
func Popular(types []Type) []Type {
	types = slices.Clone(types)
	slices.SortStableFunc(types, func(a, b Type) int { return cmp.Compare(b.Weight, a.Weight) })
	var all, covered int64
	for i := range types {
		all += types[i].Weight
	}
	for i := range types {
		if i == MaxTypes || covered*100 >= all*coveredPercent {
			types = types[:i]
			break
		}
		covered += types[i].Weight
	}
	type remainder struct {
		index int
		of    int64
	}
	remainders, rest := make([]remainder, len(types)), int64(Parts)
	for i := range types {
		pods := types[i].Weight * Parts
		types[i].Weight, remainders[i] = pods/covered, remainder{i, pods % covered}
		rest -= types[i].Weight
	}
	slices.SortStableFunc(remainders, func(a, b remainder) int { return cmp.Compare(b.of, a.of) })
	for _, r := range remainders[:min(rest, int64(len(types)))] {
		types[r.index].Weight++
	}
	return slices.DeleteFunc(types, func(t Type) bool { return t.Weight == 0 })
}
