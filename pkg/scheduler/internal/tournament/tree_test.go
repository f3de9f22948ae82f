// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package tournament

import (
	"cmp"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Whatever is done, the best is what a search through a map finds.
func TestBestIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := make([]*api.NodeInfo, rapid.SampledFrom([]int{1, 8, width + 1, 300}).Draw(t, "nodes"))
		ranked := rapid.Bool().Draw(t, "ranked")
		for i := range nodes { // 7 is prime to all those numbers: no two have one index
			nodes[i] = &api.NodeInfo{Name: fmt.Sprintf("n%03d", i), Index: (i * 7) % len(nodes)}
			if ranked {
				nodes[i].Rank = int32(i + 1)
			}
		}
		byIndex := make([]*api.NodeInfo, len(nodes))
		for _, n := range nodes {
			byIndex[n.Index] = n
		}
		tree := New(byIndex, cmp.Compare[int])
		switch {
		case rapid.Bool().Draw(t, "few"):
			tree = NewOfFew(byIndex, cmp.Compare[int], rapid.IntRange(0, len(nodes)).Draw(t, "count"))
		case rapid.Bool().Draw(t, "grown"):
			tree.Grow(rapid.IntRange(0, len(nodes)).Draw(t, "to"))
		}
		twin := map[*api.NodeInfo]int{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := rapid.SampledFrom(nodes).Draw(t, "node")
			worth := rapid.IntRange(0, 3).Draw(t, "worth")
			switch rapid.SampledFrom([]string{"set", "set", "remove", "fill"}).Draw(t, "what") {
			case "set":
				tree.Set(n, worth)
				twin[n] = worth
			case "remove":
				tree.Remove(n)
				delete(twin, n)
			case "fill":
				clear(twin)
				tree.Fill(func(add func(*api.NodeInfo, int)) {
					for i, m := range nodes[:worth*len(nodes)/3] {
						add(m, (i+worth)%3)
						twin[m] = (i + worth) % 3
					}
				})
			}
			var want *api.NodeInfo
			for m := range twin {
				if want == nil || cmp.Or(cmp.Compare(twin[m], twin[want]), cmp.Compare(m.Name, want.Name)) < 0 {
					want = m
				}
			}
			if got, worth := tree.Best(); got != want || want != nil && worth != twin[want] {
				t.Fatalf("best is %v of %d, want %v of %d", got, worth, want, twin[want])
			}
		}
	})
}
