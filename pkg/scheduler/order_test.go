// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// TestQueuesShowTheOrder: the status of a queue lists the jobs that wait, without the one that starts and the PodGroup that
// has no pods.
func TestQueuesShowTheOrder(t *testing.T) {
	probe := func(context.Context, *framework.Session) error { return nil }
	big := func(name string, priority int32) *v1.Pod {
		p := pod(name)
		p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("5")
		p.Spec.Priority = &priority
		return p
	}
	run(t, shared, probe, func(h *harness) {
		time.Sleep(10 * time.Second)
		q, err := h.batch.SchedulingV1alpha1().Queues().Get(h.ctx, "default", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := &v1alpha1.QueueOrder{Length: 2, First: []v1alpha1.QueuedJob{
			{Namespace: "ns", Name: "high", WithoutPodGroup: true}, {Namespace: "ns", Name: "big", WithoutPodGroup: true},
		}}
		if diff := gocmp.Diff(want, q.Status.Order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	}, node("n"), pod("small"), big("big", 0), big("high", 7))
}
