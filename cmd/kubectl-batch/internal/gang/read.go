// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Read reads a Job, with its PodGroup or without, from YAML or JSON, and adds what is missing. An unknown
// field is an error.
func Read(from io.Reader, o Grouping, l Lifetime) (Gang, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(batchv1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()

	var g Gang
	reader := yaml.NewYAMLReader(bufio.NewReader(from))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Gang{}, err
		}
		if empty(document) {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		switch {
		case runtime.IsNotRegisteredError(err):
			return Gang{}, fmt.Errorf("submit accepts a Job and its PodGroup; create the %s with kubectl apply", kindOf(document))
		case err != nil:
			return Gang{}, err
		}
		if err = g.take(object); err != nil {
			return Gang{}, err
		}
	}
	return g, g.finish(o, l)
}

// kindOf returns the kind of an object with its version, such as ResourceClaimTemplate (resource.k8s.io/v1).
func kindOf(document []byte) string {
	var about metav1.TypeMeta
	if err := yaml.Unmarshal(document, &about); err != nil || about.Kind == "" {
		return "other object"
	}
	return fmt.Sprintf("%s (%s)", about.Kind, about.APIVersion)
}

// empty reports whether a document has no content.
func empty(document []byte) bool {
	var content any
	return yaml.Unmarshal(document, &content) == nil && content == nil
}

func (g *Gang) take(object runtime.Object) error {
	switch object := object.(type) {
	case *batchv1.Job:
		if g.Job != nil {
			return errors.New("more than one Job; submit one at a time")
		}
		g.Job = object
	case *v1alpha1.PodGroup:
		if g.Group != nil {
			return errors.New("more than one PodGroup; submit one at a time")
		}
		g.Group = object
	default:
		return fmt.Errorf("a %s is neither a Job nor a PodGroup", object.GetObjectKind().GroupVersionKind().Kind)
	}
	return nil
}

// finish checks what was read as a whole.
func (g *Gang) finish(o Grouping, l Lifetime) error {
	switch {
	case g.Job == nil:
		return errors.New("no Job found")
	case g.Job.Name == "":
		return errors.New("the Job has no name; set metadata.name")
	case g.Group != nil && g.Group.Name == "":
		return errors.New("the PodGroup has no name; set metadata.name")
	case g.Group != nil && o != Grouping{}:
		return errors.New("--queue, --min and --priority-class cannot be combined with a PodGroup in the file; set them there")
	}
	if g.Group != nil && g.Group.Spec.MinMember == 0 {
		g.Group.Spec.MinMember = 1 // as the API server does
	}
	return g.complete(o, l)
}

// In puts the gang into a namespace, or says that it is made for another.
func (g Gang) In(namespace string) error {
	for _, object := range []metav1.Object{g.Job, g.Group} {
		switch object.GetNamespace() {
		case "":
			object.SetNamespace(namespace)
		case namespace:
		default:
			return fmt.Errorf("%s has namespace %s, not %s; use -n %s", object.GetName(), object.GetNamespace(), namespace, object.GetNamespace())
		}
	}
	return nil
}
