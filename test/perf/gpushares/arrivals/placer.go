// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package arrivals

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/fragmentation"
)

// placer places pods one by one.
type placer struct {
	*Workload
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
	value   worth
}

// worth orders placements: the larger value is the better one, then the fuller node.
type worth struct{ value, used int64 }

func (v worth) better(o worth) bool {
	return v.value > o.value || v.value == o.value && v.used > o.used
}

func newPlacer(w *Workload, rule Rule) *placer {
	p := &placer{Workload: w, rule: rule, states: make([]state, len(w.nodes))}
	for i := range w.nodes {
		n := &w.nodes[i]
		s := &p.states[i]
		s.version = 1
		s.Idle, s.Admits = n.resources(), w.admits[i]
		s.free, s.all = slices.Repeat([]int64{fragmentation.Whole}, int(n.GPUs)), n.GPUs*fragmentation.Whole
		s.Devices = grouped(nil, s.free, 0, 0, 0)
		s.lost = w.set.Lost(&s.Node)
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
			*k = p.measure(c, i)
		}
		if k.fits && (best < 0 || k.value.better(known[best].value)) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	p.take(c, best, known[best].share)
	return true
}

// measure returns the best placement on a node.
func (p *placer) measure(c *class, node int) placement {
	s := &p.states[node]
	best := placement{version: s.version}
	if c.request[cpu] > s.Idle[cpu] || c.request[memory] > s.Idle[memory] {
		return best
	}
	for _, share := range s.choices(c) {
		value := worth{value: p.value(c, s, share), used: p.used(c, node)}
		if !best.fits || value.better(best.value) {
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

// steps are those in which F is compared, in thousandths of a GPU. Smaller differences depend on which rare types there
// are weights for, and it is worth more to prefer the fuller node.
const steps = fragmentation.Whole / 8

// value is the larger the better; for Fragmentation, by how many steps F falls.
func (p *placer) value(c *class, s *state, share int64) int64 {
	if p.rule == BestFit {
		const parts = 1_000_000
		return -(s.Idle[cpu]-c.request[cpu])*parts/p.most[cpu] - (s.all-c.gpus())*parts/p.most[gpu] // the least free GPU comes first
	}
	var scratch [16]fragmentation.Devices
	after := s.Node
	after.Taken = c.request
	after.Devices = grouped(scratch[:0], s.free, c.request[gpu], share, c.share)
	falls, step := s.lost-p.set.Lost(&after), steps*p.set.Total()
	if falls < 0 {
		falls -= step - 1
	}
	return falls / step
}

// used returns which part of the node's resources is in use after the placement, as a sum over the resources.
func (p *placer) used(c *class, node int) (used int64) {
	const parts = 1_000_000
	s, whole := &p.states[node], p.nodes[node].resources()
	for d, left := range (api.Resource{cpu: s.Idle[cpu] - c.request[cpu], memory: s.Idle[memory] - c.request[memory], gpu: s.all - c.gpus()}) {
		used += (whole[d] - left) * parts / whole[d]
	}
	return used
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
	s.lost = p.set.Lost(&s.Node)
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
