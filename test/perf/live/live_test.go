// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// TestSmall runs all measurements with a few pods and checks everything except the values.
func TestSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	b := bench{say: t.Logf}
	for name, test := range map[string]struct {
		given interface {
			measure(context.Context, bench) ([]figures.Figure, error)
		}
		want []string
	}{
		"idle": {idle{nodes: 4, size: 8, gangs: 2}, []string{"plain-median", "plain-p99", "median", "p99"}},
		"waiting": {
			waiting{nodes: 10, gangs: 20, seconds: 2, rate: 20}, []string{"latency-p99-without", "latency-p99-with", "latency-p99-ratio"},
		},
		"stream": {stream{nodes: 10, lives: 20, seconds: 2, share: 0.2}, []string{"ceiling", "rate", "latency-median", "latency-p99", "backlog", "backlog-growth"}},
		"devices": {
			devices{nodes: 4, size: 4, gangs: 2, burst: 16}, []string{"plain-median", "median", "p99", "ceiling", "rate"},
		},
		"evict":  {evictions{nodes: 4, gangs: 4, size: 4, preemptor: 8, rounds: 2}, []string{"ceiling", "scheduler", "latency", "of-ceiling"}},
		"budget": {evictions{nodes: 4, gangs: 4, size: 4, preemptor: 8, budgets: 2, rounds: 1}, []string{"ceiling", "scheduler", "latency", "of-ceiling"}},
		"memory": {memory{nodes: 10, pods: 200, churned: 50}, []string{"resident", "resident-peak", "in-use", "in-use-growth", "churned"}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := test.given.measure(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range list {
				got = append(got, f.Name)
				if math.IsNaN(f.Value) {
					t.Errorf("%s was not measured", f.Name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStarts(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(milliseconds int) time.Time { return noon.Add(time.Duration(milliseconds) * time.Millisecond) }
	gangs := testbed.Gangs(2, 2)
	created := func(gang, moment int) func(*starts) {
		return func(s *starts) { s.created(gangs[gang], at(moment)) }
	}
	bound := func(gang, member, moment int) func(*starts) {
		return func(s *starts) { s.see(gangs[gang].Pod(member), at(moment)) }
	}
	type outcome struct {
		Latencies []float64
		Backlog   int
	}
	for name, test := range map[string]struct {
		given []func(*starts)
		want  outcome
	}{
		"a gang starts with its last pod":      {[]func(*starts){created(0, 10), bound(0, 0, 30), bound(0, 1, 50)}, outcome{[]float64{40}, 0}},
		"half a gang has not started":          {[]func(*starts){created(0, 10), bound(0, 0, 30)}, outcome{nil, 1}},
		"pods count once the gang is complete": {[]func(*starts){bound(0, 0, 30), created(1, 40)}, outcome{nil, 2}},
		"the watch is ahead of the response":   {[]func(*starts){bound(0, 0, 30), bound(0, 1, 35), created(0, 40)}, outcome{[]float64{0}, 0}},
		"the response is between the binds":    {[]func(*starts){bound(0, 0, 30), created(0, 32), bound(0, 1, 35)}, outcome{[]float64{3}, 0}},
		"latencies are sorted":                 {[]func(*starts){created(0, 0), created(1, 0), bound(0, 0, 9), bound(0, 1, 9), bound(1, 0, 5), bound(1, 1, 5)}, outcome{[]float64{5, 9}, 0}},
		"other pods do not count":              {[]func(*starts){func(s *starts) { s.see(&corev1.Pod{}, noon) }}, outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStarts()
			for _, g := range gangs {
				s.expect(g)
			}
			for _, happens := range test.given {
				happens(s)
			}
			if diff := cmp.Diff(test.want, outcome{s.latencies(), s.backlog()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for name, test := range map[string]struct {
		given []float64
		share float64
		want  float64
	}{
		"one value":          {[]float64{7}, 0.5, 7},
		"lower of two":       {[]float64{1, 2}, 0.5, 1},
		"median":             {hundred, 0.5, 50},
		"p99 of a hundred":   {hundred, 0.99, 99},
		"p99 of fifty":       {hundred[:50], 0.99, 50},
		"greatest":           {hundred, 1, 100},
		"a quantile of zero": {hundred, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quantile(test.given, test.share); got != test.want {
				t.Errorf("got %g, want %g", got, test.want)
			}
		})
	}
}

func TestLimitOfMemory(t *testing.T) {
	for name, test := range map[string]struct {
		given memory
		want  float64
	}{
		"full size":  {memory{nodes: 5000, pods: 100_000}, 700},
		"a fifth":    {memory{nodes: 1000, pods: 20_000}, 220},
		"many nodes": {memory{nodes: 5000, pods: 1}, 700},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.given.limit(); got != test.want {
				t.Errorf("got %g, want %g", got, test.want)
			}
		})
	}
}

func TestFlags(t *testing.T) {
	type answer struct {
		Code           int
		Stdout, Stderr string
	}
	for name, test := range map[string]struct {
		given string
		want  answer
	}{
		"a list":            {"-list -run idle|mem", answer{0, "idle", ""}},
		"an argument":       {"idle", answer{1, "", `unexpected argument "idle"`}},
		"no such name":      {"-run nothing", answer{1, "", `no measurement matches "nothing"`}},
		"not an expression": {"-run (", answer{1, "", "-run: error parsing regexp"}},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), strings.Fields(test.given), &stdout, &stderr)
			if code != test.want.Code || !strings.Contains(stdout.String(), test.want.Stdout) || !strings.Contains(stderr.String(), test.want.Stderr) {
				t.Errorf("got code %d, output %q, errors %q, want %+v", code, stdout.String(), stderr.String(), test.want)
			}
		})
	}
}
