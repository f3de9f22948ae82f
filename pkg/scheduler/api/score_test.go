// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func TestScoreOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.Int64Range(1, api.MaxQuantity).Draw(t, "whole")
		part := rapid.Int64Range(-api.MaxQuantity, 2*api.MaxQuantity).Draw(t, "part")
		want := min(max(float64(part)/float64(whole), 0), 1) * float64(api.OneScore)
		if got := api.ScoreOf(part, whole); math.Abs(float64(got)-want) > 1 {
			t.Fatalf("ScoreOf(%d, %d) = %d, want %.1f", part, whole, got, want)
		}
	})
}
