package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	fieldManager     = "localcluster"
	establishTimeout = 30 * time.Second
	establishPeriod  = 20 * time.Millisecond
)

// Apply renders a kustomize directory and applies its objects as an administrator; see
// ApplyKustomization.
func (c *Cluster) Apply(ctx context.Context, dir string, skipKinds ...string) error {
	return ApplyKustomization(ctx, c.RESTConfig(), dir, skipKinds...)
}

// ApplyKustomization renders a kustomize directory, as "kubectl apply -k" does, and applies
// the objects on the server's side, all but those of the kinds to skip. Custom resource
// definitions go first and are served when it returns; then come namespaces, then the rest
// in the order of the rendering.
//
// For two seconds after a definition is established the API server holds back every create
// of its objects, for two seconds each; that is its own doing. Objects applied here are
// not held back.
func ApplyKustomization(ctx context.Context, config *rest.Config, dir string, skipKinds ...string) error {
	objects, err := render(dir)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return slices.Contains(skipKinds, o.GetKind())
	})
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	applier, err := newApplier(config)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := applier.apply(ctx, object); err != nil {
			return fmt.Errorf("applying %s %s from %s: %w", object.GetKind(), object.GetName(), dir, err)
		}
	}
	return nil
}

func render(dir string) ([]*unstructured.Unstructured, error) {
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

// rank is the turn of an object: definitions, namespaces, the rest.
func rank(o *unstructured.Unstructured) int {
	switch o.GetKind() {
	case "CustomResourceDefinition":
		return 0
	case "Namespace":
		return 1
	}
	return 2
}

// applier applies objects of any kind that the server knows.
type applier struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
}

func newApplier(config *rest.Config) (*applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a dynamic client: %w", err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
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
	if err := established(ctx, resource, object.GetName()); err != nil {
		return err
	}
	a.mapper.Reset()
	return a.served(ctx, object)
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

func established(ctx context.Context, definitions dynamic.ResourceInterface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, establishPeriod, establishTimeout, true, func(ctx context.Context) (bool, error) {
		definition, err := definitions.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
		for _, condition := range conditions {
			fields, ok := condition.(map[string]any)
			if ok && fields["type"] == "Established" && fields["status"] == "True" {
				return true, nil
			}
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("waiting for its being established: %w", err)
	}
	return nil
}

// served waits until objects of the definition can be listed, in each of its versions.
func (a *applier) served(ctx context.Context, definition *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		fields, ok := version.(map[string]any)
		if !ok || fields["served"] != true {
			continue
		}
		name, _, _ := unstructured.NestedString(fields, "name")
		objects := a.client.Resource(schema.GroupVersionResource{Group: group, Version: name, Resource: plural})
		err := wait.PollUntilContextTimeout(ctx, establishPeriod, establishTimeout, true, func(ctx context.Context) (bool, error) {
			_, err := objects.List(ctx, metav1.ListOptions{Limit: 1})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("waiting for its being served: %w", err)
		}
	}
	return nil
}
