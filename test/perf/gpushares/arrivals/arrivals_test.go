// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package arrivals

import (
	"errors"
	"flag"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/fragmentation"
)

var traces = flag.String("traces", "../../../../../shared/data", "directory with openb_nodes.csv and openb_pods.csv; without it, the test that needs them is skipped")

// TestOpenb is case FR2: the trace openb, with the seeds of the paper. There, the means are 95.23 and 95.39 with descent, and
// 92.86 and 93.08 with best fit.
func TestOpenb(t *testing.T) {
	nodes, pods, err := Read(filepath.Join(*traces, "openb_nodes.csv"), filepath.Join(*traces, "openb_pods.csv"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%v; -traces says where the trace is", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(nodes, pods)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.nodes) != 1213 || w.gpus != 6212*fragmentation.Whole || len(w.pods) != 8152 {
		t.Errorf("%d nodes with %d/1000 GPUs, %d pods", len(w.nodes), w.gpus, len(w.pods))
	}
	const seeds = 10
	for name, tc := range map[string]struct {
		rule        Rule
		least, most Result
	}{
		"descent":  {Descent, Result{95.0, 95.2}, Result{100, 100}},
		"best fit": {BestFit, Result{92.4, 92.4}, Result{93.4, 93.4}},
	} {
		t.Run(name, func(t *testing.T) {
			var mean Result
			for seed := uint64(42); seed < 42+seeds; seed++ {
				r := w.Run(tc.rule, seed)
				mean.AtFull += r.AtFull / seeds
				mean.AtInflated += r.AtInflated / seeds
			}
			t.Logf("%.2f %% and %.2f %% allocated", mean.AtFull, mean.AtInflated)
			if mean.AtFull < tc.least.AtFull || mean.AtInflated < tc.least.AtInflated || mean.AtFull > tc.most.AtFull || mean.AtInflated > tc.most.AtInflated {
				t.Errorf("want %v to %v", tc.least, tc.most)
			}
		})
	}
}

// TestEachPod places pods one by one, and asserts what is left of the GPUs.
func TestEachPod(t *testing.T) {
	nodes := []Node{{"n1", "T4", 8000, 8192, 2}, {"n2", "V100", 8000, 8192, 1}, {"n3", "", 8000, 8192, 0}}
	half, whole := Pod{CPU: 1000, Memory: 1, GPUs: 1, Share: 500}, Pod{CPU: 1000, Memory: 1, GPUs: 1, Share: 1000}
	two, t4 := Pod{CPU: 1000, Memory: 1, GPUs: 2, Share: 1000}, Pod{CPU: 1000, Memory: 1, GPUs: 1, Share: 1000, Models: []string{"T4"}}
	large := Pod{CPU: 9000, Memory: 1, GPUs: 1, Share: 500}
	for name, tc := range map[string]struct {
		given  []Pod
		want   [][]int64 // free of each GPU
		fuller [][]int64 // the same with rules that prefer the fuller of nodes with equal F, if it differs
	}{
		"two halves share a GPU":              {[]Pod{half, half}, [][]int64{{0, 1000}, {1000}}, [][]int64{{1000, 1000}, {0}}},
		"a half and a whole":                  {[]Pod{half, whole, whole}, [][]int64{{500, 0}, {0}}, [][]int64{{0, 0}, {500}}},
		"a pod that fits no node is left out": {[]Pod{large}, [][]int64{{1000, 1000}, {1000}}, nil},
		"only permitted models":               {[]Pod{t4, t4, t4}, [][]int64{{0, 0}, {1000}}, nil},
		"two GPUs":                            {[]Pod{two, two}, [][]int64{{0, 0}, {1000}}, nil},
	} {
		for rule, ruleName := range map[Rule]string{Descent: "descent", Plugin: "plugin", BestFit: "best fit"} {
			t.Run(name+"/"+ruleName, func(t *testing.T) {
				w, err := New(nodes, append([]Pod(nil), tc.given...))
				if err != nil {
					t.Fatal(err)
				}
				p := newPlacer(w, rule)
				for _, c := range w.pods {
					p.place(c)
				}
				var got [][]int64
				for i := range p.states {
					got = append(got, p.states[i].free)
				}
				want := tc.want
				if rule != Descent && tc.fuller != nil {
					want = tc.fuller
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestDerive(t *testing.T) {
	given := []Pod{{Name: "none"}, {Name: "part", GPUs: 1, Share: 500}, {Name: "one", GPUs: 1, Share: 1000}, {Name: "two", GPUs: 2, Share: 1000}}
	for mix, want := range map[string]struct{ pods, thousandths int64 }{
		"default": {4, 3500}, "gpushare100": {4, 1500}, "multigpu50": {4, 3500}, "gpuspec33": {4, 3500}, "cpu250": {4, 3500},
	} {
		t.Run(mix, func(t *testing.T) {
			pods, err := Derive(mix, given)
			if err != nil {
				t.Fatal(err)
			}
			if got := requested(pods, func(Pod) bool { return true }); int64(len(pods)) != want.pods || got != want.thousandths {
				t.Errorf("%d pods with %d/1000 GPUs, want %v", len(pods), got, want)
			}
		})
	}
	if _, err := Derive("other", given); err == nil {
		t.Error("want an error for an unknown workload")
	}
}

// TestDescent has values of the formula 100/(1 + e^-x), rounded down.
func TestDescent(t *testing.T) {
	for falls, want := range map[float64]int64{0: 50, 0.03: 50, 0.05: 51, -0.01: 49, 1: 73, -1: 26} {
		if got := descent(falls); got != want {
			t.Errorf("F falls by %v: score %d, want %d", falls, got, want)
		}
	}
}

func BenchmarkSeed(b *testing.B) {
	nodes, pods, err := Read(filepath.Join(*traces, "openb_nodes.csv"), filepath.Join(*traces, "openb_pods.csv"))
	if err != nil {
		b.Skip(err)
	}
	w, err := New(nodes, pods)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		w.Run(Descent, 42)
	}
}
