// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import v1 "k8s.io/api/core/v1"

// ObjectsOf returns the objects of a type, by namespace and name. A node without allocatable resources has its capacity.
func ObjectsOf[T Object](o *Objects) []T {
	var list []T
	for _, obj := range o.sorted() {
		if node, ok := obj.(*v1.Node); ok && node.Status.Allocatable == nil {
			node.Status.Allocatable = node.Status.Capacity
		}
		if typed, ok := obj.(T); ok {
			list = append(list, typed)
		}
	}
	return list
}
