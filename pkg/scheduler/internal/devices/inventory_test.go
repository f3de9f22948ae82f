// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// known is a Sink that records what it knows, as one text for each node.
type known struct {
	names []v1.ResourceName
	nodes map[string]string
	calls int
}

func (k *known) SetDeviceResources(names []v1.ResourceName) { k.names, k.calls = names, k.calls+1 }

func (k *known) SetDevices(node string, devices v1.ResourceList) {
	k.calls++
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		parts = append(parts, fmt.Sprint(devices.Name(name, resource.DecimalSI).String(), " ", name))
	}
	if k.nodes == nil {
		k.nodes = map[string]string{}
	}
	if k.nodes[node] = strings.Join(parts, ", "); len(parts) == 0 {
		delete(k.nodes, node)
	}
}

// objects are what the listers of an inventory show.
type objects struct {
	factory informers.SharedInformerFactory
}

func newObjects() objects {
	return objects{informers.NewSharedInformerFactory(fake.NewClientset(), 0)}
}

func (o objects) classes() cache.Indexer {
	return o.factory.Resource().V1().DeviceClasses().Informer().GetIndexer()
}

func (o objects) slices() cache.Indexer {
	return o.factory.Resource().V1().ResourceSlices().Informer().GetIndexer()
}

func (o objects) nodes() cache.Indexer {
	return o.factory.Core().V1().Nodes().Informer().GetIndexer()
}

func (o objects) add(list ...metav1.Object) objects {
	for _, object := range list {
		switch object := object.(type) {
		case *resourcev1.DeviceClass:
			_ = o.classes().Add(object)
		case *resourcev1.ResourceSlice:
			_ = o.slices().Add(object)
		case *v1.Node:
			_ = o.nodes().Add(object)
		}
	}
	return o
}

const gpus = "nvidia.com/gpu"

func class(name, provides string, edits ...func(*resourcev1.DeviceClass)) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if provides != "" {
		c.Spec.ExtendedResourceName = &provides
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func selecting(expression string) func(*resourcev1.DeviceClass) {
	return func(c *resourcev1.DeviceClass) {
		c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	}
}

func createdAt(second int64) func(*resourcev1.DeviceClass) {
	return func(c *resourcev1.DeviceClass) { c.CreationTimestamp = metav1.NewTime(time.Unix(second, 0)) }
}

func slice(node string, count int, edits ...func(*resourcev1.ResourceSlice)) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       resourcev1.ResourceSliceSpec{Driver: "test.driver", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}},
	}
	for i := range count {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu", i)})
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// first changes the first device of a slice.
func first(edit func(*resourcev1.Device)) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) { edit(&s.Spec.Devices[0]) }
}

func tainted(effect resourcev1.DeviceTaintEffect) func(*resourcev1.ResourceSlice) {
	return first(func(d *resourcev1.Device) { d.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: effect}} })
}

func shared(capacity, request string) func(*resourcev1.ResourceSlice) {
	return first(func(d *resourcev1.Device) {
		d.AllowMultipleAllocations = ptr.To(true)
		d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(capacity)}}
		if request != "" {
			c := d.Capacity["memory"]
			c.RequestPolicy = &resourcev1.CapacityRequestPolicy{Default: ptr.To(resource.MustParse(request))}
			d.Capacity["memory"] = c
		}
	})
}

// network makes the devices of a slice accessible from the nodes of a zone.
func network(name, zone string) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) {
		s.Name, s.Spec.NodeName, s.Spec.Pool.Name = name, nil, name
		s.Spec.NodeSelector = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}
	}
}

// generation makes a slice one of several of a pool.
func generation(name string, number int64) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) { s.Name, s.Spec.Pool.Generation = name, number }
}

func node(name, zone string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
}

func TestInventory(t *testing.T) {
	tests := map[string]struct {
		given     []metav1.Object
		requested v1.ResourceName
		names     []v1.ResourceName
		want      map[string]string
	}{
		"no class provides a resource": {given: []metav1.Object{class("gpu", ""), slice("n1", 2)}},
		"two nodes": {
			given: []metav1.Object{class("gpu", gpus), slice("n1", 2), slice("n2", 3)},
			names: []v1.ResourceName{gpus}, want: map[string]string{"n1": "2 nvidia.com/gpu", "n2": "3 nvidia.com/gpu"},
		},
		"a class without devices": {
			given: []metav1.Object{class("gpu", gpus, selecting(`device.driver == "other"`)), slice("n1", 2)}, names: []v1.ResourceName{gpus},
		},
		"an implicit resource that a pod requests": {
			given: []metav1.Object{class("gpu", ""), class("cpu", ""), slice("n1", 2)}, requested: "deviceclass.resource.kubernetes.io/gpu",
			names: []v1.ResourceName{"deviceclass.resource.kubernetes.io/gpu"}, want: map[string]string{"n1": "2 deviceclass.resource.kubernetes.io/gpu"},
		},
		"both resources of a class": {
			given: []metav1.Object{class("gpu", gpus), slice("n1", 2)}, requested: "deviceclass.resource.kubernetes.io/gpu",
			names: []v1.ResourceName{"deviceclass.resource.kubernetes.io/gpu", gpus},
			want:  map[string]string{"n1": "2 deviceclass.resource.kubernetes.io/gpu, 2 nvidia.com/gpu"},
		},
		"the newest of two classes": {
			given: []metav1.Object{class("a", gpus, createdAt(1)), class("b", gpus, createdAt(2), selecting(`false`)), slice("n1", 2)},
			names: []v1.ResourceName{gpus},
		},
		"the first of two classes of one age": {
			given: []metav1.Object{class("b", gpus, selecting(`false`)), class("a", gpus), slice("n1", 2)},
			names: []v1.ResourceName{gpus}, want: map[string]string{"n1": "2 nvidia.com/gpu"},
		},
		"a device that cannot be allocated": {
			given: []metav1.Object{class("gpu", gpus), slice("n1", 2, tainted(resourcev1.DeviceTaintEffectNoSchedule)), slice("n2", 2, tainted(resourcev1.DeviceTaintEffectNone)),
				slice("n3", 2, first(func(d *resourcev1.Device) { d.BindingConditions = []string{"Attached"} }))},
			names: []v1.ResourceName{gpus},
			want:  map[string]string{"n1": "1 nvidia.com/gpu", "n2": "2 nvidia.com/gpu", "n3": "1 nvidia.com/gpu"},
		},
		"a device that several pods share": {
			given: []metav1.Object{class("gpu", gpus), slice("n1", 2, shared("40Gi", "10Gi")), slice("n2", 2, shared("40Gi", ""))},
			names: []v1.ResourceName{gpus}, want: map[string]string{"n1": "5 nvidia.com/gpu", "n2": "2 nvidia.com/gpu"},
		},
		"a driver replaces a slice": {
			given: []metav1.Object{class("gpu", gpus), slice("n1", 2, generation("old", 1)), slice("n1", 3, generation("new", 2))},
			names: []v1.ResourceName{gpus}, want: map[string]string{"n1": "3 nvidia.com/gpu"},
		},
		"devices of a zone": {
			given: []metav1.Object{class("gpu", gpus), node("n1", "a"), node("n2", "b"), slice("", 2, network("rack", "a")), slice("n2", 1)},
			names: []v1.ResourceName{gpus}, want: map[string]string{"n1": "2 nvidia.com/gpu", "n2": "1 nvidia.com/gpu"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := &known{}
			inventory := NewInventory(newObjects().add(tt.given...).factory, got)
			if tt.requested != "" {
				inventory.Request(tt.requested)
			}
			inventory.ClassesChanged()
			if diff := cmp.Diff(tt.names, got.names); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, got.nodes); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInventorySendsOnlyChanges checks that an inventory sends nothing while no class provides a resource, and only changes
// afterwards.
func TestInventorySendsOnlyChanges(t *testing.T) {
	got, o := &known{}, newObjects().add(class("gpu", ""), slice("n1", 2), node("n1", "a"))
	inventory := NewInventory(o.factory, got)
	everything := func() {
		inventory.ClassesChanged()
		inventory.SliceChanged(nil, slice("n1", 2))
		inventory.NodeChanged("n1")
	}
	everything()
	if got.calls != 0 {
		t.Errorf("%d calls before a class provides a resource", got.calls)
	}
	o.add(class("gpu", gpus))
	everything()
	if got.calls != 2 {
		t.Errorf("%d calls for one resource and one node", got.calls)
	}
	everything()
	if got.calls != 2 {
		t.Errorf("%d calls after nothing changed", got.calls)
	}
}

// TestInventoryFollowsChanges compares an inventory that follows random changes with a new one.
func TestInventoryFollowsChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, got := newObjects(), &known{}
		inventory := NewInventory(o.factory, got)
		inventory.Request("deviceclass.resource.kubernetes.io/a")
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			changes := []func(){
				func() { changeClass(t, o, inventory) }, func() { changeSlice(t, o, inventory) }, func() { changeNode(t, o, inventory) },
			}
			rapid.SampledFrom(changes).Draw(t, "change")()
			want := &known{}
			fresh := NewInventory(o.factory, want)
			fresh.Request("deviceclass.resource.kubernetes.io/a")
			fresh.ClassesChanged()
			if diff := cmp.Diff(fmt.Sprint(want.names, want.nodes), fmt.Sprint(got.names, got.nodes)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
	})
}

func changeClass(t *rapid.T, o objects, inventory *Inventory) {
	c := class(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "class"), rapid.SampledFrom([]string{"", gpus, "x/y"}).Draw(t, "resource"),
		createdAt(rapid.Int64Range(1, 2).Draw(t, "created")), selecting(rapid.SampledFrom([]string{"true", "false"}).Draw(t, "selector")))
	if rapid.Bool().Draw(t, "deleted") {
		_ = o.classes().Delete(c)
	} else {
		o.add(c)
	}
	inventory.ClassesChanged()
}

func changeSlice(t *rapid.T, o objects, inventory *Inventory) {
	name, zone := rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone")
	after := slice(name, rapid.IntRange(0, 3).Draw(t, "count"), generation(rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "slice"), rapid.Int64Range(1, 2).Draw(t, "generation")))
	if zone != "" {
		network(after.Name, zone)(after)
	}
	var before *resourcev1.ResourceSlice
	if old, exists, _ := o.slices().GetByKey(after.Name); exists {
		before = old.(*resourcev1.ResourceSlice)
	}
	if rapid.Bool().Draw(t, "deleted") {
		_ = o.slices().Delete(after)
		after = nil
	} else {
		o.add(after)
	}
	inventory.SliceChanged(before, after)
}

func changeNode(t *rapid.T, o objects, inventory *Inventory) {
	n := node(rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"))
	if rapid.Bool().Draw(t, "deleted") {
		_ = o.nodes().Delete(n)
	} else {
		o.add(n)
	}
	inventory.NodeChanged(n.Name)
}
