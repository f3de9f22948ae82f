// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// demand is what the claims of a pod request of one device class. Requests with different selectors are different
// demands.
type demand struct {
	class     string
	resource  v1.ResourceName             // the extended resource that the pod requests; empty for claims
	selectors []resourcev1.DeviceSelector // those of the requests; the class has its own
	count     int64
	all       bool // all matching devices of the node
	// capacity is what each device is to have, or to have left: of several requests, the largest.
	capacity map[resourcev1.QualifiedName]resource.Quantity

	counts *demandCounts // of the devices that match; nil before deviceCounts.find
}

// demandsOf sums the requests of claims.
func demandsOf(claims []*resourcev1.ResourceClaim) []demand {
	var list []demand
	for _, claim := range claims {
		for i := range claim.Spec.Devices.Requests {
			list = addDemand(list, demandOf(&claim.Spec.Devices.Requests[i]))
		}
	}
	return list
}

// demandOf reads a request; of a list of alternatives, the first one.
func demandOf(r *resourcev1.DeviceRequest) demand {
	if list := alternativesOf(r); len(list) > 0 {
		return list[0]
	}
	return demand{}
}

// alternativesOf reads a request: the demands of which one is to be satisfied, in the order of preference.
func alternativesOf(r *resourcev1.DeviceRequest) []demand {
	if e := r.Exactly; e != nil {
		return []demand{{
			class: e.DeviceClassName, selectors: e.Selectors, count: max(e.Count, 1), all: e.AllocationMode == resourcev1.DeviceAllocationModeAll,
			capacity: capacityOf(e.Capacity),
		}}
	}
	list := make([]demand, len(r.FirstAvailable))
	for i := range list {
		e := &r.FirstAvailable[i]
		list[i] = demand{
			class: e.DeviceClassName, selectors: e.Selectors, count: max(e.Count, 1), all: e.AllocationMode == resourcev1.DeviceAllocationModeAll,
			capacity: capacityOf(e.Capacity),
		}
	}
	return list
}

func capacityOf(r *resourcev1.CapacityRequirements) map[resourcev1.QualifiedName]resource.Quantity {
	if r == nil {
		return nil
	}
	return r.Requests
}

// extendedDemands returns what a pod requests of device classes through extended resources, sorted by resource.
func extendedDemands(pod *v1.Pod, classes fwk.DeviceClassResolver) []demand {
	var list []demand
	for name, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if quantity.Sign() <= 0 || !api.IsExtendedResource(name) {
			continue
		}
		if class := classes.GetDeviceClass(name); class != nil {
			list = append(list, demand{class: class.Name, resource: name, count: quantity.Value()})
		}
	}
	slices.SortFunc(list, func(a, b demand) int { return cmp.Compare(a.resource, b.resource) })
	return list
}

// appliesTo reports whether devices of a node must satisfy the demand. A node that lists the extended resource provides it
// through a device plugin.
func (d *demand) appliesTo(node *v1.Node) bool {
	if d.resource == "" {
		return true
	}
	listed := node.Status.Allocatable[d.resource]
	return listed.Sign() <= 0
}

func addDemand(list []demand, d demand) []demand {
	if d.class == "" {
		return list
	}
	for i := range list {
		if list[i].key() == d.key() && list[i].all == d.all {
			list[i].count += d.count
			list[i].capacity = largest(list[i].capacity, d.capacity)
			return list
		}
	}
	return append(list, d)
}

// largest returns the larger quantity of each capacity. It changes neither map.
func largest(a, b map[resourcev1.QualifiedName]resource.Quantity) map[resourcev1.QualifiedName]resource.Quantity {
	if len(b) == 0 {
		return a
	}
	all := maps.Clone(b)
	for name, quantity := range a {
		if other, ok := all[name]; !ok || quantity.Cmp(other) > 0 {
			all[name] = quantity
		}
	}
	return all
}

// key is equal for demands that the same devices satisfy.
func (d *demand) key() string {
	key := d.class
	for _, s := range d.selectors {
		if s.CEL != nil {
			key += "\x00" + s.CEL.Expression
		}
	}
	return key
}

// of names the devices: "devices of class gpu", or "nvidia.com/gpu" for an extended resource.
func (d *demand) of(count int64) string {
	if d.resource != "" {
		return string(d.resource)
	}
	if count == 1 {
		return "device of class " + d.class
	}
	return "devices of class " + d.class
}

func (d *demand) text() string {
	if d.all {
		return "all " + d.of(0)
	}
	return fmt.Sprintf("%d %s", d.count, d.of(d.count))
}

func demandsText(list []demand) string {
	parts := make([]string, len(list))
	for i := range list {
		parts[i] = list[i].text()
	}
	return strings.Join(parts, " + ")
}

// Demand returns what the claims of a pod request, as text: "2 devices of class gpu". Claims that the pod names may be
// shared, so the text has their names: "claim shared (1 device of class gpu)". It is empty if no claim exists. It
// accepts nil.
func (s *Shortages) Demand(pod *v1.Pod) string {
	if s == nil {
		return ""
	}
	var own []*resourcev1.ResourceClaim
	var parts []string
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		claim, err := s.devices.ResourceClaims().Get(pod.Namespace, *name)
		if err != nil {
			continue
		}
		if pod.Spec.ResourceClaims[i].ResourceClaimName == nil {
			own = append(own, claim)
		} else if text := demandsText(demandsOf([]*resourcev1.ResourceClaim{claim})); text != "" {
			parts = append(parts, fmt.Sprintf("claim %s (%s)", *name, text))
		}
	}
	if text := demandsText(demandsOf(own)); text != "" {
		parts = append([]string{text}, parts...)
	}
	return strings.Join(parts, " + ")
}
