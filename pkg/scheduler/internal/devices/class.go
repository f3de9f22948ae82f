// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/utils/ptr"
)

// ClassOf returns the class whose devices provide an extended resource; nil if there is none. Of several classes that
// name the same resource it is the newest, and of those the first by name, as for kube-scheduler.
func ClassOf(classes resourcelisters.DeviceClassLister, name v1.ResourceName) *resourcev1.DeviceClass {
	if implicit, ok := implicitClass(name); ok {
		class, err := classes.Get(implicit)
		if err != nil {
			return nil
		}
		return class
	}
	list, err := classes.List(labels.Everything())
	if err != nil {
		return nil
	}
	var best *resourcev1.DeviceClass
	for _, class := range list {
		if ptr.Deref(class.Spec.ExtendedResourceName, "") == string(name) && (best == nil || precedes(class, best)) {
			best = class
		}
	}
	return best
}

// precedes reports whether a provides an extended resource that b names too.
func precedes(a, b *resourcev1.DeviceClass) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return b.CreationTimestamp.Before(&a.CreationTimestamp)
	}
	return a.Name < b.Name
}

// implicitClass returns the class that a resource names, such as gpu for deviceclass.resource.kubernetes.io/gpu.
func implicitClass(name v1.ResourceName) (string, bool) {
	return strings.CutPrefix(string(name), resourcev1.ResourceDeviceClassPrefix)
}

// Implicit reports whether the resource is one that each class has without naming it.
func Implicit(name v1.ResourceName) bool {
	_, ok := implicitClass(name)
	return ok
}
