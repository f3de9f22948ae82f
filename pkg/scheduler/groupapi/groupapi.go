// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package groupapi reads and writes the PodGroups of other APIs. Each API has one file with its reader, which converts an
// object to an api.Group, and its status writer, which converts a report to the status of the object. The functions
// depend on nothing but their arguments: the cache watches and patches the objects, simulations read them from files, and
// the kubectl plugin lists them.
package groupapi

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// API is one version of the API of a source.
type API struct {
	Source   api.GroupSource
	Resource schema.GroupVersionResource
	Kind     string
	// StatusSubresource is false if the status is written with the object itself.
	StatusSubresource bool

	read  func(*unstructured.Unstructured) (*api.Group, error)
	shown func(status []byte) (v1alpha1.PodGroupStatus, error)
	// disruption returns the condition of a group that is about to be evicted; it is nil if the API has none.
	disruption func(message string, now metav1.Time) metav1.Condition
	status     func(shown []byte, want *api.PodGroupReport, now metav1.Time) (next []byte, urgent bool, err error)
}

// All returns the APIs that the scheduler reads. If a source has several, they follow each other, preferred ones first.
func All() []*API {
	return []*API{nativeV1beta1(), nativeV1alpha3(), nativeV1alpha2(), compositeV1alpha3(), schedulerPlugins(), volcano(), kai()}
}

// OfKind returns the API with a kind, or nil.
func OfKind(kind schema.GroupVersionKind) *API {
	for _, a := range All() {
		if a.Resource.GroupVersion().WithKind(a.Kind) == kind {
			return a
		}
	}
	return nil
}

// Object is a group of another API.
type Object struct {
	*api.Group
	API       *API
	RawStatus []byte // JSON
}

// Read converts an object. A group that cannot be read is one with a field that is not supported: none of its pods starts.
func (a *API) Read(u *unstructured.Unstructured) *Object {
	g, err := a.read(u)
	if err != nil {
		g = &api.Group{PodGroup: &v1alpha1.PodGroup{}, NotSupported: fmt.Sprintf("the object cannot be read: %v", err)}
	}
	g.Source = a.Source
	g.TypeMeta = metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: a.Kind}
	g.ObjectMeta = metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
		ResourceVersion: u.GetResourceVersion(), Generation: u.GetGeneration(),
		CreationTimestamp: u.GetCreationTimestamp(), OwnerReferences: u.GetOwnerReferences(),
	}
	if queue := u.GetLabels()[v1alpha1.LabelQueue]; queue != "" {
		g.Spec.Queue = queue
	}
	g.ReadRunTime(u.GetAnnotations(), u.GetLabels())
	g.ReadTopology(u.GetAnnotations())
	o := &Object{Group: g, API: a, RawStatus: []byte("{}")}
	if status, found := u.Object["status"]; found {
		if raw, err := json.Marshal(status); err == nil {
			o.RawStatus = raw
		}
	}
	return o
}

// Shown returns what the status of the object shows, in the terms of the PodGroups of this scheduler: the phase, the
// counts, and the condition Scheduled. What the API has no field for is empty, and so is a status that cannot be read.
func (o *Object) Shown() v1alpha1.PodGroupStatus {
	status, err := o.API.shown(o.RawStatus)
	if err != nil {
		return v1alpha1.PodGroupStatus{}
	}
	return status
}

// Status returns the fields of the status that the object should show, as JSON; nil if it shows them. Urgent is false if
// only numbers differ.
func (o *Object) Status(want *api.PodGroupReport, now metav1.Time) (next []byte, urgent bool, err error) {
	return o.API.status(o.RawStatus, want, now)
}

// Disruption returns a strategic merge patch of the status that says that a group is about to be evicted; nil if the API has
// no condition for that.
func (a *API) Disruption(uid types.UID, message string, now metav1.Time) ([]byte, error) {
	if a.disruption == nil {
		return nil, nil
	}
	patch := map[string]any{"metadata": map[string]any{"uid": uid}, "status": map[string]any{"conditions": []metav1.Condition{a.disruption(message, now)}}}
	return json.Marshal(patch)
}

// decode converts an object to its type.
func decode[T any](u *unstructured.Unstructured) (*T, error) {
	typed := new(T)
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed)
}

// change decodes a status, applies a change, and encodes the result; nil if nothing changes. T has the fields that the
// scheduler writes.
func change[T any](shown []byte, apply func(*T)) ([]byte, error) {
	var before, after T
	if err := json.Unmarshal(shown, &before); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(shown, &after); err != nil {
		return nil, err
	}
	apply(&after)
	old, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	next, err := json.Marshal(after)
	if err != nil || string(old) == string(next) {
		return nil, err
	}
	return next, nil
}
