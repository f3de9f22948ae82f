package reservation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// allFour is the configuration of the cases with evictions.
const allFour = `
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`

// builtIn is the registry of the real plugins, actions and policies.
func builtIn(t schedtest.T) *framework.Registry {
	t.Helper()
	r, err := builtin.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tidy brings an expected transcript into the form of a real one: the lines in order, without indentation, columns and
// comments.
func tidy(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, " //")
		if words := strings.Fields(line); len(words) > 0 {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return strings.Join(lines, "\n")
}

// same compares transcripts regardless of the order of lines.
func same(t *testing.T, want, got string) {
	t.Helper()
	sorted := func(text string) []string {
		lines := strings.Split(tidy(text), "\n")
		slices.Sort(lines)
		return lines
	}
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
}
