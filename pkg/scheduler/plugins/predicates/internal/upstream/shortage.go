// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/devices"
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
// between devices and shared capacity: where it finds enough devices, the message of kube-scheduler's plugin remains.
type Shortages struct {
	devices  *Devices
	selector *devices.Selector

	// State of one session:
	read    bool
	local   map[string][]*resourcev1.ResourceSlice // by node name
	network []*resourcev1.ResourceSlice            // of devices that several nodes can access

	matches matchCache
}

// matchCache has, by device, what matches: selectors take long to evaluate. It keeps the results of this session and of
// the last one that needed any. Users write selectors, so that older results would pile up.
type matchCache struct{ now, last map[matchKey][]bool }

// begin begins a session that needs results.
func (c *matchCache) begin() { c.now, c.last = map[matchKey][]bool{}, c.now }

func (c *matchCache) get(key matchKey, compute func() []bool) []bool {
	matches, known := c.now[key]
	if known {
		return matches
	}
	if matches, known = c.last[key]; !known {
		matches = compute()
	}
	c.now[key] = matches
	return matches
}

type matchKey struct {
	slice  *resourcev1.ResourceSlice
	demand string
	class  *resourcev1.DeviceClass
}

func newShortages(from *Devices) *Shortages {
	return &Shortages{devices: from, selector: devices.NewSelector()}
}

// forget ends a session.
func (s *Shortages) forget() { s.read, s.local, s.network = false, nil, nil }

// readSlices reads the slices once in a session.
func (s *Shortages) readSlices() {
	if s.read {
		return
	}
	s.read, s.local = true, map[string][]*resourcev1.ResourceSlice{}
	s.matches.begin()
	list, err := s.devices.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil { // the plugin that filters nodes reports it
		return
	}
	for _, slice := range list {
		if name := ptr.Deref(slice.Spec.NodeName, ""); name != "" {
			s.local[name] = append(s.local[name], slice)
		} else {
			s.network = append(s.network, slice)
		}
	}
}

// search is what the unallocated claims and the extended resources of a pod demand, and the devices that are allocated,
// as of a position of the model.
type search struct {
	demands   []demand
	allocated sets.Set[structured.DeviceID]
}

func (s *Shortages) newSearch(pod *v1.Pod) *search {
	var claims []*resourcev1.ResourceClaim
	for _, claim := range s.devices.claimsOf(pod) {
		if claim.Status.Allocation == nil {
			claims = append(claims, claim)
		}
	}
	return &search{append(demandsOf(claims), extendedDemands(pod, s.devices.DeviceClassResolver())...), s.allocated()}
}

// explain returns why a node does not satisfy the claims of a pod, given the answer of kube-scheduler's plugin; nil if
// its devices are not the reason. The result is of that pod.
func (s *Shortages) explain(n *api.NodeInfo, pod *v1.Pod, result *preFilterResult, status *fwk.Status) *api.Unfit {
	if status.Message() != cannotAllocate {
		return nil
	}
	if result.search == nil {
		result.search = s.newSearch(pod)
	}
	return s.unfit(result.search, n.Node)
}

// Missing returns a function that returns the devices that are missing on a node for a pod, as text, and how many
// they are: none if the node satisfies the claims, or does not satisfy them even if none of its devices is allocated. It
// accepts nil.
func (s *Shortages) Missing(pod *v1.Pod) func(*v1.Node) (text string, devices int64) {
	if s == nil {
		return func(*v1.Node) (string, int64) { return "", 0 }
	}
	search := s.newSearch(pod)
	return func(node *v1.Node) (string, int64) {
		list, devices := s.missing(search, node)
		return demandsText(list), devices
	}
}

// allocated returns the devices that are allocated or about to be.
func (s *Shortages) allocated() sets.Set[structured.DeviceID] {
	list, err := s.devices.ResourceClaims().ListAllAllocatedDevices()
	if err != nil { // claims have changed meanwhile
		return nil
	}
	return list
}

// unfit returns why a node does not satisfy the demands; nil if the counts do not show it.
func (s *Shortages) unfit(search *search, node *v1.Node) *api.Unfit {
	var tooFew, inUse *demand
	for i := range search.demands {
		d := &search.demands[i]
		if !d.appliesTo(node) {
			continue
		}
		total, free := s.count(d, node, search.allocated)
		switch {
		case total == 0:
			return &api.Unfit{Reason: api.WithoutResource, Detail: d.of(0)}
		case !d.all && total < d.count:
			tooFew = d
		case free < total && inUse == nil:
			inUse = d
		}
	}
	switch {
	case tooFew != nil:
		return &api.Unfit{Reason: api.ClaimUnfit, Detail: "too few " + tooFew.of(0)}
	case inUse != nil:
		return &api.Unfit{Reason: api.DevicesInUse, Detail: "Insufficient " + inUse.of(0)}
	}
	return nil
}

// missing returns what a node has too few free devices of, and how many are missing in all; nothing if the node does not
// have enough devices even if none is allocated.
func (s *Shortages) missing(search *search, node *v1.Node) (list []demand, devices int64) {
	for _, d := range search.demands {
		if !d.appliesTo(node) {
			continue
		}
		total, free := s.count(&d, node, search.allocated)
		if d.all {
			d.count, d.all = total, false
		}
		if total == 0 || total < d.count {
			return nil, 0
		}
		if d.count -= free; d.count > 0 {
			list = append(list, d)
			devices += d.count
		}
	}
	return list, devices
}

// count returns how many devices of a node match a demand, and how many of them are not allocated.
func (s *Shortages) count(d *demand, node *v1.Node, allocated sets.Set[structured.DeviceID]) (total, free int64) {
	s.eachMatch(d, node, func(slice *resourcev1.ResourceSlice, device *resourcev1.Device) {
		total++
		if !allocated.Has(idOf(slice, device)) {
			free++
		}
	})
	return total, free
}

func idOf(slice *resourcev1.ResourceSlice, device *resourcev1.Device) structured.DeviceID {
	return structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, device.Name)
}

// eachMatch visits the devices of a node that match a demand: those of the node alone, then those that other nodes can access
// too.
func (s *Shortages) eachMatch(d *demand, node *v1.Node, visit func(*resourcev1.ResourceSlice, *resourcev1.Device)) {
	class, err := s.devices.DeviceClasses().Get(d.class)
	if err != nil {
		return
	}
	s.readSlices()
	for _, list := range [...][]*resourcev1.ResourceSlice{s.local[node.Name], s.network} {
		for _, slice := range list {
			matches := s.matchesOf(d, class, slice)
			for i := range slice.Spec.Devices {
				if device := &slice.Spec.Devices[i]; matches[i] && devices.Accessible(slice, device, node) {
					visit(slice, device)
				}
			}
		}
	}
}

// matchesOf returns which devices of a slice match a demand.
func (s *Shortages) matchesOf(d *demand, class *resourcev1.DeviceClass, slice *resourcev1.ResourceSlice) []bool {
	return s.matches.get(matchKey{slice, d.key(), class}, func() []bool {
		matches := make([]bool, len(slice.Spec.Devices))
		for i := range matches {
			device := &slice.Spec.Devices[i]
			matches[i] = s.selector.Selects(class.Spec.Selectors, slice.Spec.Driver, device) && s.selector.Selects(d.selectors, slice.Spec.Driver, device)
		}
		return matches
	})
}
