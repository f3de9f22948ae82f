// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of PodGroup, Queue and Topology.
const GroupName = "scheduling.batch-scheduler.dev"

// SchemeGroupVersion is the group and version of the types in this package.
//
//nolint:gochecknoglobals // generated code uses this variable, and Go has no constants of struct types
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// Kind returns the kind qualified with this package's group.
func Kind(kind string) schema.GroupKind {
	return SchemeGroupVersion.WithKind(kind).GroupKind()
}

// Resource returns the resource, for example "podgroups", qualified with this package's group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

// AddToScheme makes the scheme know the types of this package. It never fails; the error is there because
// runtime.SchemeBuilder asks for it.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&PodGroup{}, &PodGroupList{},
		&Queue{}, &QueueList{},
		&Topology{}, &TopologyList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
