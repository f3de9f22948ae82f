// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// GroupName is the API group of SchedulerConfiguration.
	GroupName = "config.batch-scheduler.dev"

	// APIVersion is the apiVersion of SchedulerConfiguration.
	APIVersion = GroupName + "/v1alpha1"

	// SchedulerConfigurationKind is the kind of SchedulerConfiguration.
	SchedulerConfigurationKind = "SchedulerConfiguration"
)

// SchemeGroupVersion is the group and version of the types in this package.
//
//nolint:gochecknoglobals // generated code uses this variable, and Go has no constants of struct types
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme registers the types of this package and their defaults with the scheme. It never fails; the error is
// there because runtime.SchemeBuilder expects it.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &SchedulerConfiguration{})
	scheme.AddTypeDefaultingFunc(&SchedulerConfiguration{}, func(object any) {
		SetDefaults_SchedulerConfiguration(object.(*SchedulerConfiguration))
	})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
