// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	kaiUnlimited = -1  // of a quota or a limit
	kaiPriority  = 100 // of a queue without priority
)

// kaiResource is a resource of a queue of KAI Scheduler, which has three: cpu in thousandths, memory in units of 1,000,000
// bytes, gpu in devices.
type kaiResource struct {
	field string
	name  corev1.ResourceName
	unit  string // suffix of a quantity

	limit, weight float64
}

func kaiResources(o Options) []*kaiResource {
	return []*kaiResource{
		{field: "cpu", name: corev1.ResourceCPU, unit: "m"},
		{field: "memory", name: corev1.ResourceMemory, unit: "M"},
		{field: "gpu", name: corev1.ResourceName(o.GPU)},
	}
}

// kai translates a Queue of KAI Scheduler. The types are those of its pkg/apis/scheduling/v2.
//
// quota is what a queue can reclaim, and other queues can borrow: the guarantee of a Queue. limit is its capability: -1 is
// no limit, and 0 is a limit, which a resource without settings has. overQuotaWeight, for each resource, is the weight.
func kai(q *queue, r *reader, o Options) {
	spec := r.in("spec")
	q.parent = spec.text("parentQueue")
	q.isParent = r.in("status").has("childQueues")
	if q.parent != "" {
		q.loseParent(spec.at("parentQueue"))
	}
	if spec.has("displayName") {
		q.lose(spec.at("displayName"), "no counterpart; a Queue has only its name")
	}
	if priority := spec.whole("priority", kaiPriority, math.MinInt32, math.MaxInt32); priority != kaiPriority {
		q.lose(spec.at("priority"), "%d has no counterpart: the Queue with the smallest part of what it deserves is first", priority)
	}
	for _, field := range []string{"preemptMinRuntime", "reclaimMinRuntime"} {
		if spec.duration(field) != 0 {
			q.lose(spec.at(field), "no counterpart; pods can be evicted at any time")
		}
	}
	if !spec.has("resources") {
		spec.fail("resources", "is required, as in KAI Scheduler, where a queue without it can use nothing")
		return
	}
	amounts := spec.in("resources")
	guarantee := corev1.ResourceList{}
	list := kaiResources(o)
	for _, of := range list {
		of.read(q, amounts.in(of.field), guarantee)
	}
	q.setGuarantee(amounts.path, guarantee)
	q.setKAIWeight(amounts.path, list)
}

// read reads the settings of a resource. The limit becomes part of the capability of the queue.
func (of *kaiResource) read(q *queue, f *fields, guarantee corev1.ResourceList) {
	quota, limit := of.amount(f, "quota"), of.amount(f, "limit")
	of.limit, _ = f.number("limit")
	of.weight, _ = f.number("overQuotaWeight")
	if of.weight < 0 {
		f.fail("overQuotaWeight", "%s is negative", decimal(of.weight))
	}
	if limit != nil {
		if q.spec.Capability == nil {
			q.spec.Capability = corev1.ResourceList{}
		}
		q.spec.Capability[of.name] = *limit
	}
	if quota == nil {
		q.lose(f.at("quota"), "-1 has no counterpart: a Queue has no unlimited guarantee; it has none for %s", of.name)
	} else {
		guarantee[of.name] = *quota
	}
	most, _ := f.number("quota")
	if lending, ok := f.number("lendingLimit"); ok && (most == kaiUnlimited || lending < most) {
		q.lose(f.at("lendingLimit"), "%s has no counterpart: other Queues can borrow the whole guarantee", decimal(lending))
	}
}

// amount returns a quota or a limit; nil if it is unlimited. An amount that is not set is 0.
func (of *kaiResource) amount(f *fields, name string) *resource.Quantity {
	value, _ := f.number(name)
	if value == kaiUnlimited {
		return nil
	}
	amount, err := resource.ParseQuantity(decimal(value) + of.unit)
	if err != nil || value < 0 {
		f.fail(name, "%s is not -1 (unlimited) or an amount", decimal(value))
	}
	return &amount
}

// setKAIWeight sets the weight. If the weights of the resources differ, it is that of gpu, because gpu is what such queues
// share, or the largest one if gpu has none. The weights of resources that the queue cannot use do not count.
func (q *queue) setKAIWeight(path string, list []*kaiResource) {
	var weight float64
	var usable []string
	differ := false
	for i, of := range list {
		if of.limit == 0 {
			continue
		}
		differ = differ || len(usable) > 0 && of.weight != weight
		if of.weight > weight || of.weight > 0 && i == len(list)-1 {
			weight = of.weight
		}
		usable = append(usable, fmt.Sprintf("%s %s", of.field, decimal(of.weight)))
	}
	written := math.Max(1, math.Min(math.MaxUint16, math.Ceil(weight)))
	q.spec.Weight = int32(written)
	switch field := path + ".*.overQuotaWeight"; {
	case len(usable) == 0:
	case weight == 0:
		q.lose(field, "0 has no counterpart: a Queue borrows too; its weight is 1")
	case differ:
		q.lose(field, "a Queue has one weight; it is %d (%s)", q.spec.Weight, strings.Join(usable, ", "))
	case weight != written:
		q.lose(field, "%s is not a whole number from 1 to %d; the weight is %d", decimal(weight), math.MaxUint16, q.spec.Weight)
	}
}
