// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func TestShareCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b api.Share
		want int
	}{
		"nothing of nothing is zero":           {api.Share{}, api.Share{Part: 0, Whole: 5}, 0},
		"something of nothing is above finite": {api.Share{Part: 1}, api.Share{Part: 9, Whole: 1}, 1},
		"two infinite ones are equal":          {api.Share{Part: 1}, api.Share{Part: 2}, 0},
		"a third is less than a half":          {api.Share{Part: 1, Whole: 3}, api.Share{Part: 1, Whole: 2}, -1},
		"reduced or not is equal":              {api.Share{Part: 2, Whole: 6}, api.Share{Part: 1, Whole: 3}, 0},
		"beyond 64 bits": {
			api.Share{Part: math.MaxInt64 - 1, Whole: math.MaxInt64},
			api.Share{Part: math.MaxInt64 - 2, Whole: math.MaxInt64 - 1}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sign(tc.a.Compare(tc.b)); got != tc.want {
				t.Errorf("%v against %v: got %d, want %d", tc.a, tc.b, got, tc.want)
			}
			if got := sign(tc.b.Compare(tc.a)); got != -tc.want {
				t.Errorf("%v against %v: got %d, want %d", tc.b, tc.a, got, -tc.want)
			}
		})
	}
}

func TestShareComparesLikeFractions(t *testing.T) {
	positive := rapid.Int64Range(1, math.MaxInt64)
	rapid.Check(t, func(t *rapid.T) {
		a := api.Share{Part: positive.Draw(t, "part"), Whole: positive.Draw(t, "whole")}
		b := api.Share{Part: positive.Draw(t, "part"), Whole: positive.Draw(t, "whole")}
		if got, want := sign(a.Compare(b)), big.NewRat(a.Part, a.Whole).Cmp(big.NewRat(b.Part, b.Whole)); got != want {
			t.Errorf("%v against %v: got %d, want %d", a, b, got, want)
		}
	})
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func TestFairer(t *testing.T) {
	of := func(part int64) api.Share { return api.Share{part, 10} }
	for name, tc := range map[string]struct {
		before, after, left api.Share
		want                bool
	}{
		"the reclaimer stays below what the victim queue keeps": {of(1), of(2), of(5), true},
		"both end alike": {of(1), of(3), of(3), true},
		"the reclaimer ends above the victim queue": {of(1), of(4), of(3), false},
		"the reclaimer's share does not change":     {of(3), of(3), of(5), false},
		"out of nothing, of nothing":                {api.Share{}, api.Share{1, 0}, of(9), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := api.Fairer(tc.before, tc.after, tc.left); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
