// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the format of the policy file of the scheduler: the kind SchedulerConfiguration. The comments
// on the fields are the reference in docs/configuration.md.
//
// +k8s:deepcopy-gen=package
// +groupName=config.batch-scheduler.dev
package v1alpha1
