// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/devices"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/typed"
)

// deviceFeed feeds the model with the devices that device classes provide as extended resources. An inventory counts
// them on the goroutines of the informers, and the feed turns what it finds out into events.
type deviceFeed struct {
	cache     *Cache
	inventory *devices.Inventory
	claims    *devices.Claims
	// requested is how many of the resources of a model the inventory knows. The scheduling goroutine uses both.
	dims      *api.Dimensions
	requested int
}

func newDeviceFeed(c *Cache) *deviceFeed {
	f := &deviceFeed{cache: c}
	f.inventory = devices.NewInventory(c.options.Informers, f)
	f.claims = devices.NewClaims(c.options.Informers, f)
	return f
}

// SetDeviceResources implements devices.Sink.
func (f *deviceFeed) SetDeviceResources(names []v1.ResourceName) { f.add(deviceResources{names}) }

// SetDevices implements devices.Sink.
func (f *deviceFeed) SetDevices(node string, list v1.ResourceList) { f.add(nodeDevices{node, list}) }

// SetDeviceClaim implements devices.ClaimSink.
func (f *deviceFeed) SetDeviceClaim(key string, claim *api.DeviceClaim) {
	f.add(deviceClaim{key, claim})
}

func (f *deviceFeed) add(e event) {
	f.cache.queue.add(e)
	f.cache.wakeUp()
}

// requestFrom tells the inventory which implicit resources of device classes the pods request. Every class has one, and
// most are never requested.
func (f *deviceFeed) requestFrom(dims *api.Dimensions) {
	if f.dims != dims { // the model was rebuilt
		f.dims, f.requested = dims, 0
	}
	for ; f.requested < dims.Len(); f.requested++ {
		if name := dims.Name(f.requested); devices.Implicit(name) {
			f.inventory.Request(name)
		}
	}
}

// classesAfter returns the handler for device classes; it calls another one first.
func (f *deviceFeed) classesAfter(first toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	return inOrder{first, typed.Handler(func(_, _ *resourcev1.DeviceClass) {
		f.inventory.ClassesChanged()
		f.claims.ClassesChanged()
	})}
}

// claimsAfter returns the handler for resource claims.
func (f *deviceFeed) claimsAfter(first toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	return inOrder{first, typed.Handler(f.claims.ClaimChanged)}
}

// slicesAfter returns the handler for resource slices.
func (f *deviceFeed) slicesAfter(first toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	return inOrder{first, typed.Handler(f.inventory.SliceChanged)}
}

// nodesAfter returns the handler for nodes.
func (f *deviceFeed) nodesAfter(first toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	return inOrder{first, typed.Handler(func(before, after *v1.Node) {
		switch {
		case before == nil:
			f.inventory.NodeChanged(after.Name)
		case after == nil || !maps.Equal(before.Labels, after.Labels):
			f.inventory.NodeChanged(before.Name)
		}
	})}
}

// inOrder calls two handlers one after the other. They count as one: the informer has synced when both have seen all.
type inOrder struct {
	first, second toolscache.ResourceEventHandler
}

// OnAdd implements toolscache.ResourceEventHandler.
func (h inOrder) OnAdd(obj any, initial bool) {
	h.first.OnAdd(obj, initial)
	h.second.OnAdd(obj, initial)
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (h inOrder) OnUpdate(old, obj any) {
	h.first.OnUpdate(old, obj)
	h.second.OnUpdate(old, obj)
}

// OnDelete implements toolscache.ResourceEventHandler.
func (h inOrder) OnDelete(obj any) {
	h.first.OnDelete(obj)
	h.second.OnDelete(obj)
}

// deviceResources: device classes provide these extended resources.
type deviceResources struct{ names []v1.ResourceName }

func (e deviceResources) key() (objectKey, bool) { return objectKey{rank: rankDeviceResources}, true }
func (e deviceResources) deletes() bool          { return len(e.names) == 0 }
func (e deviceResources) String() string         { return "extended resources of device classes" }

func (e deviceResources) apply(c *Cache) {
	observe(c, e)
	c.model.Events().SetDeviceResources(e.names)
}

// nodeDevices: a node has these devices, by the extended resource that they provide.
type nodeDevices struct {
	node string
	list v1.ResourceList
}

func (e nodeDevices) key() (objectKey, bool) {
	return objectKey{rank: rankNodeDevices, name: e.node}, true
}
func (e nodeDevices) deletes() bool  { return len(e.list) == 0 }
func (e nodeDevices) String() string { return "devices of node " + e.node }

func (e nodeDevices) apply(c *Cache) {
	observe(c, e)
	c.model.Events().SetDevices(e.node, e.list)
}

// deviceClaim: a claim requests these devices.
type deviceClaim struct {
	name  string // namespace/name
	claim *api.DeviceClaim
}

func (e deviceClaim) key() (objectKey, bool) {
	return objectKey{rank: rankDeviceClaims, name: e.name}, true
}
func (e deviceClaim) deletes() bool  { return e.claim == nil }
func (e deviceClaim) String() string { return "devices of resource claim " + e.name }

func (e deviceClaim) apply(c *Cache) {
	observe(c, e)
	c.model.Events().SetDeviceClaim(e.name, e.claim)
}

// observe keeps an event for Rebuild.
func observe(c *Cache, e event) {
	key, _ := e.key()
	if e.deletes() {
		delete(c.observed, key)
	} else {
		c.observed[key] = e
	}
}
