// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// TestConversionKeepsTimes converts traces whose times are no whole numbers.
func TestConversionKeepsTimes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var given strings.Builder
		for i := range rapid.IntRange(1, 5).Draw(t, "jobs") {
			fmt.Fprintf(&given, "type\tcommand %d\t-n\t1\t%v\t%v\t1\n", i, rapid.Float64Range(0, 1e9).Draw(t, "steps"), rapid.Float64Range(0, 3e9).Draw(t, "arrival"))
		}
		first, err := trace.Read("gavel", "f", strings.NewReader(given.String()), trace.Options{StepsPerSecond: rapid.Float64Range(.5, 100).Draw(t, "speed")})
		if err != nil {
			t.Fatal(err)
		}
		var converted bytes.Buffer
		if err = first.WriteJSONL(&converted); err != nil {
			t.Fatal(err)
		}
		second, err := trace.Read("jsonl", "f", &converted, trace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("trace (-gavel +jsonl):\n%s", diff)
		}
	})
}
