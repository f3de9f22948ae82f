// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package arrivals

import (
	"math"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/fragmentation"
)

// placer places pods one by one.
type placer struct {
	*Workload
	measure
	rule   Rule
	states []state
	known  [][]placement // by class and node
}

// state is a node with its pods.
type state struct {
	fragmentation.Node
	version uint32
	lost    int64   // F
	free    []int64 // of each GPU, in thousandths
	all     int64   // sum of free
}

// placement is the best way to place a pod on a node, as of a version of the node.
type placement struct {
	version uint32
	fits    bool
	share   int64 // free of the shared GPU before the placement; 0: whole GPUs
	value   int64
}

func newPlacer(w *Workload, rule Rule) *placer {
	p := &placer{Workload: w, measure: w.paper, rule: rule, states: make([]state, len(w.nodes))}
	if rule == Plugin {
		p.measure = w.known
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		s := &p.states[i]
		s.version = 1
		s.Idle = n.resources()
		s.free, s.all = slices.Repeat([]int64{fragmentation.Whole}, int(n.GPUs)), n.GPUs*fragmentation.Whole
		s.Devices = grouped(nil, s.free, 0, 0, 0)
		s.lost = p.lost(i, &s.Node)
	}
	return p
}

// place places a pod, if it fits anywhere.
func (p *placer) place(c *class) bool {
	for c.number >= len(p.known) {
		p.known = append(p.known, make([]placement, len(p.states)))
	}
	known, best := p.known[c.number], -1
	for i := range p.states {
		if !c.admits[i] {
			continue
		}
		k := &known[i]
		if k.version != p.states[i].version {
			*k = p.bestOn(c, i)
		}
		if k.fits && (best < 0 || k.value > known[best].value) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	p.take(c, best, known[best].share)
	return true
}

// bestOn returns the best placement on a node.
func (p *placer) bestOn(c *class, node int) placement {
	s := &p.states[node]
	best := placement{version: s.version}
	if c.request[cpu] > s.Idle[cpu] || c.request[memory] > s.Idle[memory] {
		return best
	}
	for _, share := range s.choices(c) {
		value := p.value(c, node, share)
		if !best.fits || value > best.value {
			best.fits, best.share, best.value = true, share, value
		}
	}
	return best
}

// choices returns what is free of the GPUs of which a pod could take a share, the least first; 0 stands for whole GPUs.
func (s *state) choices(c *class) []int64 {
	if c.request[gpu] == 0 {
		return []int64{0}
	}
	var count int64
	var choices []int64
	for _, d := range s.Devices {
		if d.Free >= c.share {
			count += d.Count
			choices = append(choices, d.Free)
		}
	}
	switch {
	case count < c.request[gpu]:
		return nil
	case c.share == fragmentation.Whole:
		return []int64{0}
	}
	return choices
}

// value is the larger the better.
func (p *placer) value(c *class, node int, share int64) int64 {
	s := &p.states[node]
	if p.rule == BestFit {
		const parts = 1_000_000
		return -(s.Idle[cpu]-c.request[cpu])*parts/p.most[cpu] - (s.all-c.gpus())*parts/p.most[gpu] // the least free GPU comes first
	}
	var scratch [16]fragmentation.Devices
	after := s.Node
	after.Taken = c.request
	after.Devices = grouped(scratch[:0], s.free, c.request[gpu], share, c.share)
	lost := p.lost(node, &after)
	if p.rule == Plugin {
		return 100*int64(p.measure[0].set.Score(s.lost, lost)) + p.mostRequested(c, node)
	}
	return descent(float64(s.lost-lost) / float64(fragmentation.Whole*p.total()))
}

// descent is the score of the authors if F falls by so many GPUs, in pkg/simulator/plugin/fgd_score.go of
// https://github.com/hkust-adsl/kubernetes-scheduler-simulator. As whole numbers, scores of kube-scheduler are equal for nodes
// where F changes by nearly as much, and then the first node by name is chosen there.
func descent(falls float64) int64 {
	return int64(100 / (1 + math.Exp(-falls)))
}

// mostRequested is the score mostrequested of the plugin nodeorder. GPUs count for pods that request some.
func (p *placer) mostRequested(c *class, node int) int64 {
	s, whole := &p.states[node], p.nodes[node].resources()
	left := []int64{cpu: s.Idle[cpu] - c.request[cpu], memory: s.Idle[memory] - c.request[memory]}
	if c.gpus() > 0 {
		left = append(left, s.all-c.gpus())
	}
	var used int64
	for d := range left {
		used += (whole[d] - left[d]) * int64(api.OneScore) / whole[d]
	}
	return used / int64(len(left))
}

// take places a pod.
func (p *placer) take(c *class, node int, share int64) {
	s := &p.states[node]
	s.Idle[cpu] -= c.request[cpu]
	s.Idle[memory] -= c.request[memory]
	left := c.request[gpu]
	for i := range s.free {
		if left > 0 && s.free[i] == max(share, c.share) {
			s.free[i] -= c.share
			left--
		}
	}
	s.all -= c.gpus()
	s.Devices = grouped(s.Devices[:0], s.free, 0, 0, 0)
	s.lost = p.lost(node, &s.Node)
	s.version++
}

// grouped appends the GPUs of which something is free, by what is free, the least first; without a share of so many GPUs of
// which from is free, or of whole ones if from is 0.
func grouped(devices []fragmentation.Devices, free []int64, count, from, share int64) []fragmentation.Devices {
	for _, f := range free {
		if count > 0 && f == max(from, share) {
			f -= share
			count--
		}
		if f == 0 {
			continue
		}
		at := 0
		for at < len(devices) && devices[at].Free < f {
			at++
		}
		if at < len(devices) && devices[at].Free == f {
			devices[at].Count++
		} else {
			devices = slices.Insert(devices, at, fragmentation.Devices{Free: f, Count: 1})
		}
	}
	return devices
}
