// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// setStartTimes sets when a PodGroup has started, or will. A PodGroup that has ended keeps its start, also when its pods are
// deleted.
func setStartTimes(status *v1alpha1.PodGroupStatus, want *api.PodGroupReport, now time.Time) {
	ended := want.Phase == v1alpha1.PodGroupFinished || want.Phase == v1alpha1.PodGroupFailed
	if want.Started > 0 {
		started := metav1.NewTime(time.Unix(0, want.Started)).Rfc3339Copy()
		status.StartTime = keepEqual(status.StartTime, &started)
	} else if !ended {
		status.StartTime = nil
	}
	status.EstimatedStartTime = shownEstimate(status.EstimatedStartTime, want.Start.Estimated, now)
	status.LatestStartTime = shownEstimate(status.LatestStartTime, want.Start.Latest, now)
}

// estimateStep is the unit of estimates. Estimates change with each end of a pod, so a change of less than that, or of less than
// one in changeOfWait of the time until then, is no reason for a write.
const (
	estimateStep = time.Minute
	changeOfWait = 20
)

// shownEstimate returns what a status shows of an estimate, in nanoseconds since 1970, if it shows another one: the end of its
// minute, or what it shows already if the two are close. Nil if there is no estimate.
func shownEstimate(shown *metav1.Time, estimate int64, now time.Time) *metav1.Time {
	if estimate <= 0 {
		return nil
	}
	at := time.Unix(0, estimate).UTC()
	if rounded := at.Truncate(estimateStep); rounded.Before(at) {
		at = rounded.Add(estimateStep)
	}
	if shown != nil && at.Sub(shown.Time).Abs() <= max(estimateStep, at.Sub(now)/changeOfWait) {
		return shown
	}
	return &metav1.Time{Time: at}
}

// keepEqual returns a if both are the same time, so that the representation of a time zone is no difference.
func keepEqual(a, b *metav1.Time) *metav1.Time {
	if a.Equal(b) {
		return a
	}
	return b
}
