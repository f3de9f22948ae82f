// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"
)

// devicePools are the slices by node, and their pools. Only the scheduling goroutine uses them.
//
// What can be allocated on a node depends on the pools that have devices for that node alone, and on the pools that have
// devices for several nodes, and on nothing else.
type devicePools struct {
	devices *Devices
	read    bool
	version uint64 // of the slices
	local   map[string]*nodeSlices
	network []pooledSlice // of devices that several nodes can access
	shared  []*devicePool // pools with such devices, or with counters
}

// nodeSlices are the slices of one node.
type nodeSlices struct {
	slices []pooledSlice
	pools  []*devicePool // of the slices, and those that are shared
}

// pooledSlice is a slice with its pool.
type pooledSlice struct {
	*resourcev1.ResourceSlice
	pool *devicePool
}

// devicePool is a pool with all its slices.
type devicePool struct {
	id     poolID
	slices []*resourcev1.ResourceSlice
	shared bool
	used   *usedPool
}

// current returns the pools as the slices are now.
func (p *devicePools) current() *devicePools {
	if version := p.devices.slicesVersion.Load(); !p.read || p.version != version {
		p.rebuild(version)
	}
	return p
}

func (p *devicePools) rebuild(version uint64) {
	all, err := p.devices.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil { // the plugin that filters nodes reports it
		return
	}
	*p = devicePools{devices: p.devices, read: true, version: version, local: map[string]*nodeSlices{}}
	byID := map[poolID]*devicePool{}
	for _, slice := range all {
		pool := byID[poolOf(slice)]
		if pool == nil {
			pool = &devicePool{id: poolOf(slice)}
			byID[pool.id] = pool
		}
		pool.slices = append(pool.slices, slice)
		name := ptr.Deref(slice.Spec.NodeName, "")
		if name == "" || len(slice.Spec.SharedCounters) > 0 {
			if !pool.shared {
				pool.shared = true
				p.shared = append(p.shared, pool)
			}
		}
		if name == "" {
			p.network = append(p.network, pooledSlice{slice, pool})
		} else {
			p.at(name).slices = append(p.at(name).slices, pooledSlice{slice, pool})
		}
	}
	p.devices.inUse.attach(byID)
	for _, n := range p.local {
		n.pools = append(n.pools, p.shared...)
		for _, slice := range n.slices {
			if !slice.pool.shared && !slices.Contains(n.pools, slice.pool) {
				n.pools = append(n.pools, slice.pool)
			}
		}
	}
}

// attach connects pools with what is allocated of them, and forgets pools that do not exist any more.
func (u *inUse) attach(pools map[poolID]*devicePool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, p := range u.pools {
		if pools[id] == nil && len(p.results) == 0 {
			delete(u.pools, id)
		}
	}
	for id, p := range pools {
		p.used = u.pool(id)
	}
}

func (p *devicePools) at(node string) *nodeSlices {
	n := p.local[node]
	if n == nil {
		n = &nodeSlices{}
		p.local[node] = n
	}
	return n
}

// of returns the pools that matter for a node.
func (p *devicePools) of(node string) []*devicePool {
	if n := p.local[node]; n != nil {
		return n.pools
	}
	return p.shared
}

// view restricts what the plugin sees in PreFilter to the pools of one node. The plugin reads all slices and allocations of
// the cluster in PreFilter, and then allocates for one node after the other. The scheduler asks it about few nodes.
type view struct {
	pools      *devicePools
	restricted bool
	node       string // empty: no pools
}

// on returns what the plugin sees; nil if it sees everything.
func (v *view) on() (pools []*devicePool, restricted bool) {
	switch {
	case !v.restricted:
		return nil, false
	case v.node == "":
		return nil, true
	}
	return v.pools.current().of(v.node), true
}

// during runs a function while the plugin sees the pools of one node, or none if the name is empty.
func (v *view) during(node string, run func()) {
	v.restricted, v.node = true, node
	defer func() { v.restricted = false }() // also after a panic, from which the scheduler recovers
	run()
}

// viewedSlices are the slices that the plugin sees.
type viewedSlices struct {
	fwk.ResourceSliceLister
	view *view
}

func (s viewedSlices) ListWithDeviceTaintRules() ([]*resourcev1.ResourceSlice, error) {
	pools, restricted := s.view.on()
	if !restricted {
		return s.ResourceSliceLister.ListWithDeviceTaintRules()
	}
	var list []*resourcev1.ResourceSlice
	for _, p := range pools {
		list = append(list, p.slices...)
	}
	return list, nil
}

// viewedClaims is the claim tracker that the plugin sees.
type viewedClaims struct {
	fwk.ResourceClaimTracker
	view  *view
	inUse *inUse
}

// GatherAllocatedState is called by the plugin in PreFilter.
func (c viewedClaims) GatherAllocatedState() (*structured.AllocatedState, error) {
	pools, restricted := c.view.on()
	if !restricted {
		return c.ResourceClaimTracker.GatherAllocatedState()
	}
	return c.inUse.state(pools), nil
}

// ListAllAllocatedDevices is called by the plugin in PreFilter if devices have no consumable capacity.
func (c viewedClaims) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	pools, restricted := c.view.on()
	if !restricted {
		return c.ResourceClaimTracker.ListAllAllocatedDevices()
	}
	s := c.inUse.state(pools)
	for id := range s.AllocatedSharedDeviceIDs {
		s.AllocatedDevices.Insert(id.GetDeviceID())
	}
	return s.AllocatedDevices, nil
}
