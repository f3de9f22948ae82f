package actions_test

import (
	"testing"

	"pgregory.net/rapid"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// Clusters of any kind over several cycles in which evictions succeed, fail or take their time.
// Asked is what the runner asserts unasked, see TestRandomClusters; and that evictions leave no
// gang running in part.
func TestRandomEvictions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &random{t: t}
		c := New(t, builtIn(t), r.rows(), WithConfig(allFour), WithShuffleSeed(rapid.Int64().Draw(t, "seed")))
		for range rapid.IntRange(1, 5).Draw(t, "cycles") {
			c.Cycle()
			switch r.oneOf("evictions", "gone", "gone", "refused", "slow") {
			case "gone":
				c.FinishEvictions()
			case "refused":
				c.FailEvictions()
			}
			for range rapid.IntRange(0, 3).Draw(t, "happenings") {
				r.happening(c)
			}
		}
		c.Cycle()
	})
}

// S18: whatever the cluster, evictions come to an end by themselves.
func TestEvictionsEnd(t *testing.T) {
	for name, theme := range themes() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				course := theme.course(t)
				if err := course.run(New(t, builtIn(t), course.given, course.config())); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
