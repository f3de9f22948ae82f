// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// claimed is a ClaimSink that records what it knows, as one text for each claim.
type claimed struct {
	claims map[string]string
	calls  int
}

func (c *claimed) SetDeviceClaim(key string, claim *api.DeviceClaim) {
	c.calls++
	if claim == nil {
		delete(c.claims, key)
		return
	}
	list := func(amounts v1.ResourceList) string {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			quantity := amounts[name]
			parts = append(parts, fmt.Sprint(quantity.Value(), " ", name))
		}
		return strings.Join(parts, ", ")
	}
	text := list(claim.Counted)
	if required := list(claim.Required); required != text {
		text += "; of the node: " + required
	}
	for _, consumer := range claim.Consumers {
		text += " for " + string(consumer)
	}
	c.claims[key] = text
}

func aClaim(requests ...resourcev1.DeviceRequest) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"},
		Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}},
	}
}

func exactly(class string, count int64, changes ...func(*resourcev1.ExactDeviceRequest)) resourcev1.DeviceRequest {
	e := &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
	for _, change := range changes {
		change(e)
	}
	return resourcev1.DeviceRequest{Name: class, Exactly: e}
}

func firstOf(subs ...resourcev1.DeviceSubRequest) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: "any", FirstAvailable: subs}
}

func sub(class string, count int64) resourcev1.DeviceSubRequest {
	return resourcev1.DeviceSubRequest{Name: "of-" + class, DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
}

// allocated gives the claim one device for each request that is named, and reserves it for a pod.
func allocated(claim *resourcev1.ResourceClaim, requests ...string) *resourcev1.ResourceClaim {
	claim.Status.Allocation = &resourcev1.AllocationResult{}
	for _, request := range requests {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: request})
	}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "p-uid"}}
	return claim
}

// TestClaimsCount: how many devices of a claim count.
func TestClaimsCount(t *testing.T) {
	all := func(e *resourcev1.ExactDeviceRequest) {
		e.AllocationMode, e.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	for name, tc := range map[string]struct {
		given *resourcev1.ResourceClaim
		want  string
	}{
		"devices of a class that names a resource": {aClaim(exactly("gpu", 4)), "4 nvidia.com/gpu"},
		"devices of a class that names none":       {aClaim(exactly("nic", 1)), "1 deviceclass.resource.kubernetes.io/nic"},
		"of an older class that names the same resource as another": {
			aClaim(exactly("old-gpu", 1)), "1 deviceclass.resource.kubernetes.io/old-gpu",
		},
		"of a class that does not exist": {aClaim(exactly("tpu", 1)), ""},
		"several requests": {
			aClaim(exactly("gpu", 1), exactly("nic", 2), resourcev1.DeviceRequest{Name: "more", Exactly: exactly("gpu", 2).Exactly}),
			"2 deviceclass.resource.kubernetes.io/nic, 3 nvidia.com/gpu",
		},
		"a count that is not set": {aClaim(exactly("gpu", 0)), "1 nvidia.com/gpu"},
		"access for administrators takes no device": {
			aClaim(exactly("gpu", 1, func(e *resourcev1.ExactDeviceRequest) { e.AdminAccess = ptr.To(true) })), "",
		},
		"a request that tolerates taints counts in the queue": {
			aClaim(exactly("gpu", 1, func(e *resourcev1.ExactDeviceRequest) {
				e.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
			})), "1 nvidia.com/gpu; of the node: ",
		},
		"a request for a part of a device counts in the queue": {
			aClaim(exactly("gpu", 1, func(e *resourcev1.ExactDeviceRequest) { e.Capacity = &resourcev1.CapacityRequirements{} })), "1 nvidia.com/gpu; of the node: ",
		},
		"all devices of a node, before they are known": {aClaim(exactly("gpu", 0, all)), ""},
		"all devices of a node":                        {allocated(aClaim(exactly("gpu", 0, all)), "gpu", "gpu", "gpu"), "3 nvidia.com/gpu for p-uid"},
		"of alternatives the first":                    {aClaim(firstOf(sub("gpu", 2), sub("nic", 1))), "2 nvidia.com/gpu; of the node: "},
		"of alternatives the one that is allocated": {
			allocated(aClaim(firstOf(sub("gpu", 2), sub("nic", 1))), "any/of-nic"), "1 deviceclass.resource.kubernetes.io/nic for p-uid",
		},
		"a claim that is allocated": {allocated(aClaim(exactly("gpu", 2)), "gpu", "gpu"), "2 nvidia.com/gpu for p-uid"},
		"the claim of a pod that requests an extended resource": {
			func() *resourcev1.ResourceClaim {
				c := aClaim(exactly("gpu", 2))
				c.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
				return c
			}(), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObjects()
			o.add(class("gpu", gpus, createdAt(2)), class("old-gpu", gpus, createdAt(1)), class("nic", ""))
			sink := &claimed{claims: map[string]string{}}
			c := NewClaims(o.factory, sink)
			for range 2 {
				c.ClaimChanged(nil, tc.given)
			}
			if got := sink.claims["ns/c"]; got != tc.want || sink.calls > 1 {
				t.Errorf("%q after %d calls, want %q", got, sink.calls, tc.want)
			}
		})
	}
}

// TestClaimsFollowClasses: a claim counts as its class says now.
func TestClaimsFollowClasses(t *testing.T) {
	o, sink := newObjects(), &claimed{claims: map[string]string{}}
	c := NewClaims(o.factory, sink)
	claim := aClaim(exactly("gpu", 4))
	_ = o.factory.Resource().V1().ResourceClaims().Informer().GetIndexer().Add(claim)
	shows := func(step, want string) {
		t.Helper()
		if got := sink.claims["ns/c"]; got != want {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	c.ClaimChanged(nil, claim)
	shows("without a class", "")
	o.add(class("gpu", ""))
	c.ClassesChanged()
	shows("with a class", "4 deviceclass.resource.kubernetes.io/gpu")
	_ = o.classes().Update(class("gpu", gpus))
	c.ClassesChanged()
	shows("with a name", "4 nvidia.com/gpu")
	c.ClaimChanged(claim, nil)
	shows("deleted", "")
}
