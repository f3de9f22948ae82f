// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// at is what is free in one dimension at a time.
func (p *profile) at(d int, time int64) (free int64) {
	free = p.free.At(d)
	for _, r := range p.releases {
		if r.at <= time {
			free += r.amount.At(d)
		}
	}
	return free
}

// A profile exceeds another if at some time more is free: here all times are compared.
func TestProfilesExceed(t *testing.T) {
	const last = 8
	amounts := rapid.SliceOfN(rapid.Int64Range(0, 2), 0, 2)
	draw := func(t *rapid.T, read int64) *profile {
		p := &profile{free: amounts.Draw(t, "free")}
		for range rapid.IntRange(0, 4).Draw(t, "releases") {
			p.releases = append(p.releases, release{at: rapid.Int64Range(read+1, last).Draw(t, "at"), amount: amounts.Draw(t, "amount")})
		}
		slices.SortFunc(p.releases, func(a, b release) int { return cmp.Compare(a.at, b.at) })
		return p
	}
	seen := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.Int64Range(0, 3).Draw(t, "now")
		before, p := draw(t, 0), draw(t, now)
		want := false
		for time := now; time <= last; time++ {
			for d := range 2 {
				want = want || p.at(d, time) > before.at(d, time)
			}
		}
		if got := p.exceeds(before, now); got != want {
			t.Fatalf("%v exceeds %v from %d on: %v, want %v", *p, *before, now, got, want)
		}
		seen[want]++
	})
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("only one answer was seen: %v", seen)
	}
}
