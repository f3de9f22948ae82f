// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package othergroups reads the PodGroups of other APIs from the API server. Most clusters serve none of these APIs: then
// it sends one small request for each of them.
package othergroups

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// Reader reads PodGroups of other APIs. The zero value finds none.
type Reader struct {
	Dynamic   dynamic.Interface
	Discovery discovery.ServerResourcesInterface
}

// Group is a PodGroup of another API, and the object that it was read from.
type Group struct {
	*groupapi.Object
	Raw *unstructured.Unstructured
}

// Read converts an object of an API.
func Read(a *groupapi.API, raw *unstructured.Unstructured) Group { return Group{a.Read(raw), raw} }

// Served returns the APIs that the API server serves, one for each source at most. All authenticated users may ask for
// that. Without it, an API that a user may not read would look like one that does not exist.
func (r Reader) Served(ctx context.Context) ([]*groupapi.API, error) {
	if r.Discovery == nil {
		return nil, nil
	}
	all := groupapi.All()
	served, errs := make([]bool, len(all)), make([]error, len(all))
	var asking sync.WaitGroup
	for i, a := range all {
		asking.Go(func() { served[i], errs[i] = r.serves(a) })
	}
	answered := make(chan struct{})
	go func() {
		asking.Wait()
		close(answered)
	}()
	select { // discovery knows no context
	case <-answered:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var list []*groupapi.API
	known := map[api.GroupSource]bool{}
	for i, a := range all {
		if served[i] && !known[a.Source] {
			known[a.Source] = true
			list = append(list, a)
		}
	}
	return list, cmp.Or(errs...)
}

func (r Reader) serves(a *groupapi.API) (bool, error) {
	list, err := r.Discovery.ServerResourcesForGroupVersion(a.Resource.GroupVersion().String())
	if err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("asking whether %s is served: %w", a.Resource.GroupVersion(), err)
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == a.Resource.Resource {
			return true, nil
		}
	}
	return false, nil
}

// Find returns the groups of a name, in the order of their sources. The error is that of an API that could not be read; the
// groups of the others are returned with it.
func (r Reader) Find(ctx context.Context, namespace, name string) ([]Group, error) {
	apis, err := r.Served(ctx)
	found, errs := make([]*unstructured.Unstructured, len(apis)), make([]error, len(apis))
	var reading sync.WaitGroup
	for i, a := range apis {
		reading.Go(func() {
			found[i], errs[i] = r.Dynamic.Resource(a.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		})
	}
	reading.Wait()
	var groups []Group
	for i, a := range apis {
		switch {
		case errs[i] == nil:
			groups = append(groups, Read(a, found[i]))
		case !apierrors.IsNotFound(errs[i]):
			err = cmp.Or(err, errs[i])
		}
	}
	return groups, err
}
