// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package devicecounts counts the devices of DRA drivers in lists of objects, as the scheduler counts them: those that nodes
// have, and those that claims request. It is for programs that list the objects once, such as the kubectl plugin.
package devicecounts

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/devices"
)

// Objects are the objects that devices are counted in. They are read only.
type Objects struct {
	Nodes   []v1.Node
	Classes []resourcev1.DeviceClass
	Slices  []resourcev1.ResourceSlice
	Claims  []resourcev1.ResourceClaim
}

// Counts are numbers of devices, by extended resource. It implements the sinks of package devices.
type Counts struct {
	// Nodes have the devices of each node, whether they are allocated or not; nodes without devices are absent.
	Nodes map[string]v1.ResourceList
	// Claims have what each claim namespace/name requests; claims that request nothing that counts are absent. The claims that
	// schedulers create for extended resources are among these, because their pods request the resources themselves.
	Claims map[string]*api.DeviceClaim
}

// SetDeviceResources implements devices.Sink.
func (c *Counts) SetDeviceResources([]v1.ResourceName) {}

// SetDevices implements devices.Sink.
func (c *Counts) SetDevices(node string, devices v1.ResourceList) { c.Nodes[node] = devices }

// SetDeviceClaim implements devices.ClaimSink.
func (c *Counts) SetDeviceClaim(key string, claim *api.DeviceClaim) { c.Claims[key] = claim }

// Provided reports whether one of the classes provides an extended resource.
func Provided(name v1.ResourceName, classes []resourcev1.DeviceClass) bool {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	fill(indexer, classes)
	return devices.ClassOf(resourcelisters.NewDeviceClassLister(indexer), name) != nil
}

// Of counts the devices that classes provide as the named extended resource, and as those that the classes themselves name.
func Of(name v1.ResourceName, o *Objects) *Counts {
	factory := informers.NewSharedInformerFactory(nil, 0) // it is never started
	resources := factory.Resource().V1()
	fill(factory.Core().V1().Nodes().Informer().GetIndexer(), o.Nodes)
	fill(resources.DeviceClasses().Informer().GetIndexer(), o.Classes)
	fill(resources.ResourceSlices().Informer().GetIndexer(), o.Slices)
	fill(resources.ResourceClaims().Informer().GetIndexer(), o.Claims)

	counts := &Counts{Nodes: map[string]v1.ResourceList{}, Claims: map[string]*api.DeviceClaim{}}
	inventory := devices.NewInventory(factory, counts)
	if devices.Implicit(name) {
		inventory.Request(name)
	} else {
		inventory.ClassesChanged()
	}
	devices.NewClaims(factory, counts).ClassesChanged()
	return counts
}

func fill[T any](indexer cache.Indexer, list []T) {
	for i := range list {
		utilruntime.Must(indexer.Add(&list[i])) // every object has a name
	}
}
