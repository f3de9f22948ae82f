// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestJournal(t *testing.T) {
	t.Parallel()
	var j Journal
	start := j.Position()
	for i := range journalLimit + 10 {
		j.Add(i)
	}
	if _, ok := j.Since(start); ok {
		t.Error("Since does not report that entries were dropped")
	}
	recent := j.Position() - 3
	got, ok := j.Since(recent)
	if !ok || len(got) != 3 || got[2] != journalLimit+9 {
		t.Errorf("the last three are %v, %t", got, ok)
	}
	if got, ok := j.Since(j.Position()); !ok || len(got) != 0 {
		t.Errorf("after the end there is %v, %t", got, ok)
	}
}

// TestJournalReader lists what a second CatchUp returns, after a first one has read all of a journal with the
// entries 1 and 2.
func TestJournalReader(t *testing.T) {
	t.Parallel()
	add := func(indexes ...int) func(*Journal, *JournalReader) {
		return func(j *Journal, _ *JournalReader) {
			for _, index := range indexes {
				j.Add(index)
			}
		}
	}
	many := func(n int) []int { return slices.Repeat([]int{5}, n) }
	for name, test := range map[string]struct {
		given func(*Journal, *JournalReader)
		limit int
		want  []string
	}{
		"nothing has changed":                           {add(), 9, nil},
		"nothing has changed, and the limit is zero":    {add(), 0, nil},
		"one node has changed":                          {add(7), 9, []string{"7"}},
		"nodes are updated in the order of the changes": {add(7, 2), 9, []string{"7", "2"}},
		"repeated entries are repeated":                 {add(7, 7), 9, []string{"7", "7"}},
		"as many entries as the limit":                  {add(7, 2, 4), 3, []string{"7", "2", "4"}},
		"more entries than the limit":                   {add(7, 2, 4), 2, []string{"rebuild"}},
		"the journal is full and keeps all new entries": {add(many(journalLimit - 2)...), math.MaxInt, slices.Repeat([]string{"5"}, journalLimit-2)},
		"the journal has dropped an unread entry": {
			add(many(journalLimit - 2 + 1)...), math.MaxInt, []string{"rebuild"},
		},
		"the journal has dropped only entries that were read": {
			func(j *Journal, r *JournalReader) {
				add(many(journalLimit-2)...)(j, r)
				r.CatchUp(j, math.MaxInt)
				j.Add(7)
			}, 9, []string{"7"},
		},
		"the reader was invalidated": {
			func(_ *Journal, r *JournalReader) { r.Invalidate() }, 9, []string{"rebuild"},
		},
		"the reader was invalidated, and a node has changed": {
			func(j *Journal, r *JournalReader) { r.Invalidate(); j.Add(7) }, 9, []string{"rebuild"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var j Journal
			var r JournalReader
			var got []string
			catchUp := func(limit int) {
				got = nil
				changed, known := r.CatchUp(&j, limit)
				if !known {
					got = append(got, "rebuild")
				}
				for _, index := range changed {
					got = append(got, fmt.Sprint(index))
				}
			}
			j.Add(1)
			j.Add(2)
			if r.UpToDate(&j) {
				t.Error("a reader that has read nothing is up to date")
			}
			catchUp(9)
			if diff := cmp.Diff([]string{"rebuild"}, got); diff != "" {
				t.Errorf("the first time (-want +got):\n%s", diff)
			}
			test.given(&j, &r)
			if got := r.UpToDate(&j); got != (len(test.want) == 0) {
				t.Errorf("up to date before: %t", got)
			}
			catchUp(test.limit)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the second time (-want +got):\n%s", diff)
			}
			if !r.UpToDate(&j) {
				t.Error("not up to date afterwards")
			}
		})
	}
}

// TestJournalReaderAgainstTwin lets readers of one journal copy the values of nodes. After each CatchUp a copy equals the
// values, however far behind the reader was.
func TestJournalReaderAgainstTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var journal Journal
		values := make([]int, rapid.IntRange(1, 5).Draw(t, "nodes"))
		change := func() {
			index := rapid.IntRange(0, len(values)-1).Draw(t, "changed node")
			values[index]++
			journal.Add(index)
		}
		readers, copies := make([]JournalReader, 3), make([][]int, 3)
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				for range rapid.IntRange(journalLimit/4, journalLimit+10).Draw(t, "changes of the first node") {
					values[0]++
					journal.Add(0)
				}
			case 1:
				values[len(values)-1]++ // not in the journal
				for i := range readers {
					readers[i].Invalidate()
				}
			case 2, 3, 4, 5:
				change()
			default:
				i := rapid.IntRange(0, len(readers)-1).Draw(t, "reader")
				limit := rapid.SampledFrom([]int{0, 1, len(values), math.MaxInt}).Draw(t, "limit")
				changed, known := readers[i].CatchUp(&journal, limit)
				for _, index := range changed {
					copies[i][index] = values[index]
				}
				if !known {
					copies[i] = slices.Clone(values)
				}
				if diff := cmp.Diff(values, copies[i]); diff != "" {
					t.Fatalf("reader %d (-values +copy):\n%s", i, diff)
				}
				if len(changed) > limit || !readers[i].UpToDate(&journal) {
					t.Fatalf("reader %d: %d updates with a limit of %d, up to date: %t", i, len(changed), limit, readers[i].UpToDate(&journal))
				}
			}
		}
	})
}

func TestJournalReaderAllocatesNothing(t *testing.T) {
	var j Journal
	var r JournalReader
	sum := 0
	if got := testing.AllocsPerRun(100, func() {
		j.entries = append(j.entries[:0], 1, 2) // without growing
		r.position = 0
		changed, _ := r.CatchUp(&j, 9)
		sum += len(changed)
	}); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
