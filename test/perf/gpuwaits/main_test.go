// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var stdout, stderr bytes.Buffer
	err := run([]string{"-config", "../../../config/samples/policies/gpu.yaml", "-seeds", "2", "-nodes", "4", "-jobs", "100"}, &stdout, &stderr)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[3], "Mean") || !strings.HasPrefix(lines[4], "Difference") || stderr.Len() > 0 {
		t.Errorf("output:\n%s%s", stdout.String(), stderr.String())
	}
}

func TestSpreadOf(t *testing.T) {
	mean, deviation := spreadOf([][]float64{{1}, {3}}, func(s []float64) float64 { return s[0] * 2 })
	if mean != 4 || deviation*deviation < 7.99 || deviation*deviation > 8.01 {
		t.Errorf("mean %v, deviation %v, want 4 and the root of 8", mean, deviation)
	}
}
