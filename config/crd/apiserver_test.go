// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// resource does with an object what the API server does, by the same code.
type resource struct {
	rest.RESTCreateUpdateStrategy
	schema  *structuralschema.Structural
	columns rest.TableConvertor
}

// serve returns the resource of the kind as our CustomResourceDefinition describes it. The definition itself is
// validated too, with the bounds that the API server sets on the cost of its rules.
func serve(t *testing.T, kind string) resource {
	t.Helper()
	plural := strings.ToLower(kind) + "s"
	if kind == "Topology" {
		plural = "topologies"
	}
	file := fmt.Sprintf("%s_%s.yaml", v1alpha1.GroupName, plural)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (make generate writes it)", err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err = yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	crd.Status.StoredVersions = []string{v1alpha1.SchemeGroupVersion.Version}
	var internal apiextensions.CustomResourceDefinition
	if err = apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, &internal, nil); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if errs := apiextensionsvalidation.ValidateCustomResourceDefinition(context.Background(), &internal); len(errs) > 0 {
		t.Fatalf("%s: the API server would refuse it: %v", file, errs.ToAggregate())
	}

	validation := internal.Spec.Validation // with one version it is there, and not in the version
	if validation == nil {
		validation = internal.Spec.Versions[0].Schema
	}
	structural, err := structuralschema.NewStructural(validation.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	validator, _, err := apiservervalidation.NewSchemaValidator(validation.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	columns, err := tableconvertor.New(crd.Spec.Versions[0].AdditionalPrinterColumns)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return resource{
		RESTCreateUpdateStrategy: customresource.NewStrategy(runtime.NewScheme(),
			crd.Spec.Scope == apiextensionsv1.NamespaceScoped, v1alpha1.SchemeGroupVersion.WithKind(kind),
			validator, nil, structural, &apiextensions.CustomResourceSubresourceStatus{}, nil, nil),
		schema:  structural,
		columns: columns,
	}
}

// receive drops unknown fields and fills in the defaults.
func (r resource) receive(obj *unstructured.Unstructured) {
	pruning.Prune(obj.Object, r.schema, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, r.schema)
	defaulting.Default(obj.Object, r.schema)
}

// parse reads an object from one line: its kind, its metadata, and then its fields.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	kind, rest, _ := strings.Cut(text, " ")
	rest = strings.NewReplacer(" spec: ", "\nspec: ", " status: ", "\nstatus: ").Replace("metadata: " + rest)
	object := map[string]any{}
	data, err := yaml.YAMLToJSONStrict([]byte(rest))
	if err == nil {
		err = json.Unmarshal(data, &object)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	obj := &unstructured.Unstructured{Object: object}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha1.GroupName, Version: v1alpha1.SchemeGroupVersion.Version, Kind: kind})
	if kind == "PodGroup" {
		obj.SetNamespace("default")
	}
	data, err = obj.MarshalJSON()
	if err == nil {
		err = obj.UnmarshalJSON(data) // numbers become int64, as in the API server
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return obj
}
