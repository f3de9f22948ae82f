// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FormatTranscript formats an expected transcript like one of Cycle: the lines in order, without indentation, columns
// and comments.
func FormatTranscript(text string) string {
	var formatted []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, " //")
		if words := strings.Fields(line); len(words) > 0 {
			formatted = append(formatted, strings.Join(words, " "))
		}
	}
	return lines(formatted)
}

// CompareTranscripts fails the test if two transcripts differ in more than the order of lines.
func CompareTranscripts(t testing.TB, want, got string) {
	t.Helper()
	sorted := func(text string) []string {
		list := strings.Split(FormatTranscript(text), "\n")
		slices.Sort(list)
		return list
	}
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
}

// CountDecisions returns how many decisions of each kind a transcript has for each row, such as "bind q/a": 3. Rows q/a.0,
// q/a.1 and so on count as one. With nodes, it counts for each node: "bind q/a n1".
func CountDecisions(transcript string, nodes bool) map[string]int {
	counts := map[string]int{}
	for line := range strings.Lines(transcript) {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		row, _, _ := strings.Cut(words[1][:strings.LastIndex(words[1], "-")], ".")
		key := words[0] + " " + row
		if nodes {
			key += " " + words[2]
		}
		counts[key]++
	}
	return counts
}

// FormatCounts formats counts by their sorted keys: "bind q/a 2, evict q/b 1".
func FormatCounts(counts map[string]int) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprint(key, " ", counts[key]))
	}
	return strings.Join(parts, ", ")
}

// CountBinds returns how many pods of each PodGroup a transcript binds, by the name of the PodGroup without its queue.
func CountBinds(transcript string) map[string]int {
	counts := map[string]int{}
	for line := range strings.Lines(transcript) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "bind" {
			_, name, _ := strings.Cut(words[1], "/")
			counts[name[:strings.LastIndex(name, "-")]]++
		}
	}
	return counts
}
