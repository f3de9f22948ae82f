// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// cannotAllocate is the message of kube-scheduler's plugin for a node whose devices do not satisfy the claims of a pod.
// It does not say whether other pods use the devices.
const cannotAllocate = "cannot allocate all claims"

// claimInUse reports whether a message of kube-scheduler's plugin is about a claim that is in use by other pods, or is
// being allocated for one.
func claimInUse(message string) bool {
	return message == "resourceclaim in use" || strings.HasSuffix(message, " is in the process of being allocated")
}

// Shortages finds out why the devices of a node do not satisfy the claims of a pod.
//
// It counts the devices of the node that match a request, and those of them that are not allocated. For example, a pod
// requests 2 devices of a class. A node without a device of the class never suits the pod, and neither does a node with
// one. On a node with 4 of them of which 3 are allocated, the pod waits for one device. The count ignores constraints
// between devices: where it finds enough devices, and enough of what they share, the message of kube-scheduler's plugin
// remains.
type Shortages struct {
	devices *Devices
	counts  *deviceCounts
	last    *search // of the last pod
}

// search is what the unallocated claims and the extended resources of a pod demand.
type search struct {
	pod      *v1.Pod
	version  uint64 // of the claims
	demands  []demand
	requests []alternatives
	whole    bool // a count of one demand decides; see wholeDevices
}

func newShortages(from *Devices, pools *devicePools) *Shortages {
	return &Shortages{devices: from, counts: newDeviceCounts(from, pools)}
}

// forget ends a session.
func (s *Shortages) forget() {
	s.last = nil
	s.counts.dropUnused()
}

// searchFor returns what a pod demands. The search is valid until the next call.
func (s *Shortages) searchFor(pod *v1.Pod) *search {
	version := s.devices.inUse.now()
	if s.last == nil || s.last.pod != pod || s.last.version != version {
		s.last = s.newSearch(pod, version)
	}
	return s.last
}

func (s *Shortages) newSearch(pod *v1.Pod, version uint64) *search {
	all := s.devices.claimsOf(pod)
	claims := slices.DeleteFunc(slices.Clone(all), func(c *resourcev1.ResourceClaim) bool { return c.Status.Allocation != nil })
	extended := extendedDemands(pod, s.devices.DeviceClassResolver())
	demands := append(demandsOf(claims), extended...)
	return &search{
		pod: pod, version: version, demands: s.counts.find(demands), requests: s.requestsOf(claims, extended),
		whole: len(demands) == 1 && len(claims) == len(all) && wholeDevices(pod, claims),
	}
}

// explain returns why a node does not satisfy the claims of a pod, given the answer of kube-scheduler's plugin; nil if
// its devices are not the reason. The result is of that pod.
func (s *Shortages) explain(n *api.NodeInfo, pod *v1.Pod, status *fwk.Status) *api.Unfit {
	if status.Message() != cannotAllocate {
		return nil
	}
	return s.unfit(s.searchFor(pod), n)
}

// Missing returns a function that returns the devices that are missing on a node for a pod, as text, and how many
// they are: none if the node satisfies the claims, or does not satisfy them even if none of its devices is allocated. It
// accepts nil.
func (s *Shortages) Missing(pod *v1.Pod) func(*api.NodeInfo) (text string, devices int64) {
	if s == nil {
		return func(*api.NodeInfo) (string, int64) { return "", 0 }
	}
	search := s.searchFor(pod)
	return func(n *api.NodeInfo) (string, int64) { return s.missing(search, n) }
}

// unfit returns why a node does not satisfy the demands; nil if the counts do not show it.
func (s *Shortages) unfit(search *search, n *api.NodeInfo) *api.Unfit {
	var tooFew, inUse *demand
	var parts *api.Unfit
	for i := range search.demands {
		d := &search.demands[i]
		if !d.appliesTo(n.Node) {
			continue
		}
		switch c := s.counts.on(n, d); {
		case c.total == 0:
			return &api.Unfit{Reason: api.WithoutResource, Detail: d.of(0)}
		case !d.all && c.total < d.count:
			tooFew = d
		case c.free < c.total && inUse == nil:
			inUse = d
		case !c.whole && !d.all && parts == nil:
			parts = s.counts.unfitParts(d, n.Node)
		}
	}
	switch {
	case tooFew != nil:
		return &api.Unfit{Reason: api.ClaimUnfit, Detail: "too few " + tooFew.of(0)}
	case inUse != nil:
		return &api.Unfit{Reason: api.DevicesInUse, Detail: "Insufficient " + inUse.of(0)}
	}
	return parts
}

// missing returns what a node has too few free devices of, and how many are missing in all; nothing if the node does not
// have enough devices even if none is allocated.
func (s *Shortages) missing(search *search, n *api.NodeInfo) (text string, devices int64) {
	var list []demand
	for _, d := range search.demands {
		if !d.appliesTo(n.Node) {
			continue
		}
		c := s.counts.on(n, &d)
		if d.all {
			d.count, d.all = c.total, false
		}
		if c.total == 0 || c.total < d.count {
			return "", 0
		}
		if d.count -= c.free; d.count > 0 {
			list = append(list, d)
			devices += d.count
		}
	}
	return demandsText(list), devices
}
