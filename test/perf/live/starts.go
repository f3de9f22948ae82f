// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// starts records when gangs were complete and when all of their pods had nodes.
type starts struct {
	mu      sync.Mutex
	gangs   map[string]*start
	waiting int // pending pods of complete gangs
}

// start is the start of one gang.
type start struct {
	size, bound     int
	complete, ended time.Time // zero if not reached yet
	over            chan struct{}
}

func newStarts() *starts { return &starts{gangs: map[string]*start{}} }

// expect is called before a gang is created. The channel is closed when all its pods have nodes.
func (s *starts) expect(g testbed.Gang) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	over := make(chan struct{})
	s.gangs[g.Name] = &start{size: g.Size, over: over}
	return over
}

// created is called when all pods of a gang have been created.
func (s *starts) created(g testbed.Gang, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gang := s.gangs[g.Name]
	gang.complete = at
	s.waiting += gang.size - gang.bound
}

// see is called once for each pod that was bound.
func (s *starts) see(pod *corev1.Pod, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gang := s.gangs[pod.Labels[v1alpha1.LabelPodGroup]]
	if gang == nil {
		return
	}
	gang.bound++
	if !gang.complete.IsZero() {
		s.waiting--
	}
	if gang.bound == gang.size {
		gang.ended = at
		close(gang.over)
	}
}

// backlog returns the number of pending pods of complete gangs.
func (s *starts) backlog() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// latencies are the times of gangs from complete to bound, sorted, in milliseconds; zero if the last bind was seen
// before the response to the last creation.
func (s *starts) latencies() []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []float64
	for _, gang := range s.gangs {
		if !gang.complete.IsZero() && !gang.ended.IsZero() {
			list = append(list, max(0, gang.ended.Sub(gang.complete).Seconds()*1000))
		}
	}
	slices.Sort(list)
	return list
}

// quantile returns the smallest of the sorted values such that this share of them does not exceed it.
func quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// atMost is a figure with an upper bound.
func atMost(name string, value float64, unit string, bound float64) figures.Figure {
	return figures.Figure{Name: name, Value: value, Unit: unit, Bound: &bound, OK: value <= bound}
}

// atLeast is a figure with a lower bound.
func atLeast(name string, value float64, unit string, bound float64) figures.Figure {
	return figures.Figure{Name: name, Value: value, Unit: unit, Bound: &bound, OK: value >= bound}
}

// unbounded is a figure without a bound.
func unbounded(name string, value float64, unit string) figures.Figure {
	return figures.Figure{Name: name, Value: value, Unit: unit, OK: true}
}
