// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// resourcesOf returns what there is anything to say of, of a queue.
func resourcesOf(q *v1alpha1.Queue) []corev1.ResourceName {
	all := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{q.Status.Deserved, q.Status.Allocated, q.Status.Pending, q.Spec.Guarantee, q.Spec.Capability} {
		for name, amount := range list {
			all[name] = amount
		}
	}
	return text.Resources(all)
}

// amount words what a list has of a resource, with "-" for what it does not name. Bytes are in powers of
// two, however they were written.
func amount(list corev1.ResourceList, name corev1.ResourceName) string {
	quantity, named := list[name]
	if !named {
		return "-"
	}
	if name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
		quantity = *resource.NewQuantity(quantity.Value(), resource.BinarySI)
	}
	return text.Amount(quantity)
}

// amountOrZero words what a list has of a resource, with 0 for what it does not name: statuses contain no zeros.
func amountOrZero(list corev1.ResourceList, name corev1.ResourceName) string {
	if _, named := list[name]; !named {
		return "0"
	}
	return amount(list, name)
}

// Shares returns the columns of Top as a sentence; empty if the queue has no resources.
func Shares(q *v1alpha1.Queue) string {
	var parts []string
	for _, name := range resourcesOf(q) {
		part := fmt.Sprintf("%s %s of %s deserved", name, amountOrZero(q.Status.Allocated, name), amountOrZero(q.Status.Deserved, name))
		if _, capped := q.Spec.Capability[name]; capped {
			part += ", at most " + amount(q.Spec.Capability, name)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}
