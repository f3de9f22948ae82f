// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// item is ordered by its rank, and otherwise by its number.
type item struct{ Rank, Number int }

func compare(a, b item) int {
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Number, b.Number))
}

// TestAgainstSortedList requires that a heap gives out what a sorted list would.
func TestAgainstSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := New(compare)
		var twin, got, want []item
		for number, rank := range rapid.SliceOf(rapid.IntRange(-6, 9)).Draw(t, "ranks, and other operations where negative") {
			v := item{max(rank, -rank), number}
			switch {
			case rank >= 0 || len(twin) == 0:
				h.Push(v)
				twin = append(twin, v)
			case rank >= -2:
				h.Replace(v)
				twin[0] = v
			case rank == -3:
				h.Clear()
				twin = nil
			default:
				got, want = append(got, h.First()), append(want, twin[0])
				h.Pop()
				twin = twin[1:]
			}
			slices.SortFunc(twin, compare)
			if h.Len() != len(twin) || len(twin) > 0 && h.First() != twin[0] {
				t.Fatalf("the heap has %v, want %v", h.Items(), twin)
			}
		}
		for h.Len() > 0 {
			got = append(got, h.First())
			h.Pop()
		}
		if diff := gocmp.Diff(append(want, twin...), got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
