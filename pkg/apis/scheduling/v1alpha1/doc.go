// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API objects of the scheduler, PodGroup and Queue, and the labels and annotations
// by which pods refer to them. The comments on the fields are what "kubectl explain" prints.
//
// +k8s:deepcopy-gen=package
// +groupName=scheduling.batch-scheduler.dev
package v1alpha1
