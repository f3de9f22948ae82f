// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// result is the measurement and its settings.
type result struct {
	Pods         int     `json:"pods"`
	CeilingRatio float64 `json:"ceiling_ratio"` // median
	CPURatio     float64 `json:"cpu_ratio"`     // median of the processor time of the ceiling per pod, divided by that of the scheduler
	Pairs        []pair  `json:"pairs"`

	Nodes              int  `json:"nodes"`
	Gangs              int  `json:"gangs"`
	GangSize           int  `json:"gang_size"`
	Kubelets           bool `json:"kubelets"`
	KubeletParallelism int  `json:"kubelet_parallelism"`
	Unthrottled        bool `json:"unthrottled"`
	CPUs               int  `json:"cpus"` // of this machine
}

// pair is the scheduler and the ceiling, measured one after the other.
type pair struct {
	Ratio     float64 `json:"ratio"`
	Scheduler rate    `json:"scheduler"`
	Ceiling   rate    `json:"ceiling"`
	testbed.Findings

	FirstBindSeconds  float64 `json:"first_bind_seconds"` // from the start of the scheduler's process
	SchedulerCPU      float64 `json:"scheduler_cpu_seconds"`
	SchedulerPeakSize int64   `json:"scheduler_peak_bytes"`
}

// rate is how fast pods were bound.
type rate struct {
	Bound         int     `json:"bound"`
	PodsPerSecond float64 `json:"pods_per_second"`
	ClusterCPU    float64 `json:"cluster_cpu_ms_per_pod"` // of API server and storage
	ClientCPU     float64 `json:"client_cpu_ms_per_pod"`  // of the binding and the watching clients
}

func (r rate) cpu() float64 { return r.ClusterCPU + r.ClientCPU }

// problem describes what was bound incorrectly, not at all, or too slowly; empty if nothing was.
func (r *result) problem(atLeast float64) string {
	for _, p := range r.Pairs {
		switch {
		case p.Problem() != "":
			return p.Problem()
		case p.Scheduler.Bound < r.Pods:
			return fmt.Sprintf("only %d of %d pods were bound in time", p.Scheduler.Bound, r.Pods)
		}
	}
	if r.CeilingRatio < atLeast {
		return fmt.Sprintf("pods were bound at %.2f of the ceiling, which is less than %g", r.CeilingRatio, atLeast)
	}
	return ""
}

// sum sets the medians.
func (r *result) sum() {
	for i := range r.Pairs {
		p := &r.Pairs[i]
		p.Ratio = p.Scheduler.PodsPerSecond / p.Ceiling.PodsPerSecond
	}
	r.CeilingRatio = r.middle(pair.ratio).Ratio
	r.CPURatio = r.middle(pair.cpuRatio).cpuRatio()
}

func (p pair) ratio() float64    { return p.Ratio }
func (p pair) cpuRatio() float64 { return p.Ceiling.cpu() / max(p.Scheduler.cpu(), 0.001) }

// middle is the pair of the median, the lower one of two.
func (r *result) middle(of func(pair) float64) pair {
	sorted := slices.SortedFunc(slices.Values(r.Pairs), func(a, b pair) int { return cmp.Compare(of(a), of(b)) })
	return sorted[(len(sorted)-1)/2]
}

// figures are both rates of the middle pair, and the ratios. The ratio of the rates must be at least atLeast; the
// ratio of the CPU times estimates it for a machine without other load.
func (r *result) figures(atLeast float64) []figures.Figure {
	name := fmt.Sprintf("drain/%d-pods/", r.Pods)
	p := r.middle(pair.ratio)
	ratio := figures.Figure{Name: name + "of-ceiling", Value: r.CeilingRatio, Unit: "ratio", OK: r.problem(atLeast) == ""}
	if atLeast > 0 {
		ratio.Bound = &atLeast
	}
	return []figures.Figure{
		{Name: name + "ceiling", Value: p.Ceiling.PodsPerSecond, Unit: "pods/s", OK: true},
		{Name: name + "scheduler", Value: p.Scheduler.PodsPerSecond, Unit: "pods/s", OK: true},
		{Name: name + "cpu-of-ceiling", Value: r.CPURatio, Unit: "ratio", OK: true},
		ratio,
	}
}
