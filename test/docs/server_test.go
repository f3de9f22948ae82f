// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	config "github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// TestAnAPIServerTakesIt applies config/crd, config/default and config/samples as they are, and dry-runs the objects of the
// documentation.
func TestAnAPIServerTakesIt(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	t.Parallel()
	c, err := cluster.Start(t.Context(), cluster.Options{ControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	for _, dir := range []string{"config/crd", "config/default", "config/samples"} {
		if err := c.Apply(t.Context(), filepath.Join(root, dir)); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	create := dryRun(t, c)
	for _, y := range texts(t) {
		if slices.Contains([]string{config.SchedulerConfigurationKind, types.KustomizationKind, scrapeKind, valuesKind, volcanoKind, operatorKind, laterKind}, y.kind) {
			continue
		}
		t.Run(y.at+" "+y.kind, func(t *testing.T) {
			if err := create(y.text); err != nil {
				t.Error(err)
			}
		})
	}
}

// dryRun returns a function that asks the API server whether it would create an object.
func dryRun(t *testing.T, c *cluster.Cluster) func(text string) error {
	t.Helper()
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(discoverer)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	return func(text string) error {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			return err
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			resource = client.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		_, err = resource.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		return err
	}
}
