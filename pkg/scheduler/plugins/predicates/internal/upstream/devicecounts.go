// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/devices"
)

// deviceCounts counts, for each demand, the devices of a node that match it and those of them that are not allocated.
//
// A count is kept until a slice changes, or an allocation in a pool that matters for the node. Selectors are evaluated once
// for each slice and demand. For example, a cluster of 5,000 nodes with 8 devices each is full. A gang of 64 pods asks for
// devices of one model: 40,000 evaluations, and 5,000 counts. In the next session one device is free: one count.
type deviceCounts struct {
	devices  *Devices
	pools    *devicePools
	selector *devices.Selector
	known    map[demandKey]*demandCounts
	asked    bool // in this session
}

// demandKey is equal for demands that the same devices satisfy.
type demandKey struct {
	class     *resourcev1.DeviceClass
	selectors string
}

// demandCounts are the counts for one demand.
type demandCounts struct {
	demandKey
	selectors []resourcev1.DeviceSelector
	nodes     []nodeCount // by node index
	matches   matchCache
	version   uint64 // of the slices that matches is for
	used      bool   // in this session
}

// nodeCount counts the devices of one node. A device that several claims can share counts once, and is never taken.
type nodeCount struct {
	node        *v1.Node // as of the count
	slices      uint64   // version of the slices
	changed     uint64   // version of the last change of an allocation
	total, free int64
	failed      bool // a selector cannot be evaluated for a device, which does not count
	several     bool // several claims can share one of the devices, or one claim can have it several times
	whole       bool // see match.whole
}

func newDeviceCounts(from *Devices, pools *devicePools) *deviceCounts {
	return &deviceCounts{devices: from, pools: pools, selector: devices.NewSelector(), known: map[demandKey]*demandCounts{}}
}

// dropUnused drops the counts that a session with demands has not used. Users write selectors, so that old ones would pile
// up.
func (c *deviceCounts) dropUnused() {
	for key, counts := range c.known {
		if c.asked && !counts.used {
			delete(c.known, key)
		}
		counts.used = false
	}
	c.asked = false
}

// find connects demands with their counts.
func (c *deviceCounts) find(list []demand) []demand {
	for i := range list {
		list[i].counts = c.of(&list[i])
	}
	return list
}

// of returns the counts of a demand; nil if its class does not exist.
func (c *deviceCounts) of(d *demand) *demandCounts {
	class, err := c.devices.DeviceClasses().Get(d.class)
	if err != nil {
		return nil
	}
	key := demandKey{class, d.key()}
	counts := c.known[key]
	if counts == nil {
		counts = &demandCounts{demandKey: key, selectors: d.selectors}
		c.known[key] = counts
	}
	c.asked, counts.used = true, true
	return counts
}

// on returns the count of a node.
func (c *deviceCounts) on(n *api.NodeInfo, d *demand) nodeCount {
	counts := d.counts
	if counts == nil {
		return nodeCount{}
	}
	pools := c.update(counts)
	for n.Index >= len(counts.nodes) {
		counts.nodes = append(counts.nodes, nodeCount{})
	}
	known := &counts.nodes[n.Index]
	changed := c.devices.inUse.changed(pools.of(n.Name))
	if known.node != n.Node || known.slices != pools.version || known.changed != changed {
		*known = c.count(counts, n.Node)
		known.node, known.slices, known.changed = n.Node, pools.version, changed
	}
	return *known
}

// update drops what matches slices that have changed.
func (c *deviceCounts) update(counts *demandCounts) *devicePools {
	pools := c.pools.current()
	if counts.version != pools.version {
		counts.version = pools.version
		counts.matches.begin()
	}
	return pools
}

// count counts the devices of a node.
func (c *deviceCounts) count(counts *demandCounts, node *v1.Node) nodeCount {
	sum := nodeCount{whole: true}
	if n := c.pools.local[node.Name]; n != nil {
		for _, slice := range n.slices {
			c.add(&sum, counts, slice, node)
		}
	}
	for _, slice := range c.pools.network {
		c.add(&sum, counts, slice, node)
	}
	return sum
}

func (c *deviceCounts) add(sum *nodeCount, counts *demandCounts, slice pooledSlice, node *v1.Node) {
	m := c.match(counts, slice.ResourceSlice)
	sum.failed = sum.failed || m.failed
	if len(m.devices) == 0 {
		return
	}
	sum.whole = sum.whole && m.whole && slice.pool.simple()
	sum.free += c.devices.inUse.free(slice.pool, func(count func(string)) {
		for _, device := range m.devices {
			if devices.Accessible(slice.ResourceSlice, device, node) {
				sum.total++
				sum.several = sum.several || ptr.Deref(device.AllowMultipleAllocations, false)
				count(device.Name)
			}
		}
	})
}

// each visits the devices of a node that match a demand: those of the node alone, then those that other nodes can access too.
// Taken are those that are allocated as a whole.
func (c *deviceCounts) each(d *demand, node *v1.Node, visit func(driver string, device *resourcev1.Device, taken bool)) {
	counts := c.of(d)
	if counts == nil {
		return
	}
	c.update(counts)
	visitIn := func(slice pooledSlice) {
		for _, device := range c.match(counts, slice.ResourceSlice).devices {
			if devices.Accessible(slice.ResourceSlice, device, node) {
				free := c.devices.inUse.free(slice.pool, func(count func(string)) { count(device.Name) })
				visit(slice.Spec.Driver, device, free == 0)
			}
		}
	}
	if n := c.pools.local[node.Name]; n != nil {
		for _, slice := range n.slices {
			visitIn(slice)
		}
	}
	for _, slice := range c.pools.network {
		visitIn(slice)
	}
}

// match has the devices of a slice that match a demand.
type match struct {
	devices []*resourcev1.Device
	failed  bool // a selector cannot be evaluated for one of the others
	// whole: the devices can be allocated as a whole and independently of each other. Then the count of the free ones of a
	// node, in pools that are simple, decides what can be allocated.
	whole bool
}

func (c *deviceCounts) match(counts *demandCounts, slice *resourcev1.ResourceSlice) *match {
	return counts.matches.get(slice, func() *match {
		m := &match{whole: true}
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			selected, err := c.selector.Evaluate(counts.class.Spec.Selectors, slice.Spec.Driver, device)
			if err == nil && selected {
				selected, err = c.selector.Evaluate(counts.selectors, slice.Spec.Driver, device)
			}
			m.failed = m.failed || err != nil
			if err == nil && selected {
				m.devices = append(m.devices, device)
				m.whole = m.whole && wholeDevice(device)
			}
		}
		return m
	})
}

func wholeDevice(d *resourcev1.Device) bool {
	return !ptr.Deref(d.AllowMultipleAllocations, false) && len(d.Taints) == 0 && len(d.BindingConditions) == 0
}

// simple reports whether a pool is one slice of one node, whose devices do not exclude each other.
func (p *devicePool) simple() bool {
	spec := &p.slices[0].Spec
	return len(p.slices) == 1 && spec.Pool.ResourceSliceCount == 1 && !p.shared && !ptr.Deref(spec.PerDeviceNodeSelection, false) &&
		!slices.ContainsFunc(spec.Devices, func(d resourcev1.Device) bool { return len(d.ConsumesCounters) > 0 })
}

// matchCache has, by slice, what matches a demand: selectors take long to evaluate. It keeps results as long as the slices
// exist.
type matchCache struct {
	now, last map[*resourcev1.ResourceSlice]*match
}

// begin is called when slices have changed.
func (c *matchCache) begin() { c.now, c.last = map[*resourcev1.ResourceSlice]*match{}, c.now }

func (c *matchCache) get(slice *resourcev1.ResourceSlice, compute func() *match) *match {
	m, known := c.now[slice]
	if known {
		return m
	}
	if m, known = c.last[slice]; !known {
		m = compute()
	}
	c.now[slice] = m
	return m
}
