// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func TestClosest(t *testing.T) {
	known := []string{"allocate", "backfill", "preempt", "reclaim", "drf"}
	for name, tc := range map[string]struct {
		given string
		want  string // empty: nothing is close
	}{
		"a letter left out":           {given: "alocate", want: "allocate"},
		"a letter too many":           {given: "preemptt", want: "preempt"},
		"another letter":              {given: "beckfill", want: "backfill"},
		"neighbours swapped":          {given: "relcaim", want: "reclaim"},
		"other case":                  {given: "DRF", want: "drf"},
		"a short name, one edit":      {given: "drv", want: "drf"},
		"a short name, two edits":     {given: "dvv", want: ""},
		"a swap is one edit, not two": {given: "rdf", want: "drf"},
		"something else":              {given: "evict", want: ""},
		"nothing":                     {given: "", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := api.Closest(tc.given, known); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestClosestTakesTheFirstByNameOfTwoEquallyClose(t *testing.T) {
	for range 10 {
		if got, _ := api.Closest("bat", []string{"rat", "cat"}); got != "cat" {
			t.Fatalf("got %q, want cat", got)
		}
	}
}
