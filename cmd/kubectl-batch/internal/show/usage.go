// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// QueueUsage is what Top shows of a queue, for programs.
type QueueUsage struct {
	Name      string          `json:"name"`
	Weight    int32           `json:"weight"`
	Resources []ResourceUsage `json:"resources"`
}

// ResourceUsage is what a queue has of a resource. An absent guarantee or capability is not set.
type ResourceUsage struct {
	Resource   corev1.ResourceName `json:"resource"`
	Guarantee  *resource.Quantity  `json:"guarantee,omitempty"`
	Deserved   resource.Quantity   `json:"deserved"`
	Allocated  resource.Quantity   `json:"allocated"`
	Pending    resource.Quantity   `json:"pending"`
	Capability *resource.Quantity  `json:"capability,omitempty"`
	// Share is allocated relative to deserved, in percent; absent if nothing is deserved.
	Share *int64 `json:"sharePercent,omitempty"`
}

// Usages returns what Top shows of queues, by name.
func Usages(queues []v1alpha1.Queue) []QueueUsage {
	usages := make([]QueueUsage, len(queues))
	for i := range queues {
		usages[i] = Usage(&queues[i])
	}
	slices.SortFunc(usages, func(a, b QueueUsage) int { return cmp.Compare(a.Name, b.Name) })
	return usages
}

// Usage returns what Top shows of a queue.
func Usage(q *v1alpha1.Queue) QueueUsage {
	u := QueueUsage{Name: q.Name, Weight: q.Spec.Weight, Resources: []ResourceUsage{}}
	for _, name := range resourcesOf(q) {
		r := ResourceUsage{
			Resource: name, Deserved: q.Status.Deserved[name], Allocated: q.Status.Allocated[name], Pending: q.Status.Pending[name],
			Guarantee: set(q.Spec.Guarantee, name), Capability: set(q.Spec.Capability, name),
		}
		if l := levelsOf(q, name); l.deserved > 0 {
			percent := int64(math.Round(100 * l.allocated / l.deserved))
			r.Share = &percent
		}
		u.Resources = append(u.Resources, r)
	}
	return u
}

// set returns the quantity of a resource in a list, or nil if the list does not name it.
func set(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	quantity, named := list[name]
	if !named {
		return nil
	}
	return &quantity
}
