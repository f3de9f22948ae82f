// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCommand tests the command without a cluster.
func TestCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args  []string
		code  int
		wants string // must be contained in the output
	}{
		"help":                {[]string{"-h"}, 0, "-minutes n"},
		"unknown flag":        {[]string{"-hours", "3"}, 2, "-hours"},
		"unexpected argument": {[]string{"20"}, 2, `unexpected argument "20"`},
		"zero minutes":        {[]string{"-minutes", "0"}, 2, "want more than 0"},
		"not a number":        {[]string{"-minutes", "NaN"}, 2, "want more than 0"},
		"steps only":          {[]string{"-steps", "-seed", "7", "-minutes", "1"}, 0, "submit a job job-0001"},
		"negative seed":       {[]string{"-seed", "-1"}, 2, "-seed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			code := run(t.Context(), test.args, &out)
			if code != test.code || !strings.Contains(out.String(), test.wants) {
				t.Errorf("exit code %d, want %d, and output with %q:\n%s", code, test.code, test.wants, out.String())
			}
		})
	}
}

func TestRandomSeed(t *testing.T) {
	t.Parallel()
	first, err := parse(nil)
	if err != nil || first.seed == 0 {
		t.Fatalf("got seed %d, error %v", first.seed, err)
	}
	given, err := parse([]string{"-seed", "7", "-minutes", "1.5", "-plain"})
	if diff := cmp.Diff(options{minutes: 1.5, seed: 7, plain: true}, given, cmp.AllowUnexported(options{})); diff != "" || err != nil {
		t.Errorf("options (-want +got), error %v:\n%s", err, diff)
	}
}
