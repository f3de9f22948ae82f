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

// starts knows when gangs were complete and when all of their pods had nodes.
type starts struct {
	mu      sync.Mutex
	gangs   map[string]*start
	waiting int // pods of complete gangs that have no node
}

// start is one gang on its way.
type start struct {
	size, bound     int
	complete, ended time.Time // zero if that has not come yet
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

// see is called once for each pod that has got a node.
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

// backlog is how many pods of complete gangs wait for a node.
func (s *starts) backlog() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// latencies are the times that gangs took from complete to bound, sorted, in milliseconds. A gang
// whose last bind was seen before the answer to its last creation took none.
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

// quantile is the least of the sorted values that is not exceeded by that share of them.
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

// told is a figure without a bound.
func told(name string, value float64, unit string) figures.Figure {
	return figures.Figure{Name: name, Value: value, Unit: unit, OK: true}
}
