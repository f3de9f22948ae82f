// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/utils/ptr"
)

// Sink receives what an Inventory finds out. The calls are serialized.
type Sink interface {
	// SetDeviceResources sets the extended resources that device classes provide.
	SetDeviceResources(names []v1.ResourceName)
	// SetDevices sets how many devices a node has for each of these resources; nil if it has none.
	SetDevices(node string, devices v1.ResourceList)
}

// Inventory counts, for each extended resource that a device class provides, the devices of each node. It counts
// devices whether they are allocated or not, as a node lists its resources.
//
// The count is an upper bound of what can be allocated to pods: it includes devices that exclude each other, such as
// the partitions of a device and the device itself, and counts a device that several nodes can access for each of them.
// Whether the devices of a pod can be allocated is decided by kube-scheduler's plugin.
//
// While no class names an extended resource and no pod requests an implicit one, an Inventory does nothing. Its
// functions may be called concurrently.
type Inventory struct {
	classes  resourcelisters.DeviceClassLister
	slices   resourcelisters.ResourceSliceLister
	nodes    corelisters.NodeLister
	selector *Selector
	sink     Sink

	mu        sync.Mutex
	requested map[v1.ResourceName]bool                    // implicit resources that pods request
	provided  map[v1.ResourceName]*resourcev1.DeviceClass // the resources that classes provide
	local     map[string]map[string]*published            // slices of one node, by node and name
	network   map[string]*published                       // slices of devices that several nodes can access, by name
	sent      map[string]map[v1.ResourceName]int64        // what the sink knows, by node
}

// published is a slice, and how often each of its devices can be allocated for a class.
type published struct {
	slice  *resourcev1.ResourceSlice
	counts map[*resourcev1.DeviceClass][]int64
}

// NewInventory returns an Inventory that reads the listers of a factory. The caller reports changes.
func NewInventory(factory informers.SharedInformerFactory, sink Sink) *Inventory {
	resources := factory.Resource().V1()
	return &Inventory{
		classes: resources.DeviceClasses().Lister(), slices: resources.ResourceSlices().Lister(), nodes: factory.Core().V1().Nodes().Lister(),
		selector: NewSelector(), sink: sink,
		requested: map[v1.ResourceName]bool{}, sent: map[string]map[v1.ResourceName]int64{},
	}
}

// Request reports that a pod requests an implicit resource.
func (i *Inventory) Request(name v1.ResourceName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.requested[name] {
		i.requested[name] = true
		i.resolve()
	}
}

// ClassesChanged reports that the lister shows other classes than before.
func (i *Inventory) ClassesChanged() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.resolve()
}

// SliceChanged reports a change of a slice: before is nil for a new one, after for a deleted one.
func (i *Inventory) SliceChanged(before, after *resourcev1.ResourceSlice) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.provided) == 0 {
		return
	}
	affected := map[string]bool{}
	for _, slice := range []*resourcev1.ResourceSlice{before, after} {
		switch {
		case slice == nil:
		case nodeOf(slice) == "":
			affected = i.allNodes()
		default:
			affected[nodeOf(slice)] = true
		}
	}
	if before != nil {
		i.remove(before)
	}
	if after != nil {
		i.add(after)
	}
	i.recount(affected)
}

// NodeChanged reports that a node was added or deleted, or that its labels changed.
func (i *Inventory) NodeChanged(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.network) > 0 {
		i.recount(map[string]bool{name: true})
	}
}

// resolve finds the classes of all resources again, and counts all devices again if any has changed.
func (i *Inventory) resolve() {
	before, now := i.provided, i.resolved()
	if maps.Equal(before, now) {
		return
	}
	affected := i.allNodes()
	i.provided = now
	i.local, i.network = nil, nil
	if len(now) > 0 {
		i.readSlices()
		maps.Copy(affected, i.allNodes())
	}
	names := slices.Sorted(maps.Keys(now))
	if !slices.Equal(names, slices.Sorted(maps.Keys(before))) {
		i.sink.SetDeviceResources(names)
	}
	i.recount(affected)
}

func (i *Inventory) resolved() map[v1.ResourceName]*resourcev1.DeviceClass {
	classes := map[v1.ResourceName]*resourcev1.DeviceClass{}
	list, err := i.classes.List(labels.Everything())
	if err != nil {
		return nil
	}
	for _, class := range list {
		if name := v1.ResourceName(ptr.Deref(class.Spec.ExtendedResourceName, "")); name != "" && classes[name] == nil {
			classes[name] = ClassOf(i.classes, name)
		}
	}
	for name := range i.requested {
		if class := ClassOf(i.classes, name); class != nil {
			classes[name] = class
		}
	}
	return classes
}

func (i *Inventory) readSlices() {
	list, err := i.slices.List(labels.Everything())
	if err != nil {
		return
	}
	for _, slice := range list {
		i.add(slice)
	}
}

func (i *Inventory) add(slice *resourcev1.ResourceSlice) {
	p := &published{slice, map[*resourcev1.DeviceClass][]int64{}}
	node := nodeOf(slice)
	switch {
	case node == "":
		if i.network == nil {
			i.network = map[string]*published{}
		}
		i.network[slice.Name] = p
	default:
		if i.local == nil {
			i.local = map[string]map[string]*published{}
		}
		if i.local[node] == nil {
			i.local[node] = map[string]*published{}
		}
		i.local[node][slice.Name] = p
	}
}

func (i *Inventory) remove(slice *resourcev1.ResourceSlice) {
	node := nodeOf(slice)
	if node == "" {
		delete(i.network, slice.Name)
		return
	}
	delete(i.local[node], slice.Name)
	if len(i.local[node]) == 0 {
		delete(i.local, node)
	}
}

// nodeOf returns the only node that can access the devices of a slice; empty if there may be several.
func nodeOf(slice *resourcev1.ResourceSlice) string { return ptr.Deref(slice.Spec.NodeName, "") }

// allNodes returns the nodes for which counts may change if network devices or classes do.
func (i *Inventory) allNodes() map[string]bool {
	names := map[string]bool{}
	for name := range i.sent {
		names[name] = true
	}
	for name := range i.local {
		names[name] = true
	}
	if list, err := i.nodes.List(labels.Everything()); err == nil {
		for _, node := range list {
			names[node.Name] = true
		}
	}
	return names
}

// recount sends the counts of nodes that differ from those that the sink knows.
func (i *Inventory) recount(nodes map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		counts := i.count(name)
		if maps.Equal(counts, i.sent[name]) {
			continue
		}
		if len(counts) == 0 {
			delete(i.sent, name)
		} else {
			i.sent[name] = counts
		}
		i.sink.SetDevices(name, resourceList(counts))
	}
}

func resourceList(counts map[v1.ResourceName]int64) v1.ResourceList {
	if len(counts) == 0 {
		return nil
	}
	list := make(v1.ResourceList, len(counts))
	for name, count := range counts {
		list[name] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return list
}

// count returns how many devices of each resource a node has.
func (i *Inventory) count(name string) map[v1.ResourceName]int64 {
	counts := map[v1.ResourceName]int64{}
	var node *v1.Node
	if len(i.network) > 0 {
		node, _ = i.nodes.Get(name)
	}
	current := generations{}
	for _, p := range i.local[name] {
		current.see(p.slice)
	}
	for _, p := range i.network {
		current.see(p.slice)
	}
	for resourceName, class := range i.provided {
		sum := int64(0)
		for _, p := range i.local[name] {
			if current.has(p.slice) {
				sum += p.total(i.selector, class)
			}
		}
		for _, p := range i.network {
			if node != nil && current.has(p.slice) {
				sum += p.accessible(i.selector, class, node)
			}
		}
		if sum > 0 {
			counts[resourceName] = sum
		}
	}
	return counts
}

// generations has the newest generation of each pool. While a driver replaces the slices of a pool, older ones do not
// count.
type generations map[pool]int64

type pool struct{ driver, name string }

func poolOf(slice *resourcev1.ResourceSlice) pool {
	return pool{slice.Spec.Driver, slice.Spec.Pool.Name}
}

func (g generations) see(slice *resourcev1.ResourceSlice) {
	g[poolOf(slice)] = max(g[poolOf(slice)], slice.Spec.Pool.Generation)
}

func (g generations) has(slice *resourcev1.ResourceSlice) bool {
	return slice.Spec.Pool.Generation == g[poolOf(slice)]
}

// countsOf returns how often each device of the slice can be allocated for a class.
func (p *published) countsOf(selector *Selector, class *resourcev1.DeviceClass) []int64 {
	counts, known := p.counts[class]
	if !known {
		counts = make([]int64, len(p.slice.Spec.Devices))
		for d := range counts {
			if device := &p.slice.Spec.Devices[d]; selector.Selects(class.Spec.Selectors, p.slice.Spec.Driver, device) {
				counts[d] = allocations(device)
			}
		}
		p.counts[class] = counts
	}
	return counts
}

func (p *published) total(selector *Selector, class *resourcev1.DeviceClass) int64 {
	sum := int64(0)
	for _, count := range p.countsOf(selector, class) {
		sum += count
	}
	return sum
}

func (p *published) accessible(selector *Selector, class *resourcev1.DeviceClass, node *v1.Node) int64 {
	sum := int64(0)
	for d, count := range p.countsOf(selector, class) {
		if count > 0 && Accessible(p.slice, &p.slice.Spec.Devices[d], node) {
			sum += count
		}
	}
	return sum
}

// sharedWithoutLimit is how often a device counts that any number of pods can share. No node runs more pods.
const sharedWithoutLimit = 1 << 16

// allocations returns how often a device can be allocated to pods that request an extended resource: such pods
// tolerate no taints and request the default of each capacity. Devices with binding conditions are not supported.
func allocations(device *resourcev1.Device) int64 {
	for i := range device.Taints {
		if effect := device.Taints[i].Effect; effect == resourcev1.DeviceTaintEffectNoSchedule || effect == resourcev1.DeviceTaintEffectNoExecute {
			return 0
		}
	}
	switch {
	case len(device.BindingConditions) > 0:
		return 0
	case !ptr.Deref(device.AllowMultipleAllocations, false):
		return 1
	}
	count := int64(sharedWithoutLimit)
	for _, capacity := range device.Capacity {
		if capacity.RequestPolicy == nil || capacity.RequestPolicy.Default == nil {
			return 1 // the first pod gets all of it
		}
		if each := capacity.RequestPolicy.Default.Value(); each > 0 {
			count = min(count, capacity.Value.Value()/each)
		}
	}
	return count
}
