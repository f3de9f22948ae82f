// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package fragmentation measures how many free devices of a node the pods of a workload cannot use: the fragmentation of
// Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC '23.
//
// A workload is a set of types of pods with weights that say how frequent they are. Of the free devices of a node, a type
// cannot use
//
//   - all, if one pod of the type does not fit: the node does not admit it, or has too few devices or too little of
//     another resource left for it;
//   - otherwise those of which less is free than the type needs of one device. There are none while only whole devices are
//     requested.
//
// The fragmentation F of the node is the mean over the types. A pod goes to the node where F grows least, or falls most.
// For example, half of the pods need 1 GPU and 8 cpu, 3/10 need 4 and 32, and 1/5 need 8 and 96. A node of 8 GPUs and 96 cpu
// can run one pod of each type, so its F is 0. After a pod of 1 GPU and 8 cpu, 7 GPUs are left, which the third type cannot
// use: F is 1/5 of 7. The same pod on a node with 3 GPUs and 40 cpu left, which only the first type can use, changes
// F from 1/2 of 3 to 1/2 of 2. So it goes there.
//
// All numbers are whole: F is in thousandths of a device, times the sum of all weights.
package fragmentation

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Whole is the size of a device: shares of devices are in thousandths.
const Whole = 1000

// MaxTypes is how many types a Set can have.
const MaxTypes = 32

// PodSizes are the numbers of devices of pods that reports count: how many of them fit.
func PodSizes() [4]int64 { return [4]int64{1, 2, 4, 8} }

// Mask is a set of types, by their index in the Set.
type Mask uint32

// All contains each type.
const All = ^Mask(0)

// Type is a kind of pod.
type Type struct {
	Request api.Resource // of one pod, the number of devices included
	Share   int64        // how much of each device it needs; Whole, or less for pods that share one
	Weight  int64        // not negative
	Key     int          // of the caller
}

// Devices are devices of a node of which equal shares are free.
type Devices struct{ Free, Count int64 }

// Node is what is left of a node.
type Node struct {
	Idle    api.Resource
	Taken   api.Resource // what of Idle is not left either, such as the request of a pod that might be placed
	Devices []Devices    // those of which anything is left
	Admits  Mask         // types whose pods may run on the node if it has enough resources
}

// Set is a workload.
type Set struct {
	sums    [MaxTypes / 8][256]int64 // see setSums
	total   int64                    // sum of the weights
	never   Mask                     // types that request no device, so that all devices are of no use to them
	limits  []limits
	demands []demand
}

// limits are the requests for one resource.
type limits struct {
	dimension int
	most      int64
	requests  []request // ascending
}

// request is an amount, and the types that request it or more.
type request struct {
	amount  int64
	orLarge Mask
}

// demand is what types need of devices.
type demand struct {
	count, share int64
	types        Mask
}

// NewSet returns the set of at most MaxTypes types. Devices are the given dimension of their requests. The sum of the weights
// must be positive.
func NewSet(device int, types []Type) *Set {
	s := &Set{}
	s.setSums(types)
	dimensions := 0
	for i := range types {
		t, this := &types[i], Mask(1)<<i
		s.total += t.Weight
		dimensions = max(dimensions, len(t.Request))
		if count := t.Request.At(device); count > 0 {
			s.addDemand(demand{count: count, share: t.Share, types: this})
		} else {
			s.never |= this
		}
	}
	for d := range dimensions {
		if d != device {
			s.addLimits(d, types)
		}
	}
	return s
}

func (s *Set) addDemand(wanted demand) {
	for i := range s.demands {
		if d := &s.demands[i]; d.count == wanted.count && d.share == wanted.share {
			d.types |= wanted.types
			return
		}
	}
	s.demands = append(s.demands, wanted)
}

func (s *Set) addLimits(dimension int, types []Type) {
	l := limits{dimension: dimension}
	for i := range types {
		amount := types[i].Request.At(dimension)
		if amount > 0 && !slices.ContainsFunc(l.requests, func(r request) bool { return r.amount == amount }) {
			l.requests = append(l.requests, request{amount: amount})
		}
	}
	if len(l.requests) == 0 {
		return
	}
	slices.SortFunc(l.requests, func(a, b request) int { return cmp.Compare(a.amount, b.amount) })
	for i := range types {
		for r := range l.requests {
			if types[i].Request.At(dimension) >= l.requests[r].amount {
				l.requests[r].orLarge |= 1 << i
			}
		}
	}
	l.most = l.requests[len(l.requests)-1].amount
	s.limits = append(s.limits, l)
}

// Total returns the sum of the weights.
func (s *Set) Total() int64 { return s.total }

// Lost returns F of the node: how much of its devices a pod cannot use, in thousandths of a device, times Total. It does not
// allocate.
func (s *Set) Lost(n *Node) int64 {
	var free int64
	for _, d := range n.Devices {
		free += d.Free * d.Count
	}
	if free == 0 {
		return 0
	}
	unfit := s.never | ^n.Admits
	for i := range s.limits {
		l := &s.limits[i]
		if left := n.Idle.At(l.dimension) - n.Taken.At(l.dimension); left < l.most {
			unfit |= l.above(left)
		}
	}
	lost := free * s.weight(unfit)
	for i := range s.demands {
		d := &s.demands[i]
		if fit := d.types &^ unfit; fit != 0 {
			if unusable := d.unusable(n.Devices, free); unusable > 0 {
				lost += unusable * s.weight(fit)
			}
		}
	}
	return lost
}

// above returns the types that request more than is left, which some do. It searches without branches that depend on what is
// left, which a processor cannot predict.
func (l *limits) above(left int64) Mask {
	first, count := 0, len(l.requests)
	for count > 1 {
		half := count / 2
		next := first + half
		if l.requests[next-1].amount <= left {
			first = next
		}
		count -= half
	}
	return l.requests[first].orLarge
}

// unusable returns how much of the devices the demand cannot use; all that is free if there are too few for it.
func (d *demand) unusable(devices []Devices, free int64) int64 {
	var count, less int64
	for _, o := range devices {
		if o.Free >= d.share {
			count += o.Count
		} else {
			less += o.Free * o.Count
		}
	}
	if count < d.count {
		return free
	}
	return less
}

// weight returns the sum of the weights of some types.
func (s *Set) weight(types Mask) int64 {
	return s.sums[0][types&255] + s.sums[1][types>>8&255] + s.sums[2][types>>16&255] + s.sums[3][types>>24]
}

// setSums computes the sums of the weights for all values of each byte of a Mask.
func (s *Set) setSums(types []Type) {
	for i := range types {
		for value := range s.sums[i/8] {
			if value>>(i%8)&1 == 1 {
				s.sums[i/8][value] += types[i].Weight
			}
		}
	}
}

// devicesPerHalf is by how many devices F must grow until the score is 0. No pod requests more on one node, as a rule.
const devicesPerHalf = 16

// Score returns the score of a node on which a pod would change F: 1/2 if it does not, more if F falls. It is absolute: it
// depends on that node alone.
func (s *Set) Score(before, after int64) api.Score {
	change := api.Score(after-before) * api.OneScore / api.Score(2*devicesPerHalf*Whole*s.total)
	return min(max(api.OneScore/2-change, 0), api.OneScore)
}
