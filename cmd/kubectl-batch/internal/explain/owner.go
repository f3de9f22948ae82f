// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Owner reads what there is about the PodGroup of an object of any kind, such as a Job: the one that its pod templates
// name, else the one that it owns. Without such a PodGroup, Owner reads about a pod that the object controls, if possible a
// pending one.
func (r Reader) Owner(ctx context.Context, o *unstructured.Unstructured) (*Facts, error) {
	called := strings.ToLower(o.GetKind()) + "/" + o.GetName()
	names, err := podGroups(o), error(nil)
	if len(names) == 0 {
		names, err = r.ownedGroups(ctx, o)
	}
	switch {
	case err != nil:
		return nil, err
	case len(names) > 1:
		return nil, fmt.Errorf("%s has pods of the PodGroups %s; name one of them", called, strings.Join(names, ", "))
	case len(names) == 1:
		f, missing := r.Group(ctx, names[0])
		if !apierrors.IsNotFound(missing) {
			return f, missing
		}
	}
	pod, err := r.podOf(ctx, o)
	switch {
	case err != nil:
		return nil, err
	case pod != "":
		return r.Pod(ctx, pod)
	case len(names) == 1:
		return nil, fmt.Errorf("%s names PodGroup %q, which does not exist, and controls no pods", called, names[0])
	}
	return nil, fmt.Errorf("%s names no PodGroup and controls no pods; \"kubectl batch why pod/NAME\" explains a pod", called)
}

// ownedGroups returns the names of the PodGroups that an object owns, sorted.
func (r Reader) ownedGroups(ctx context.Context, o *unstructured.Unstructured) ([]string, error) {
	list, err := r.Batch.SchedulingV1alpha1().PodGroups(r.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		owners := list.Items[i].OwnerReferences
		if slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return owner.UID == o.GetUID() }) {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// podOf returns the name of the first pending pod that an object controls, else of its first pod, else nothing.
func (r Reader) podOf(ctx context.Context, o *unstructured.Unstructured) (string, error) {
	pods, err := r.pods(ctx, "")
	if err != nil {
		return "", err
	}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, o) })
	if pending := slices.IndexFunc(pods, func(p corev1.Pod) bool { return waits(&p) }); pending >= 0 {
		return pods[pending].Name, nil
	}
	if len(pods) > 0 {
		return pods[0].Name, nil
	}
	return "", nil
}

// podGroups returns the names of the PodGroups that the pod templates of an object name, sorted. Kinds differ in where
// their templates are, so podGroups looks at all labels and annotations in the spec.
func podGroups(o *unstructured.Unstructured) []string {
	if o.GroupVersionKind().GroupKind() == v1alpha1.Kind("PodGroup") {
		return []string{o.GetName()}
	}
	found := map[string]bool{}
	var visit func(any)
	visit = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			label, _, _ := unstructured.NestedString(value, "labels", v1alpha1.LabelPodGroup)
			annotation, _, _ := unstructured.NestedString(value, "annotations", v1alpha1.AnnotationGroupName)
			if name := cmp.Or(label, annotation); name != "" { // the label takes precedence
				found[name] = true
			}
			for _, field := range value {
				visit(field)
			}
		case []any:
			for _, element := range value {
				visit(element)
			}
		}
	}
	visit(o.Object["spec"])
	return slices.Sorted(maps.Keys(found))
}
