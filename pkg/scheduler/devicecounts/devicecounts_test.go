// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package devicecounts_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/devicecounts"
)

const gpus = "nvidia.com/gpu"

func class(name, provides string) resourcev1.DeviceClass {
	c := resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}}
	if provides != "" {
		c.Spec.ExtendedResourceName = &provides
	}
	return c
}

// slice has the devices that a driver publishes for a node.
func slice(node, driver string, count int) resourcev1.ResourceSlice {
	s := resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-" + driver},
		Spec:       resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}},
	}
	for i := range count {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("d", i)})
	}
	return s
}

func claim(name, ofClass string, count int64) resourcev1.ResourceClaim {
	request := resourcev1.DeviceRequest{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: ofClass, Count: count}}
	return resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request}}},
	}
}

// text is what is counted, by "node NAME" and "claim NAMESPACE/NAME".
func text(c *devicecounts.Counts) map[string]string {
	list := func(amounts v1.ResourceList) (words string) {
		for name, quantity := range amounts {
			words += fmt.Sprint(quantity.Value(), " ", name)
		}
		return words
	}
	found := map[string]string{}
	for name, amounts := range c.Nodes {
		found["node "+name] = list(amounts)
	}
	for key, claim := range c.Claims {
		found["claim "+key] = list(claim.Counted)
	}
	return found
}

func TestCounts(t *testing.T) {
	ours := claim("of-a-pod", "gpu", 2)
	ours.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	for name, tc := range map[string]struct {
		resource v1.ResourceName
		given    devicecounts.Objects
		provided bool
		want     map[string]string
	}{
		"devices of the class, and what claims request of them": {
			resource: gpus,
			given: devicecounts.Objects{
				Classes: []resourcev1.DeviceClass{class("gpu", gpus)},
				Slices:  []resourcev1.ResourceSlice{slice("n1", "gpu.example.com", 8), slice("n1", "nic.example.com", 2), slice("n2", "gpu.example.com", 4)},
				Claims:  []resourcev1.ResourceClaim{claim("a", "gpu", 3), ours},
			},
			provided: true,
			want:     map[string]string{"node n1": "8 " + gpus, "node n2": "4 " + gpus, "claim ns/a": "3 " + gpus},
		},
		"a class counts by its own name": {
			resource: "deviceclass.resource.kubernetes.io/gpu",
			given: devicecounts.Objects{
				Classes: []resourcev1.DeviceClass{class("gpu", "")},
				Slices:  []resourcev1.ResourceSlice{slice("n1", "gpu.example.com", 8)},
				Claims:  []resourcev1.ResourceClaim{claim("a", "gpu", 3)},
			},
			provided: true,
			want:     map[string]string{"node n1": "8 deviceclass.resource.kubernetes.io/gpu", "claim ns/a": "3 deviceclass.resource.kubernetes.io/gpu"},
		},
		"no class provides the resource": {
			resource: gpus,
			given: devicecounts.Objects{
				Classes: []resourcev1.DeviceClass{class("gpu", "")},
				Slices:  []resourcev1.ResourceSlice{slice("n1", "gpu.example.com", 8)},
			},
			want: map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := devicecounts.Provided(tc.resource, tc.given.Classes); got != tc.provided {
				t.Errorf("provided: %t, want %t", got, tc.provided)
			}
			if diff := cmp.Diff(tc.want, text(devicecounts.Of(tc.resource, &tc.given))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDevicesOfTheNetwork has a slice without a node: it counts for the nodes that can access its devices.
func TestDevicesOfTheNetwork(t *testing.T) {
	near, far := v1.Node{}, v1.Node{}
	near.Name, far.Name = "near", "far"
	near.Labels = map[string]string{"rack": "r1"}
	s := slice("", "gpu.example.com", 2)
	s.Spec.NodeName = nil
	s.Spec.NodeSelector = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: "rack", Operator: v1.NodeSelectorOpIn, Values: []string{"r1"}}},
	}}}
	got := text(devicecounts.Of(gpus, &devicecounts.Objects{
		Nodes: []v1.Node{near, far}, Classes: []resourcev1.DeviceClass{class("gpu", gpus)}, Slices: []resourcev1.ResourceSlice{s},
	}))
	if diff := cmp.Diff(map[string]string{"node near": "2 " + gpus}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
