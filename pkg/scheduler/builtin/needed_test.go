// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestVictimsAreNeeded preempts single pods of random sizes for a gang of equal pods: if any of the victims stayed, the gang
// would not fit.
func TestVictimsAreNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := Given(Queue("default", 1))
		idle, sizes, evictable := map[string]int{}, map[string]int{}, 0
		for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
			node := fmt.Sprintf("n%d", i)
			rows = append(rows, Node(node, "6cpu"))
			for idle[node] = 6; idle[node] > 0 && rapid.IntRange(0, 5).Draw(t, "more") > 0; {
				size := rapid.IntRange(1, idle[node]).Draw(t, "size")
				name := fmt.Sprintf("p%d", len(sizes))
				rows = append(rows, Plain(name, Running(1, fmt.Sprint(size, "cpu"), node)))
				sizes[name+"-0"] = size
				idle[node] -= size
				evictable += size
			}
		}
		before := 0
		for _, cpu := range idle {
			before += cpu
		}
		if evictable == 0 {
			return
		}
		count := before + rapid.IntRange(1, evictable).Draw(t, "evicted cpu")
		rows = append(rows, Group("default/gang", int32(count), Pending(count, "1cpu", Priority(9))))
		transcript := Run(t, BuiltIn(t), rows, WithConfig(evicting))

		free := before
		var victims []string
		for line := range strings.Lines(transcript) {
			if words := strings.Fields(line); words[0] == "evict" {
				victims = append(victims, words[1])
				free += sizes[words[1]]
			}
		}
		if free < count {
			t.Fatalf("the evictions free resources for %d of %d pods:\n%s", free, count, transcript)
		}
		if slices.ContainsFunc(victims, func(v string) bool { return free-sizes[v] >= count }) {
			t.Fatalf("a victim is not needed: the evictions free resources for %d of %d pods:\n%s", free, count, transcript)
		}
	})
}
