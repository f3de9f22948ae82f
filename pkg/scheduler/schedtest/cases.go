// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Cases are tests of one cycle, by name. Each of them is a subtest with the built-in plugins and actions.
type Cases map[string]Case

// Case is a cluster and what one cycle decides for it.
type Case struct {
	Given []Row
	Want  string
}

// TestTranscripts compares the transcripts of the cycles with the cases. The order of lines does not matter.
func (c Cases) TestTranscripts(t *testing.T, options ...Option) {
	t.Helper()
	c.test(t, options, func(t *testing.T, want, got string) { CompareTranscripts(t, want, got) })
}

// TestOrderedTranscripts compares the transcripts of the cycles with the cases, line by line.
func (c Cases) TestOrderedTranscripts(t *testing.T, options ...Option) {
	t.Helper()
	c.test(t, options, func(t *testing.T, want, got string) {
		if diff := cmp.Diff(FormatTranscript(want), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestBinds compares how many pods of each PodGroup the cycles bind with the cases, such as "a 3, b 9".
func (c Cases) TestBinds(t *testing.T, options ...Option) {
	t.Helper()
	c.test(t, options, func(t *testing.T, want, got string) {
		if diff := cmp.Diff(want, FormatCounts(CountBinds(got))); diff != "" {
			t.Errorf("bound pods of each PodGroup (-want +got):\n%s", diff)
		}
	})
}

func (c Cases) test(t *testing.T, options []Option, compare func(t *testing.T, want, got string)) {
	t.Helper()
	for name, tc := range c {
		t.Run(name, func(t *testing.T) { compare(t, tc.Want, Run(t, BuiltIn(t), tc.Given, options...)) })
	}
}
