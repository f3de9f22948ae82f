// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

const gpuResource, implicitResource = "nvidia.com/gpu", v1.ResourceName(resourcev1.ResourceDeviceClassPrefix + "gpu")

// TestDevicesReachTheModel shows device classes and slices, and rebuilds the model.
func TestDevicesReachTheModel(t *testing.T) {
	c, h := newCache(t)
	shows := func(step string, pod api.TaskID, resources v1.ResourceName, want ...int64) {
		t.Helper()
		for _, when := range []string{"", " after a rebuild"} {
			c.Apply()
			c.Apply() // an inventory that learns of a resource counts its devices
			dims := c.Model().Dims()
			got := []int64{}
			for _, name := range []string{"n1", "n2"} {
				got = append(got, c.Model().Node(name).Allocatable.At(dims.Index(resources)))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s%s: %s of n1 and n2 (-want +got):\n%s", step, when, resources, diff)
			}
			if signature := c.Model().Tasks()[pod].Signature; signature.DeviceResources != (want[0] > 0) {
				t.Errorf("%s%s: the pod requests devices: %t", step, when, signature.DeviceResources)
			}
			c.Rebuild()
		}
	}
	informers := c.options.Informers
	classes, slices := informers.Resource().V1().DeviceClasses().Informer(), informers.Resource().V1().ResourceSlices().Informer()
	classHandler, sliceHandler := c.devices.classesAfter(c.externalHandler()), c.devices.slicesAfter(c.externalHandler())
	add := func(informer toolscache.SharedIndexInformer, handler toolscache.ResourceEventHandler, object metav1.Object) {
		if err := informer.GetIndexer().Add(object); err != nil {
			t.Fatal(err)
		}
		handler.OnAdd(object, false)
	}

	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Spec:       resourcev1.ResourceSliceSpec{Driver: "test.driver", NodeName: ptr.To("n1"), Devices: []resourcev1.Device{{Name: "a"}, {Name: "b"}}},
	}
	h.queues.OnAdd(queue("default"), true)
	h.nodes.OnAdd(node("n1"), true)
	lists := node("n2")
	lists.Status.Allocatable[gpuResource] = resource.MustParse("4")
	h.nodes.OnAdd(lists, true)
	requesting := func(name string, resourceName v1.ResourceName) *v1.Pod {
		return with(member("", name), func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{resourceName: resource.MustParse("1")}
		})
	}
	h.pods.OnAdd(requesting("p", gpuResource), true)
	add(classes, classHandler, class)
	add(slices, sliceHandler, slice)
	add(slices, sliceHandler, &resourcev1.ResourceSlice{ // of a node that lists the resource
		ObjectMeta: metav1.ObjectMeta{Name: "n2"},
		Spec:       resourcev1.ResourceSliceSpec{Driver: "test.driver", NodeName: ptr.To("n2"), Devices: []resourcev1.Device{{Name: "a"}}},
	})
	shows("a class that provides nothing", "pod-p", gpuResource, 0, 4)

	named := class.DeepCopy()
	named.Spec.ExtendedResourceName, named.ResourceVersion = ptr.To(gpuResource), "2"
	add(classes, classHandler, named)
	shows("a class that provides the resource", "pod-p", gpuResource, 2, 4)

	more := slice.DeepCopy()
	more.Spec.Devices, more.ResourceVersion = append(more.Spec.Devices, resourcev1.Device{Name: "c"}), "2"
	_ = slices.GetIndexer().Update(more)
	sliceHandler.OnUpdate(slice, more)
	shows("one device more", "pod-p", gpuResource, 3, 4)

	_ = slices.GetIndexer().Delete(more)
	sliceHandler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "n1", Obj: more})
	c.Apply()
	if got := c.Model().Node("n1").Allocatable.At(c.Model().Dims().Index(gpuResource)); got != 0 {
		t.Errorf("n1 has %d devices after its slice was deleted", got)
	}

	add(slices, sliceHandler, slice)
	h.pods.OnAdd(requesting("q", implicitResource), false)
	shows("the resource that the class has without naming it", "pod-q", implicitResource, 2, 1)
}
