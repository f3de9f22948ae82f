package actions_test

import (
	"strings"
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
		c := New(t, builtIn(t), r.rows(), WithConfig(allFour), Shuffled(rapid.Int64().Draw(t, "seed")))
		for range rapid.IntRange(1, 5).Draw(t, "cycles") {
			c.Cycle()
			switch r.oneOf("evictions", "gone", "gone", "refused", "slow") {
			case "gone":
				c.Gone()
			case "refused":
				c.Spare()
			}
			for range rapid.IntRange(0, 3).Draw(t, "happenings") {
				r.happening(c)
			}
		}
		c.Cycle()
	})
}

// S18: whatever the cluster, evictions come to an end by themselves: victims come back as new
// pods, as controllers make them, and nothing else happens.
func TestEvictionsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &random{t: t}
		c := New(t, builtIn(t), r.calmRows(), WithConfig(allFour))
		back := rapid.Bool().Draw(t, "victims come back")
		grace := r.upTo(2, "grace")
		const most, quiet = 60, 6
		var log []string
		for still := 0; still < quiet; {
			transcript := c.Cycle()
			log = append(log, transcript)
			if still++; strings.Contains(transcript, "evict ") || strings.Contains(transcript, "bind ") {
				still = 0
			}
			if len(log) > most {
				t.Fatalf("not at rest after %d cycles:\n%s", most, strings.Join(log, "\n--\n"))
			}
			c.Confirm()
			c.Start()
			if len(log)%(grace+1) == 0 {
				for _, name := range c.Leaving() {
					if c.Gone(name); back {
						c.Again(name)
					}
				}
			}
		}
	})
}

// calmRows are clusters where shares are often equal, and jobs anchored in one dimension and
// contending in another.
func (r *random) calmRows() []Row {
	rows := []Row{Queue("default", 1)}
	r.queues = []string{"default"}
	for i := range r.upTo(2, "queues") {
		rows = append(rows, r.queue("q"+string(rune('0'+i))))
	}
	nodes := 1 + r.upTo(2, "nodes")
	for i := range nodes {
		name := "n" + string(rune('0'+i))
		r.nodes = append(r.nodes, name)
		rows = append(rows, Node(name, r.oneOf("allocatable", "4cpu 8Gi", "6cpu 6Gi", "4cpu 4Gi 2gpu")))
	}
	for i := range 1 + r.upTo(4, "groups") {
		name := r.oneOf("queue", r.queues...) + "/g" + string(rune('0'+i))
		priority := Priority(int32(r.upTo(1, "priority")))
		request := r.oneOf("request", "1cpu", "2cpu 1Gi", "1cpu 2Gi", "0.5cpu 3Gi", "1gpu 1cpu", "3cpu")
		var parts []Part
		if count := r.upTo(3, "running"); count > 0 {
			parts = append(parts, Running(count, r.oneOf("request", request, "1cpu"), r.oneOf("node", r.nodes...), priority))
		}
		if count := r.upTo(4, "pending"); count > 0 || len(parts) == 0 {
			parts = append(parts, Pending(max(count, 1), request, priority))
		}
		rows = append(rows, Group(name, int32(1+r.upTo(3, "min")), parts...))
	}
	return rows
}
