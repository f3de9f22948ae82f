// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Limit sets spec.maximumExecutionTimeSeconds of a group.
func Limit(d time.Duration) Part {
	return groupOption(func(of *declaration) { of.runTime.maximum = secondsOf(d) })
}

// Expected sets spec.expectedExecutionTimeSeconds of a group.
func Expected(d time.Duration) Part {
	return groupOption(func(of *declaration) { of.runTime.expected = secondsOf(d) })
}

// OnOverrun sets spec.onOverrun of a group.
func OnOverrun(p v1alpha1.OverrunPolicy) Part {
	return groupOption(func(of *declaration) { of.runTime.overrun = p })
}

// Deadline sets activeDeadlineSeconds of pods.
func Deadline(d time.Duration) PodOption {
	return Mutate(func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To(int64(d / time.Second)) })
}

// ExecutionTime sets spec.executionTime of a queue; zero for what is not set.
func ExecutionTime(standard, longest time.Duration) QueueOption {
	return func(_ *Scenario, q *v1alpha1.Queue) {
		q.Spec.ExecutionTime = &v1alpha1.QueueExecutionTime{Default: secondsOf(standard), Maximum: secondsOf(longest)}
	}
}

// UnavailableFrom sets from when a node is not available, after the creation of the first object.
func UnavailableFrom(d time.Duration) NodeOption {
	return nodeOption(func(n *v1.Node) {
		n.Annotations[v1alpha1.AnnotationUnavailableFrom] = epoch.Add(d).Format(time.RFC3339)
	})
}

// runTime is what a group declares.
type runTime struct {
	maximum, expected *int32
	overrun           v1alpha1.OverrunPolicy
}

func (r runTime) applyTo(s *v1alpha1.PodGroupSpec) {
	s.MaximumExecutionTimeSeconds, s.ExpectedExecutionTimeSeconds, s.OnOverrun = r.maximum, r.expected, r.overrun
}

func secondsOf(d time.Duration) *int32 {
	if d == 0 {
		return nil
	}
	return ptr.To(int32(d / time.Second))
}
