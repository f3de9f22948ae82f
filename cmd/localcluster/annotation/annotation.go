// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package annotation has the annotations with which a pod configures the behaviour of its simulated containers in the
// local cluster. Kubelets read them when the pod starts, except TerminateAfter, which they read when the pod is
// deleted. The package has no imports, so tests and demos can use it without linking a control plane.
package annotation

const (
	// RunFor is how long the containers of the pod run, as a Go duration such as "30s". A pod without it runs until
	// it is deleted, unless it belongs to a Job.
	RunFor = "localcluster.batch-scheduler.dev/run-for"

	// ExitCode is the exit code of every container at the end of RunFor, 0 to 255, default 0. A pod that ends with 0
	// has succeeded, with another code it has failed. The restart policy is ignored.
	ExitCode = "localcluster.batch-scheduler.dev/exit-code"

	// TerminateAfter is how long the containers of the pod take to stop after the pod is deleted or evicted, as a Go
	// duration. The default is 0, whatever the pod's grace period, which is ignored. Then the phase of the pod becomes
	// Failed, and the pod is removed.
	TerminateAfter = "localcluster.batch-scheduler.dev/terminate-after"
)
