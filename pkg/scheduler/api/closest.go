// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strings"
)

// Closest returns the known name that takes the fewest edits to reach, ignoring case. At most a third of the letters
// may be edited, because a distant suggestion misleads. Among equally close names it returns the first in alphabetical
// order.
func Closest(name string, known []string) (best string, ok bool) {
	name = strings.ToLower(name)
	fewest := max(1, len(name)/3)
	for _, candidate := range slices.Sorted(slices.Values(known)) {
		if d, near := distance(name, strings.ToLower(candidate), fewest); near && (!ok || d < fewest) {
			best, fewest, ok = candidate, d, true
		}
	}
	return best, ok
}

// distance counts the bytes to insert, delete, replace, or swap with their neighbour to change a into b (optimal string
// alignment). If there are more than limit, near is false.
func distance(a, b string, limit int) (d int, near bool) {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return 0, false
	}
	// Row i holds the distances between a[:i] and every b[:j]. A swap needs the row before the last.
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)], row[len(b)] <= limit
}
