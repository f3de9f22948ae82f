// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// IsExtendedResource reports whether a resource is an extended one, such as nvidia.com/gpu: its name has a domain other
// than that of Kubernetes, or names a device class.
func IsExtendedResource(name v1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix)
}

// DeviceClaim is what a resource claim requests of the devices that count, by extended resource.
type DeviceClaim struct {
	// Required is what a node must have for the claim, and Counted what counts in the queue. Both are read only. Counted has
	// more for requests that can get devices that do not count on nodes.
	Required, Counted v1.ResourceList
	// Consumers are the pods that the claim is reserved for.
	Consumers []TaskID
}

// Allocatable returns what a node can allocate: what its status lists, and the devices that device classes provide as
// extended resources. A resource that the status lists comes from a device plugin, and no devices are allocated for it.
func Allocatable(d *Dimensions, node *v1.Node, devices v1.ResourceList) Resource {
	allocatable := d.Vector(node.Status.Allocatable)
	if len(devices) == 0 {
		return allocatable
	}
	provided := d.Vector(devices)
	allocatable = allocatable.grown(len(provided))
	for i, n := range provided {
		if allocatable[i] == 0 {
			allocatable[i] = n
		}
	}
	return allocatable
}
