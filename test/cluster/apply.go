// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	fieldManager = "localcluster"
	readyTimeout = 30 * time.Second
	readyPeriod  = 20 * time.Millisecond
)

// Apply renders a kustomize directory and applies its objects as an administrator; see
// ApplyKustomization.
func (c *Cluster) Apply(ctx context.Context, dir string, skipKinds ...string) error {
	return ApplyKustomization(ctx, c.RESTConfig(), dir, skipKinds...)
}

// ApplyKustomization renders a kustomize directory, as "kubectl apply -k" does, and applies the objects with
// server-side apply, except those of the kinds to skip. Custom resource definitions are applied first and are served
// when it returns; then namespaces, then the rest in the order of the rendering.
//
// For two seconds after a definition is established the API server delays every create of its objects by two seconds.
// Objects applied here are not delayed.
func ApplyKustomization(ctx context.Context, config *rest.Config, dir string, skipKinds ...string) error {
	objects, err := Render(dir)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return slices.Contains(skipKinds, o.GetKind())
	})
	if err := ApplyObjects(ctx, config, objects); err != nil {
		return fmt.Errorf("applying %s: %w", dir, err)
	}
	return nil
}

// ApplyObjects applies objects as ApplyKustomization does.
func ApplyObjects(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	applier, err := newApplier(config)
	if err != nil {
		return err
	}
	for _, object := range inOrder(objects) {
		if err := applier.apply(ctx, object); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// DeleteObjects deletes objects in the reverse order of ApplyObjects. It does not wait for the deletions.
func DeleteObjects(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	applier, err := newApplier(config)
	if err != nil {
		return err
	}
	for _, object := range slices.Backward(inOrder(objects)) {
		resource, err := applier.resource(object)
		if err == nil {
			err = resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
		}
		if err != nil {
			return fmt.Errorf("deleting %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func inOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return sorted
}

// Render returns the objects of a kustomize directory.
func Render(dir string) ([]*unstructured.Unstructured, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", dir, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		content, err := resource.Map()
		if err != nil {
			return nil, fmt.Errorf("rendering %s of %s: %w", resource.CurId(), dir, err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects, nil
}

// rank is the position of an object: definitions, namespaces, the rest.
func rank(o *unstructured.Unstructured) int {
	switch o.GetKind() {
	case "CustomResourceDefinition":
		return 0
	case "Namespace":
		return 1
	}
	return 2
}

// applier applies objects of any kind that the server serves.
type applier struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
}

func newApplier(config *rest.Config) (*applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a dynamic client: %w", err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(typed.Discovery()))
	return &applier{client: client, mapper: mapper}, nil
}

func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := a.resource(object)
	if err != nil {
		return err
	}
	_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return err
	}
	if object.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	return a.ready(ctx, resource, object.GetName())
}

func (a *applier) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	resource := a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return resource, nil
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return resource.Namespace(namespace), nil
}

// ready waits until the definition is established and the server serves each of its versions.
func (a *applier) ready(ctx context.Context, definitions dynamic.ResourceInterface, name string) error {
	definition, err := established(ctx, definitions, name)
	if err != nil {
		return err
	}
	for _, version := range definition.Spec.Versions {
		if !version.Served {
			continue
		}
		kind := schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
		err := wait.PollUntilContextTimeout(ctx, readyPeriod, readyTimeout, true, func(ctx context.Context) (bool, error) {
			return a.serves(ctx, kind, version.Name)
		})
		if err != nil {
			return fmt.Errorf("waiting until its objects can be listed: %w", err)
		}
	}
	return nil
}

func (a *applier) serves(ctx context.Context, kind schema.GroupKind, version string) (bool, error) {
	a.mapper.Reset() // it caches kinds that it did not find
	mapping, err := a.mapper.RESTMapping(kind, version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = a.client.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func established(ctx context.Context, definitions dynamic.ResourceInterface, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	err := wait.PollUntilContextTimeout(ctx, readyPeriod, readyTimeout, true, func(ctx context.Context) (bool, error) {
		object, err := definitions.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition); err != nil {
			return false, err
		}
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting until it is established: %w", err)
	}
	return definition, nil
}
