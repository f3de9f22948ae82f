// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/devices"
)

// unfitParts returns why devices that several claims share, or partitions that exclude each other, do not satisfy a demand
// on a node; nil if they do. It ignores steps of capacities.
//
// For example, a device has 40Gi of memory and claims hold 35Gi. A claim for 10Gi waits for memory, a claim for 50Gi never
// gets the device. A GPU can be one partition of 7 units, or 7 of one unit. While a pod has one of the small ones, a claim
// for the large one waits.
func (c *deviceCounts) unfitParts(d *demand, node *v1.Node) *api.Unfit {
	var free, possible int64
	lacking := resourcev1.QualifiedName("")
	left := map[*devicePool]counters{}
	c.eachPart(d, node, func(pool *devicePool, state *structured.AllocatedState, device *resourcev1.Device) {
		if left[pool] == nil {
			left[pool] = pool.left(state)
		}
		id := structured.MakeDeviceID(pool.id.driver, pool.id.name, device.Name)
		empty, now := lacksCapacity(d, device, nil), lacksCapacity(d, device, state.AggregatedCapacity[id])
		switch {
		case empty != "":
			lacking = empty
			return
		case now != "":
			lacking = now
		case !state.AllocatedDevices.Has(id) && left[pool].suffice(device):
			free++
		}
		possible++
	})
	what := d.of(0)
	if lacking != "" {
		what = string(lacking) + " of " + what
	}
	switch {
	case possible == 0 && lacking != "":
		return &api.Unfit{Reason: api.ClaimUnfit, Detail: "too little " + what}
	case free < min(d.count, possible):
		return &api.Unfit{Reason: api.DevicesInUse, Detail: "Insufficient " + what}
	}
	return nil
}

// eachPart visits the devices of a node that match a demand, with their pools and what is allocated of them.
func (c *deviceCounts) eachPart(d *demand, node *v1.Node, visit func(*devicePool, *structured.AllocatedState, *resourcev1.Device)) {
	pools := c.update(d.counts)
	state := c.devices.inUse.state(pools.of(node.Name))
	visitIn := func(slice pooledSlice) {
		for _, device := range c.match(d.counts, slice.ResourceSlice).devices {
			if devices.Accessible(slice.ResourceSlice, device, node) {
				visit(slice.pool, state, device)
			}
		}
	}
	if n := pools.local[node.Name]; n != nil {
		for _, slice := range n.slices {
			visitIn(slice)
		}
	}
	for _, slice := range pools.network {
		visitIn(slice)
	}
}

// lacksCapacity returns the first capacity by name that a device has too little of; empty if there is none.
func lacksCapacity(d *demand, device *resourcev1.Device, used structured.ConsumedCapacity) (first resourcev1.QualifiedName) {
	for name, capacity := range device.Capacity {
		rest := capacity.Value.DeepCopy()
		if quantity := used[name]; quantity != nil {
			rest.Sub(*quantity)
		}
		if requested := d.ofCapacity(name, device); rest.Cmp(requested) < 0 && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

// ofCapacity returns how much of a capacity of a device a request consumes.
func (d *demand) ofCapacity(name resourcev1.QualifiedName, device *resourcev1.Device) resource.Quantity {
	capacity := device.Capacity[name]
	switch requested, ok := d.capacity[name]; {
	case ok:
		return requested
	case !ptr.Deref(device.AllowMultipleAllocations, false):
		return resource.Quantity{}
	case capacity.RequestPolicy != nil && capacity.RequestPolicy.Default != nil:
		return *capacity.RequestPolicy.Default
	}
	return capacity.Value
}

// counters are amounts by counter set and name.
type counters map[[2]string]resource.Quantity

// left returns what is left of the counters of a pool, after those that its allocated devices consume.
func (p *devicePool) left(state *structured.AllocatedState) counters {
	left := counters{}
	for _, slice := range p.slices {
		for _, set := range slice.Spec.SharedCounters {
			left.add(set.Name, set.Counters, false)
		}
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			if state.AllocatedDevices.Has(structured.MakeDeviceID(p.id.driver, p.id.name, device.Name)) {
				for _, consumed := range device.ConsumesCounters {
					left.add(consumed.CounterSet, consumed.Counters, true)
				}
			}
		}
	}
	return left
}

func (c counters) add(set string, amounts map[string]resourcev1.Counter, negative bool) {
	for name, counter := range amounts {
		sum := c[[2]string{set, name}].DeepCopy()
		if negative {
			sum.Sub(counter.Value)
		} else {
			sum.Add(counter.Value)
		}
		c[[2]string{set, name}] = sum
	}
}

// suffice reports whether a device could be allocated.
func (c counters) suffice(device *resourcev1.Device) bool {
	for _, consumed := range device.ConsumesCounters {
		for name, counter := range consumed.Counters {
			left := c[[2]string{consumed.CounterSet, name}]
			if left.Cmp(counter.Value) < 0 {
				return false
			}
		}
	}
	return true
}
