// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// alternatives are demands of which one suffices. Most requests have one.
type alternatives []demand

// requestsOf returns what a node must have free devices for. Requests for the same devices are summed; requests with
// alternatives stand for themselves. Requests that other claims do not prevent, or that adapt to what the node has, are left
// out.
func (s *Shortages) requestsOf(claims []*resourcev1.ResourceClaim, extended []demand) []alternatives {
	var sums []demand
	var list []alternatives
	for _, claim := range claims {
		for i := range claim.Spec.Devices.Requests {
			r := &claim.Spec.Devices.Requests[i]
			if e := r.Exactly; e != nil {
				if !ptr.Deref(e.AdminAccess, false) && e.AllocationMode != resourcev1.DeviceAllocationModeAll {
					sums = addDemand(sums, demandOf(r))
				}
			} else if each := alternativesOf(r); len(each) > 0 && !slices.ContainsFunc(each, func(d demand) bool { return d.all }) {
				list = append(list, s.counts.find(each))
			}
		}
	}
	for _, d := range s.counts.find(append(sums, extended...)) {
		list = append(list, alternatives{d})
	}
	return list
}

// refused reports whether a node has too few free devices for a request, whatever kube-scheduler's plugin would find.
func (s *Shortages) refused(search *search, n *api.NodeInfo) bool {
	return slices.ContainsFunc(search.requests, func(a alternatives) bool {
		return !slices.ContainsFunc(a, func(d demand) bool {
			if !d.appliesTo(n.Node) || d.counts == nil {
				return true
			}
			c := s.counts.on(n, &d)
			return c.failed || c.several || c.free >= d.count
		})
	})
}

// fits reports whether kube-scheduler's plugin would find devices on a node, where it is certain without asking the plugin.
func (s *Shortages) fits(search *search, n *api.NodeInfo) bool {
	if !search.whole {
		return false
	}
	d := &search.demands[0]
	if !d.appliesTo(n.Node) || d.counts == nil {
		return false
	}
	c := s.counts.on(n, d)
	return c.whole && !c.failed && c.free >= d.count && d.count <= resourcev1.AllocationResultsMaxSize
}

// wholeDevices reports whether claims, or extended resources, request a number of devices and nothing else.
func wholeDevices(pod *v1.Pod, claims []*resourcev1.ResourceClaim) bool {
	if len(claims) == 0 {
		return len(pod.Spec.InitContainers) == 0 // which may share devices with containers
	}
	return !slices.ContainsFunc(claims, func(claim *resourcev1.ResourceClaim) bool {
		return len(claim.Spec.Devices.Constraints) > 0 || slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool {
			e := r.Exactly
			return e == nil || e.AllocationMode != resourcev1.DeviceAllocationModeExactCount || ptr.Deref(e.AdminAccess, false) ||
				len(e.Tolerations) > 0 || e.Capacity != nil
		})
	})
}
