// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Sizes scores nodes by the size of the devices that a pod can get there, where the size is one capacity of the device, such as
// memory: the smaller, the better. So larger devices stay free for pods that need them.
//
// A request selects devices, and takes the smallest free ones of the node that match. With a typical size T, the score of a
// node is T/(T+size), the size being the mean of the devices. For example, a claim requests a device with at least 30Gi, and
// T is 64Gi:
//
//	node with devices of 24Gi    does not satisfy the claim
//	node with devices of 40Gi    64/104 = 0.615
//	node with devices of 80Gi    64/144 = 0.444
//
// A device without the capacity counts as typical, and so do the devices of a node whose device plugin provides an extended
// resource. A request for all devices of a node counts them as one device of the sum of their sizes. Of k alternatives, the
// first one gets a score from 1-1/k to 1, the next one from 1-2/k to 1-1/k and so on: the order of the user comes first. The
// score of several requests is the mean by the numbers of devices.
type Sizes struct {
	shortages *Shortages
	capacity  string
	typical   int64

	// State of one session:
	cluster api.ClusterView
	known   map[sizeKey][]nodeSize

	// State since the last change of a node:
	position uint64 // of the journal of nodes
	network  bool   // several nodes can access some devices
	task     *api.TaskInfo
	requests []sizedRequest // of the task

	found []deviceSize // scratch space
}

// MaxSize is the largest size of a device that counts, so that sums stay in 64 bits.
const MaxSize = 1 << 50

// sizedRequest is one request, of which one alternative has to be satisfied.
type sizedRequest struct {
	count        api.Score // devices of the first alternative
	alternatives []sizedDemand
}

type sizedDemand struct {
	demand
	nodes []nodeSize // what is known, by index of the node
}

type sizeKey struct {
	demand   string
	resource v1.ResourceName
	count    int64 // 0: all
}

// nodeSize is the score of a node for one demand.
type nodeSize struct {
	generation uint64 // of the node; 0: unknown
	score      api.Score
	enough     enough
}

// enough is whether a node has as many devices as a demand.
type enough int8

const (
	tooFew enough = iota
	ifFree        // once all of them are free
	nowFree
)

type deviceSize struct {
	taken int // 1 if the device is allocated, else 0
	size  int64
}

// NewSizes returns what scores nodes by a capacity of devices. Typical is at most MaxSize.
func NewSizes(s *Shortages, capacity string, typical int64) *Sizes {
	return &Sizes{shortages: s, capacity: capacity, typical: typical}
}

// Open begins a session.
func (s *Sizes) Open(cluster api.ClusterView) {
	s.cluster, s.known = cluster, map[sizeKey][]nodeSize{}
}

// Close ends the session: claims and slices may change between sessions.
func (s *Sizes) Close() {
	*s = Sizes{shortages: s.shortages, capacity: s.capacity, typical: s.typical, found: s.found[:0]}
}

// Score returns the score of a node for a task; 0 if no devices have to be allocated to it.
func (s *Sizes) Score(t *api.TaskInfo, n *api.NodeInfo) api.Score {
	if !t.Signature.RequestsDevices() || n.Node == nil {
		return 0
	}
	position := s.cluster.NodeChanges().Position()
	if s.task != t || s.position != position {
		s.position, s.network = position, len(s.shortages.counts.pools.current().network) > 0
		s.task, s.requests = t, s.requestsOf(t.Pod)
	}
	var sum, count api.Score
	for i := range s.requests {
		r := &s.requests[i]
		sum += r.count * s.ofRequest(r, n)
		count += r.count
	}
	if count == 0 {
		return 0
	}
	return sum / count
}

// requestsOf returns what has to be allocated to a pod.
func (s *Sizes) requestsOf(pod *v1.Pod) []sizedRequest {
	var exact []demand
	var list []sizedRequest
	for _, claim := range s.shortages.devices.claimsOf(pod) {
		if claim.Status.Allocation != nil {
			continue
		}
		for i := range claim.Spec.Devices.Requests {
			r := &claim.Spec.Devices.Requests[i]
			switch alternatives := alternativesOf(r); {
			case len(alternatives) > 1:
				list = append(list, s.request(alternatives))
			case r.Exactly == nil || !ptr.Deref(r.Exactly.AdminAccess, false): // such devices remain free for others
				exact = addDemand(exact, demandOf(r))
			}
		}
	}
	exact = append(exact, extendedDemands(pod, s.shortages.devices.DeviceClassResolver())...)
	for i := range exact {
		list = append(list, s.request(exact[i:i+1]))
	}
	return list
}

func (s *Sizes) request(alternatives []demand) sizedRequest {
	r := sizedRequest{count: api.Score(alternatives[0].count)}
	for _, d := range alternatives {
		key := sizeKey{d.key(), d.resource, d.count}
		if d.all {
			key.count = 0
		}
		if s.known[key] == nil {
			s.known[key] = make([]nodeSize, len(s.cluster.Nodes()))
		}
		r.alternatives = append(r.alternatives, sizedDemand{d, s.known[key]})
	}
	return r
}

// ofRequest returns the score for the first alternative that the node satisfies; if there is none, for the first one that it
// would satisfy if its devices were free.
func (s *Sizes) ofRequest(r *sizedRequest, n *api.NodeInfo) api.Score {
	later := api.Score(0)
	for i := range r.alternatives {
		size := s.ofDemand(&r.alternatives[i], n)
		k := api.Score(len(r.alternatives))
		score := (api.OneScore*(k-1-api.Score(i)) + size.score) / k
		switch {
		case size.enough == nowFree:
			return score
		case size.enough == ifFree && later == 0:
			later = score
		}
	}
	return later
}

func (s *Sizes) ofDemand(d *sizedDemand, n *api.NodeInfo) nodeSize {
	if uint(n.Index) >= uint(len(d.nodes)) {
		return nodeSize{}
	}
	known := &d.nodes[n.Index]
	if known.generation != n.Generation || s.network { // placements on other nodes take devices of the network
		*known = s.measure(&d.demand, n.Node)
		known.generation = n.Generation
	}
	return *known
}

func (s *Sizes) measure(d *demand, node *v1.Node) nodeSize {
	if !d.appliesTo(node) {
		return nodeSize{score: api.OneScore / 2, enough: nowFree}
	}
	s.found = s.found[:0]
	s.shortages.counts.each(d, node, func(driver string, device *resourcev1.Device, taken bool) {
		found := deviceSize{size: s.sizeOf(driver, device)}
		if taken {
			found.taken = 1
		}
		s.found = append(s.found, found)
	})
	if int64(len(s.found)) < d.count {
		return nodeSize{}
	}
	chosen := s.found
	if !d.all {
		slices.SortFunc(chosen, func(a, b deviceSize) int {
			return cmp.Or(cmp.Compare(a.taken, b.taken), cmp.Compare(a.size, b.size))
		})
		chosen = chosen[:d.count]
	}
	size := nodeSize{enough: nowFree}
	sum := int64(0)
	for _, device := range chosen {
		sum = min(sum+device.size, MaxSize*128)
		if device.taken > 0 {
			size.enough = ifFree
		}
	}
	size.score = api.ScoreOf(s.typical, s.typical+sum/d.count)
	return size
}

// sizeOf returns the capacity of a device. A name without domain is in that of the driver.
func (s *Sizes) sizeOf(driver string, device *resourcev1.Device) int64 {
	capacity, has := device.Capacity[resourcev1.QualifiedName(s.capacity)]
	if !has {
		if name, ok := strings.CutPrefix(s.capacity, driver+"/"); ok {
			capacity, has = device.Capacity[resourcev1.QualifiedName(name)]
		} else if !strings.Contains(s.capacity, "/") {
			capacity, has = device.Capacity[resourcev1.QualifiedName(driver+"/"+s.capacity)]
		}
	}
	if !has {
		return s.typical
	}
	return min(max(capacity.Value.Value(), 0), MaxSize)
}
