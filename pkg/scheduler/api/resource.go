// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"math"
	"math/bits"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Dimensions that every cluster has. Others (extended resources, hugepages, attachable
// volumes) follow in the order in which the model first saw them.
const (
	CPU              = iota // milli-cpu
	Memory                  // bytes
	EphemeralStorage        // bytes
	Pods                    // count
	fixedDimensions
)

// MaxQuantity is the largest amount that one pod, node or limit can have in one dimension
// (about 1.1e15: a pebibyte of memory, or a trillion cpus). Larger ones are cut to it, so
// that sums over any real cluster stay far away from overflow.
const MaxQuantity = int64(1) << 50

// MaxRequest is the largest amount that one pod can ask for in one dimension (64 TiB of memory). A sum that has
// saturated stays wrong once it shrinks again, and this many pods in one dimension are below that: 1 << 17.
const MaxRequest = int64(1) << 46

// Dimensions gives every resource name a dense index, once for all of a process.
type Dimensions struct {
	names            []v1.ResourceName
	index            map[v1.ResourceName]int
	shared, extended []bool // by index
}

// NewDimensions returns the fixed dimensions alone.
func NewDimensions() *Dimensions {
	d := &Dimensions{index: map[v1.ResourceName]int{}}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods} {
		d.Index(name)
	}
	return d
}

// Index returns the index of name, which it assigns at the first use.
func (d *Dimensions) Index(name v1.ResourceName) int {
	if i, ok := d.index[name]; ok {
		return i
	}
	i := len(d.names)
	d.names = append(d.names, name)
	d.index[name] = i
	d.shared = append(d.shared, shared(name))
	d.extended = append(d.extended, IsExtendedResource(name))
	return i
}

// Name returns the name of dimension i.
func (d *Dimensions) Name(i int) v1.ResourceName { return d.names[i] }

// Len returns how many dimensions are known.
func (d *Dimensions) Len() int { return len(d.names) }

// Shared reports whether queues share dimension i: cpu, memory and extended resources. The
// number of pods, local storage and attachable volumes are resources of nodes, not shares.
func (d *Dimensions) Shared(i int) bool { return d.shared[i] }

func shared(name v1.ResourceName) bool {
	return name != v1.ResourcePods && name != v1.ResourceEphemeralStorage &&
		!strings.HasPrefix(string(name), v1.ResourceAttachableVolumesPrefix)
}

// Extended reports whether dimension i is an extended resource.
func (d *Dimensions) Extended(i int) bool { return d.extended[i] }

// Vector converts a ResourceList: cpu in milli-units, all else in units, both rounded up.
// Negative amounts count as zero and amounts above MaxQuantity as MaxQuantity.
func (d *Dimensions) Vector(list v1.ResourceList) Resource {
	r := make(Resource, d.Len())
	for name, quantity := range list {
		i := d.Index(name)
		r = r.grown(i + 1)
		r[i] = amount(i, quantity)
	}
	return r
}

// Limits converts a ResourceList of caps: dimensions that the list does not name are
// Unlimited, so that "absent" and "zero" stay different things.
func (d *Dimensions) Limits(list v1.ResourceList) Resource {
	if len(list) == 0 {
		return nil
	}
	r := d.Vector(list)
	for i := range r {
		if _, named := list[d.names[i]]; !named {
			r[i] = Unlimited
		}
	}
	return r
}

// List converts the dimensions of r that are not zero, and only those that keep reports true
// for (nil keeps all).
func (d *Dimensions) List(r Resource, keep func(dimension int) bool) v1.ResourceList {
	list := v1.ResourceList{}
	for i, n := range r {
		if n != 0 && n != Unlimited && (keep == nil || keep(i)) {
			list[d.names[i]] = Quantity(i, n)
		}
	}
	return list
}

// Format words r for people, extended resources first: "1 nvidia.com/gpu + 4 cpu + 2Gi memory".
// The pods dimension is left out. An empty vector is "no resources".
func (d *Dimensions) Format(r Resource) string {
	order := make([]int, 0, len(r))
	for i, n := range r {
		if n != 0 && i != Pods {
			order = append(order, i)
		}
	}
	sort.Slice(order, func(a, b int) bool { return d.before(order[a], order[b]) })
	parts := make([]string, 0, len(order))
	for _, i := range order {
		parts = append(parts, d.FormatOne(i, r[i]))
	}
	if len(parts) == 0 {
		return "no resources"
	}
	return strings.Join(parts, " + ")
}

// before orders dimensions for people: extended ones by name, then cpu, memory, the rest.
func (d *Dimensions) before(i, j int) bool {
	if (i < fixedDimensions) != (j < fixedDimensions) {
		return j < fixedDimensions
	}
	if i < fixedDimensions {
		return i < j
	}
	return d.names[i] < d.names[j]
}

// FormatOne words one amount: "4 cpu", "500m cpu", "2Gi memory", "8 nvidia.com/gpu".
func (d *Dimensions) FormatOne(i int, n int64) string {
	if n == Unlimited {
		return "unlimited " + string(d.names[i])
	}
	return amountText(i, n) + " " + string(d.names[i])
}

// Resource is an amount in every dimension. Vectors may differ in length: dimensions beyond
// the end are zero. All arithmetic saturates instead of wrapping.
type Resource []int64

// Unlimited marks a dimension without a cap in vectors made by Limits.
const Unlimited = int64(math.MaxInt64)

func (r Resource) grown(n int) Resource {
	if len(r) >= n {
		return r
	}
	grown := make(Resource, n)
	copy(grown, r)
	return grown
}

// At returns the amount in dimension i.
func (r Resource) At(i int) int64 {
	if i >= len(r) {
		return 0
	}
	return r[i]
}

// Clone returns a copy that shares nothing with r.
func (r Resource) Clone() Resource { return append(Resource(nil), r...) }

// Add adds o to r in place.
func (r *Resource) Add(o Resource) {
	if len(*r) < len(o) {
		*r = r.grown(len(o))
	}
	s := (*r)[:len(o)]
	for i, n := range o {
		s[i] = saturatingAdd(s[i], n)
	}
}

// AddTimes adds o so many times, none of it negative, without allocating unless r has too few dimensions.
func (r *Resource) AddTimes(o Resource, times int64) {
	if len(*r) < len(o) {
		*r = r.grown(len(o))
	}
	s := (*r)[:len(o)]
	for i, n := range o {
		s[i] = saturatingAdd(s[i], saturatingTimes(n, times))
	}
}

// Sub subtracts o from r in place. The result may be negative.
func (r *Resource) Sub(o Resource) {
	if len(*r) < len(o) {
		*r = r.grown(len(o))
	}
	s := (*r)[:len(o)]
	for i, n := range o {
		s[i] = saturatingSub(s[i], n)
	}
}

func saturatingAdd(a, b int64) int64 {
	c := a + b
	switch {
	case a > 0 && b > 0 && c < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && c >= 0:
		return math.MinInt64
	}
	return c
}

func saturatingSub(a, b int64) int64 {
	c := a - b
	switch {
	case a >= 0 && b < 0 && c < 0:
		return math.MaxInt64
	case a < 0 && b > 0 && c >= 0:
		return math.MinInt64
	}
	return c
}

// Plus returns r + o as a new vector.
func (r Resource) Plus(o Resource) Resource {
	sum := r.Clone()
	sum.Add(o)
	return sum
}

// Minus returns r − o as a new vector.
func (r Resource) Minus(o Resource) Resource {
	difference := r.Clone()
	difference.Sub(o)
	return difference
}

// Times returns n × r as a new vector; n is not negative.
func (r Resource) Times(n int64) Resource {
	product := r.Clone()
	for i := range product {
		product[i] = saturatingTimes(product[i], n)
	}
	return product
}

func saturatingTimes(amount, n int64) int64 {
	if high, low := bits.Mul64(uint64(max(amount, 0)), uint64(n)); high == 0 && low <= math.MaxInt64 {
		return int64(low)
	}
	return math.MaxInt64
}

// TimesIn returns how often r fits into available; a request for nothing fits as often as there are
// pods to request it.
func (r Resource) TimesIn(available Resource) int64 {
	return r.TimesInRest(available, nil)
}

// TimesInRest is TimesIn of what is left of whole without taken.
func (r Resource) TimesInRest(whole, taken Resource) int64 {
	times := int64(math.MaxInt32)
	for i, n := range r {
		if n > 0 {
			times = min(times, max(saturatingSub(whole.At(i), taken.At(i)), 0)/n)
		}
	}
	return times
}

// Fits reports whether r fits into available. As in kube-scheduler a dimension that is not requested
// is ignored, so a node that is over-full in it can still take the task.
func (r Resource) Fits(available Resource) bool { return r.insufficientDimension(available) < 0 }

// insufficientDimension returns the first dimension in which r does not fit into available, or -1.
func (r Resource) insufficientDimension(available Resource) int {
	for i, n := range r {
		if n > 0 && n > available.At(i) {
			return i
		}
	}
	return -1
}

// InsufficientDimension returns the most specific dimension in which r does not
// fit into available: extended resources before cpu before memory; -1 when r fits.
func (r Resource) InsufficientDimension(available Resource) int {
	for i := len(r) - 1; i >= fixedDimensions; i-- {
		if r[i] > 0 && r[i] > available.At(i) {
			return i
		}
	}
	return r.insufficientDimension(available)
}

// Within reports whether r is at or below limits in every dimension. Nil limits allow all, and
// dimensions beyond the end of limits are not limited.
func (r Resource) Within(limits Resource) bool { return r.Exceeds(limits) < 0 }

// Exceeds returns the first dimension in which r is above limits, or -1.
func (r Resource) Exceeds(limits Resource) int {
	for i := range limits {
		if limits[i] != Unlimited && r.At(i) > limits[i] {
			return i
		}
	}
	return -1
}

// beyond returns by how much r exceeds o, never below zero, as a new vector.
func (r Resource) beyond(o Resource) Resource {
	return r.Minus(o).NotNegative()
}

// Max returns the larger amount of each dimension as a new vector.
func (r Resource) Max(o Resource) Resource {
	larger := r.Clone().grown(len(o))
	for i := range larger {
		larger[i] = max(larger[i], o.At(i))
	}
	return larger
}

// NotNegative raises negative amounts to zero, in place, and returns r.
func (r Resource) NotNegative() Resource {
	for i := range r {
		r[i] = max(r[i], 0)
	}
	return r
}

// IsZero reports whether every dimension is zero.
func (r Resource) IsZero() bool {
	for _, n := range r {
		if n != 0 {
			return false
		}
	}
	return true
}

// Equal compares amounts; trailing zeros do not matter.
func (r Resource) Equal(o Resource) bool {
	for i := 0; i < max(len(r), len(o)); i++ {
		if r.At(i) != o.At(i) {
			return false
		}
	}
	return true
}
