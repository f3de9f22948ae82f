// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package proportion

import (
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// unbounded is the cap of parties without capability.
const unbounded = int64(1) << 50 // times 1000 still fits

func TestDivide(t *testing.T) {
	type given struct {
		total                                   int64
		weights, requests, guarantees, capacity []int64
	}
	for name, tc := range map[string]struct {
		given given
		want  []int64 // thousandths
	}{
		"the small are satisfied, the rest share alike": {
			given: given{total: 100, weights: []int64{1, 1, 1}, requests: []int64{20, 50, 80}},
			want:  []int64{20_000, 40_000, 40_000},
		},
		"by weight": {
			given: given{total: 100, weights: []int64{3, 1, 1}, requests: []int64{90, 10, 40}},
			want:  []int64{67_500, 10_000, 22_500},
		},
		"one dimension of two: cpu": {
			given: given{total: 32, weights: []int64{1, 2, 1}, requests: []int64{4, 40, 20}},
			want:  []int64{4_000, 18_667, 9_333},
		},
		"one dimension of two: memory": {
			given: given{total: 128, weights: []int64{1, 2, 1}, requests: []int64{64, 32, 100}},
			want:  []int64{48_000, 32_000, 48_000},
		},
		"a guarantee below the request": {
			given: given{total: 100, weights: []int64{60, 50, 80}, requests: []int64{20, 100, 100}, guarantees: []int64{15, 0, 0}},
			want:  []int64{20_000, 30_769, 49_231},
		},
		"caps": {
			given: given{total: 100, weights: []int64{1, 1, 2}, requests: []int64{100, 100, 100}, capacity: []int64{10, unbounded, 60}},
			want:  []int64{10_000, 30_000, 60_000},
		},
		"guarantees first, then alike": {
			given: given{total: 64, weights: []int64{1, 1, 1}, requests: []int64{40, 40, 4}, guarantees: []int64{8, 16, 8}},
			want:  []int64{26_000, 34_000, 4_000},
		},
		"guarantees beyond the total shrink in proportion": {
			given: given{total: 30, weights: []int64{1, 1}, requests: []int64{40, 40}, guarantees: []int64{40, 20}},
			want:  []int64{20_000, 10_000},
		},
		"nothing to divide": {
			given: given{total: 0, weights: []int64{1, 2}, requests: []int64{5, 5}},
			want:  []int64{0, 0},
		},
		"more than all parties request": {
			given: given{total: 100, weights: []int64{1, 2}, requests: []int64{5, 6}},
			want:  []int64{5_000, 6_000},
		},
		"the largest remainder gets what is left": {
			given: given{total: 1, weights: []int64{1, 1, 1}, requests: []int64{1, 1, 1}},
			want:  []int64{334, 333, 333},
		},
	} {
		t.Run(name, func(t *testing.T) {
			parties := make([]party, len(tc.given.weights))
			for i := range parties {
				parties[i] = party{weight: tc.given.weights[i], request: tc.given.requests[i] * 1000}
				if tc.given.guarantees != nil {
					parties[i].guarantee = tc.given.guarantees[i] * 1000
				}
				if tc.given.capacity != nil {
					parties[i].request = min(parties[i].request, tc.given.capacity[i]*1000)
				}
			}
			divide(tc.given.total*1000, parties)
			got := make([]int64, len(parties))
			for i := range parties {
				got[i] = parties[i].deserved
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("deserved (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDivideEqualsPouring compares with a simple twin in exact fractions: pour until the first
// vessel is full, take it out, pour on.
func TestDivideEqualsPouring(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(0, 5000).Draw(t, "total")
		parties := make([]party, rapid.IntRange(1, 7).Draw(t, "parties"))
		for i := range parties {
			parties[i] = party{
				weight:    rapid.Int64Range(1, 9).Draw(t, "weight"),
				request:   rapid.Int64Range(0, 3000).Draw(t, "request"),
				guarantee: rapid.SampledFrom([]int64{0, 0, 0, 100, 900}).Draw(t, "guarantee"),
			}
		}
		want := pour(total, parties)
		divide(total, parties)
		sum := int64(0)
		for i, p := range parties {
			sum += p.deserved
			if off := new(big.Rat).Sub(want[i], big.NewRat(p.deserved, 1)); off.Cmp(big.NewRat(-1, 1)) <= 0 || off.Cmp(big.NewRat(1, 1)) >= 0 {
				t.Errorf("party %d of %+v, total %d: got %d, want %s", i, parties, total, p.deserved, want[i].FloatString(3))
			}
		}
		if sum > total {
			t.Errorf("%d of %d given out: %+v", sum, total, parties)
		}
	})
}

func pour(total int64, parties []party) []*big.Rat {
	level := make([]*big.Rat, len(parties))
	sum := new(big.Rat)
	for i, p := range parties {
		level[i] = big.NewRat(min(p.guarantee, p.request), 1)
		sum.Add(sum, level[i])
	}
	left := big.NewRat(total, 1)
	if sum.Cmp(left) > 0 {
		for i := range level {
			level[i].Mul(level[i], new(big.Rat).Quo(left, sum))
		}
		return level
	}
	left.Sub(left, sum)
	for {
		weights := new(big.Rat)
		var rate *big.Rat // at which the first of those that want more is satisfied
		for i, p := range parties {
			missing := new(big.Rat).Sub(big.NewRat(p.request, 1), level[i])
			if missing.Sign() <= 0 {
				continue
			}
			weights.Add(weights, big.NewRat(p.weight, 1))
			missing.Quo(missing, big.NewRat(p.weight, 1))
			if rate == nil || missing.Cmp(rate) < 0 {
				rate = missing
			}
		}
		if rate == nil || left.Sign() == 0 {
			return level
		}
		if most := new(big.Rat).Quo(left, weights); most.Cmp(rate) < 0 {
			rate = most
		}
		for i, p := range parties {
			if level[i].Cmp(big.NewRat(p.request, 1)) < 0 {
				more := new(big.Rat).Mul(rate, big.NewRat(p.weight, 1))
				level[i] = new(big.Rat).Add(level[i], more)
				left.Sub(left, more)
			}
		}
	}
}

func TestDivideLargeAmounts(t *testing.T) {
	// 16,000 nodes of 512 GiB, in bytes: products exceed 64 bits.
	total := int64(16_000) << 39
	parties := []party{{weight: 65535, request: 1 << 62}, {weight: 1, request: 1 << 62}}
	divide(total, parties)
	if sum := parties[0].deserved + parties[1].deserved; sum != total || parties[1].deserved != total/65536 {
		t.Errorf("got %+v for %d", parties, total)
	}
}
