package nodeheap

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
		nodes := make([]*api.NodeInfo, 8)
		for i := range nodes {
			nodes[i] = &api.NodeInfo{Name: fmt.Sprint("n", i), Index: (i * 5) % 8}
		}
		heap := New(cmp.Compare[int])
		twin := map[*api.NodeInfo]int{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			n := rapid.SampledFrom(nodes).Draw(t, "node")
			worth := rapid.IntRange(0, 3).Draw(t, "worth")
			switch rapid.SampledFrom([]string{"set", "set", "remove", "fill"}).Draw(t, "what") {
			case "set":
				heap.Set(n, worth)
				twin[n] = worth
			case "remove":
				heap.Remove(n)
				delete(twin, n)
			case "fill":
				clear(twin)
				heap.Fill(func(add func(*api.NodeInfo, int)) {
					for i, m := range nodes[:worth*2] {
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
			if got, worth := heap.Best(); got != want || want != nil && worth != twin[want] {
				t.Fatalf("best is %v of %d, want %v of %d", got, worth, want, twin[want])
			}
		}
	})
}
