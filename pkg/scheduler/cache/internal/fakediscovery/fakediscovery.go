// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package fakediscovery is a fake of the discovery of an API server for tests. Unlike that of client-go, it can change
// while others use it.
package fakediscovery

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Discovery answers which resources are served. The zero value serves none.
type Discovery struct {
	discovery.ServerResourcesInterface // nil: only one of its functions is used

	mu     sync.Mutex
	served []*metav1.APIResourceList
	before func() error
	asked  int
}

// Serve sets what is served.
func (d *Discovery) Serve(list ...*metav1.APIResourceList) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.served = list
}

// Before has a function called before each answer. If it returns an error, that is the answer. Nil calls none.
func (d *Discovery) Before(do func() error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = do
}

// TakeAsked returns how many questions there were since the last call.
func (d *Discovery) TakeAsked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	asked := d.asked
	d.asked = 0
	return asked
}

// ServerResourcesForGroupVersion implements discovery.ServerResourcesInterface.
func (d *Discovery) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	d.mu.Lock()
	d.asked++
	before := d.before
	d.mu.Unlock()
	if before != nil {
		if err := before(); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, list := range d.served {
		if list.GroupVersion == version {
			return list, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
}
