// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// The first jobs of an order are those of a sorted list.
func TestFirstJobsAgainstSortedList(t *testing.T) {
	highest := func(a, b *api.JobInfo) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	}
	rapid.Check(t, func(t *rapid.T) {
		var o queueOrder
		var twin []*api.JobInfo
		parts := make([]part, rapid.IntRange(1, 5).Draw(t, "parts"))
		n := rapid.IntRange(0, 3*v1alpha1.MaxQueuedJobs).Draw(t, "jobs")
		for i, priority := range rapid.SliceOfN(rapid.Int32Range(0, 9), n, n).Draw(t, "priorities") {
			j := &api.JobInfo{ID: api.JobID(fmt.Sprint(i)), Priority: priority}
			p := &parts[rapid.IntRange(0, len(parts)-1).Draw(t, "part")]
			p.rest = append(p.rest, j)
			if rapid.IntRange(0, 9).Draw(t, "counts") > 0 {
				twin = append(twin, j)
			}
		}
		for _, p := range parts {
			slices.SortFunc(p.rest, highest)
			p.has = func(j *api.JobInfo) bool { return slices.Contains(twin, j) }
			o.add(p)
		}
		o.merge(highest)
		slices.SortFunc(twin, highest)
		twin = twin[:min(len(twin), v1alpha1.MaxQueuedJobs)]
		if diff := gocmp.Diff(ids(twin), ids(o.first)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

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

func ids(jobs []*api.JobInfo) []api.JobID {
	var list []api.JobID
	for _, j := range jobs {
		list = append(list, j.ID)
	}
	return list
}
