// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

// cost is the cost of each step of a cycle.
type cost struct {
	times       map[string]time.Duration
	allocations map[string]uint64  // on the heap
	processor   time.Duration      // of all steps and threads; excludes the time of other processes
	values      map[string]float64 // figures of units that are no sum over steps, by step
}

func newCost() cost {
	return cost{times: map[string]time.Duration{}, allocations: map[string]uint64{}}
}

// measure runs one step.
func (t *cost) measure(step string, do func()) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	worked, began := processorTime(), time.Now()
	do()
	t.times[step] += time.Since(began)
	t.processor += processorTime() - worked
	runtime.ReadMemStats(&after)
	t.allocations[step] += after.Mallocs - before.Mallocs
}

// processorTime returns the processor time of the process so far; 0 if the system does not provide it.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// limit limits the cost of some steps of a cycle.
type limit struct {
	name  string
	steps []string // actions; nil for the whole cycle, opening and closing the session included
	most  float64  // 0: the figure has no bound
	unit  unit
	per   int // divisor of the figure, such as a number of pods; 0: not divided
}

// unit is the quantity and the unit of a figure.
type unit int8

const (
	milliseconds unit = iota
	microseconds
	allocations
	ratio         // of two times; a value
	bytesPerGroup // a value
	bytesPerJob   // a value
)

func (u unit) name(divided bool) string {
	name := [...]string{"ms", "µs", "allocations", "times", "bytes/group", "bytes/Job"}[u]
	if divided {
		name += "/pod"
	}
	return name
}

// of returns the sum over some steps, over all steps if none is named.
func (u unit) of(t cost, steps []string) float64 {
	if u == ratio || u == bytesPerGroup || u == bytesPerJob {
		return t.values[steps[0]]
	}
	sum := 0.0
	for step, d := range t.times {
		if len(steps) > 0 && !slices.Contains(steps, step) {
			continue
		}
		switch u {
		case milliseconds:
			sum += d.Seconds() * 1e3
		case microseconds:
			sum += d.Seconds() * 1e6
		case allocations:
			sum += float64(t.allocations[step])
		}
	}
	return sum
}

// check compares the median with the bound.
func (l limit) check(runs []cost) (figure figures.Figure, spread string) {
	var sorted []float64
	for _, t := range runs {
		sorted = append(sorted, l.unit.of(t, l.steps)/float64(max(l.per, 1)))
	}
	slices.Sort(sorted)
	figure = figures.Figure{Value: sorted[len(sorted)/2], Unit: l.unit.name(l.per > 0), OK: true}
	if l.most > 0 {
		figure.Bound = &l.most
		figure.OK = figure.Value <= l.most
	}
	return figure, fmt.Sprintf("median %.2f %s (%.2f to %.2f)", figure.Value, figure.Unit, sorted[0], sorted[len(sorted)-1])
}
