// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// AddOtherGroups lists the PodGroups of other APIs of a cluster, of those that it serves. It lists a source once.
func (o *Objects) AddOtherGroups(ctx context.Context, client dynamic.Interface, sources api.GroupSources) error {
	for _, a := range groupapi.All() {
		if !sources.Has(a.Source) || o.listed[a.Source] {
			continue
		}
		list := client.Resource(a.Resource).List
		err := pager.New(paged(list)).EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
			return o.addOtherGroup(a, obj, "the cluster")
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("listing %s: %w", a.Resource.GroupResource(), err)
		}
		o.listed[a.Source] = err == nil
	}
	return nil
}

func (o *Objects) addOtherGroup(a *groupapi.API, obj runtime.Object, from string) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("%s: unexpected %T", from, obj)
	}
	return o.add(a.Read(u), a.Kind, from)
}

// otherGroup adds the PodGroup of another API that is in a document.
func (o *Objects) otherGroup(a *groupapi.API, document []byte, at string) error {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(document, u); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return o.addOtherGroup(a, u, at)
}

// sourceOf returns the source of a group, or the kind of an owner, with a separator; empty for other objects. Groups of
// different sources and owners of different kinds may have the same name.
func sourceOf(obj Object) string {
	switch obj := obj.(type) {
	case *groupapi.Object:
		return obj.Source.String() + ":"
	case *owner:
		return obj.GetKind() + ":"
	}
	return ""
}
