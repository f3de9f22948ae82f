// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package capacity adds up what pods ask for and compares it with what there is. It serves checks
// of the scheduler from outside, and so uses nothing of it.
package capacity

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Request returns what a pod takes of a node: what it asks for, and one of the node's pods. Extended resources for which
// the pod has a claim are devices, which the node does not list.
func Request(p *corev1.Pod) corev1.ResourceList {
	list := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
	if claim := p.Status.ExtendedResourceClaimStatus; claim != nil {
		for _, mapping := range claim.RequestMappings {
			delete(list, corev1.ResourceName(mapping.ResourceName))
		}
	}
	Add(list, corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)})
	return list
}

// Add adds amounts to a sum.
func Add(sum, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		total := sum[name]
		total.Add(amount)
		sum[name] = total
	}
}

// Subtract takes amounts from a sum, which may go below zero.
func Subtract(sum, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		total := sum[name]
		total.Sub(amount)
		sum[name] = total
	}
}

// Excess says in which resource the amounts exceed the limits, in the first by name; empty if in none. What the
// limits do not name is not limited.
func Excess(amounts, limits corev1.ResourceList) string {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		amount, limit := amounts[name], limits[name]
		if amount.Cmp(limit) > 0 {
			return fmt.Sprintf("%s %s of %s", amount.String(), name, limit.String())
		}
	}
	return ""
}

// Lacking says of which resource there is less than asked for; empty if of none. What there is no word of is not there.
func Lacking(asked, there corev1.ResourceList) string {
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		amount, limit := asked[name], there[name]
		if amount.Cmp(limit) > 0 && !amount.IsZero() {
			return fmt.Sprintf("%s %s of %s", amount.String(), name, limit.String())
		}
	}
	return ""
}

// Ended reports whether all containers of a pod have ended, successfully or not.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
