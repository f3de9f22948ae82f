// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package typed gives event handlers of informers the type of their objects.
package typed

import (
	"k8s.io/client-go/tools/cache"
)

// Handler returns a handler that calls changed with the objects of one type: before is nil for a new object, after for a
// deleted one.
func Handler[T any](changed func(before, after *T)) cache.ResourceEventHandler {
	typed := func(obj any) *T {
		if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		object, _ := obj.(*T)
		return object
	}
	call := func(before, after *T) {
		if before != nil || after != nil {
			changed(before, after)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { call(nil, typed(obj)) },
		UpdateFunc: func(old, obj any) { call(typed(old), typed(obj)) },
		DeleteFunc: func(obj any) { call(typed(obj), nil) },
	}
}
