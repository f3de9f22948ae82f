// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// TestSmall measures a few pods and checks everything except the times.
func TestSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	o, err := parse([]string{"-nodes=4", "-gangs=3", "-size=5"}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	r, err := measure(t.Context(), o, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if problem := r.problem(0); problem != "" {
		t.Error(problem)
	}
	for _, p := range r.Pairs {
		if p.Scheduler.Bound != 15 || p.Ceiling.Bound != 15 || p.Ratio <= 0 {
			t.Errorf("got %+v", p)
		}
	}
}

// of is a result of 4 pods with one pair for each ratio, all of them bound.
func of(ratios ...float64) result {
	r := result{Pods: 4}
	for _, ratio := range ratios {
		r.Pairs = append(r.Pairs, pair{
			Scheduler: rate{Bound: 4, PodsPerSecond: 1000 * ratio, ClusterCPU: 1.5, ClientCPU: 0.5},
			Ceiling:   rate{Bound: 4, PodsPerSecond: 1000, ClusterCPU: 1.5, ClientCPU: 0.3},
		})
	}
	r.sum()
	return r
}

func TestProblem(t *testing.T) {
	partial, late := of(1), of(1, 1)
	partial.Pairs[0].Findings = testbed.Findings{PartialGangs: 1}
	late.Pairs[1].Scheduler.Bound = 3
	for name, test := range map[string]struct {
		given result
		want  string
	}{
		"a partial gang":                  {partial, "1 gangs are bound in part"},
		"not in time":                     {late, "only 3 of 4 pods were bound in time"},
		"fast enough":                     {of(0.75), ""},
		"fast enough more often than not": {of(0.5, 0.9, 0.8), ""},
		"too slow":                        {of(0.7), "pods were bound at 0.70 of the ceiling, which is less than 0.75"},
		"too slow more often than not":    {of(0.7, 0.9, 0.7), "pods were bound at 0.70 of the ceiling, which is less than 0.75"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.given.problem(0.75); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFigures(t *testing.T) {
	bound := 0.75
	partial := of(0.8)
	partial.Pairs[0].Findings = testbed.Findings{PartialGangs: 1}
	for name, test := range map[string]struct {
		given   result
		atLeast float64
		want    figures.Figure
	}{
		"fast enough":         {of(0.8), 0.75, figures.Figure{Name: "drain/4-pods/of-ceiling", Value: 0.8, Unit: "ratio", Bound: &bound, OK: true}},
		"the median counts":   {of(0.1, 2, 0.9), 0.75, figures.Figure{Name: "drain/4-pods/of-ceiling", Value: 0.9, Unit: "ratio", Bound: &bound, OK: true}},
		"any ratio will do":   {of(0.8), 0, figures.Figure{Name: "drain/4-pods/of-ceiling", Value: 0.8, Unit: "ratio", OK: true}},
		"fast, but not right": {partial, 0.75, figures.Figure{Name: "drain/4-pods/of-ceiling", Value: 0.8, Unit: "ratio", Bound: &bound}},
	} {
		t.Run(name, func(t *testing.T) {
			want := []figures.Figure{
				{Name: "drain/4-pods/ceiling", Value: 1000, Unit: "pods/s", OK: true},
				{Name: "drain/4-pods/scheduler", Value: 1000 * test.want.Value, Unit: "pods/s", OK: true},
				{Name: "drain/4-pods/cpu-of-ceiling", Value: 0.9, Unit: "ratio", OK: true},
				test.want,
			}
			if diff := cmp.Diff(want, test.given.figures(test.atLeast)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongFlags(t *testing.T) {
	for name, test := range map[string]struct{ given, want string }{
		"no gangs":        {"-gangs 0", "-nodes, -gangs, -size and -repeat must be at least 1"},
		"an argument":     {"500", `unexpected argument "500"`},
		"a ratio below 0": {"-at-least -1", "-at-least must not be negative"},
		"a typing slip":   {"-gang 3", "flag provided but not defined: -gang"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), strings.Fields(test.given), &stdout, &stderr)
			if code != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("code %d, output %q, errors %q; want code 1 and %q", code, stdout.String(), stderr.String(), test.want)
			}
		})
	}
}
