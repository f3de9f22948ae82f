// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

func TestPosition(t *testing.T) {
	t.Parallel()
	job := func(namespace, name string) v1alpha1.QueuedJob {
		return v1alpha1.QueuedJob{Namespace: namespace, Name: name}
	}
	pods := func(namespace, name string) v1alpha1.QueuedJob {
		return v1alpha1.QueuedJob{Namespace: namespace, Name: name, WithoutPodGroup: true}
	}
	order := func(length int32, first ...v1alpha1.QueuedJob) *v1alpha1.QueueOrder {
		return &v1alpha1.QueueOrder{Length: length, First: first}
	}
	waits := group("team", "train", "research", 8, 0, 8, "Pending", "NotEnoughResources", "")
	runs := group("team", "train", "research", 8, 8, 0, "Running", "Scheduled", "")
	runs.Status.Conditions[0].Status = metav1.ConditionTrue
	incomplete := group("team", "train", "research", 8, 0, 0, "Pending", "NotEnoughPods", "")
	for name, test := range map[string]struct {
		given v1alpha1.PodGroup
		order *v1alpha1.QueueOrder
		want  string
	}{
		"the first":                             {waits, order(2, job("team", "train"), job("other", "a")), "1 of 2 in the order of queue research"},
		"after a PodGroup of another namespace": {waits, order(12, job("other", "train"), job("team", "train")), "2 of 12 in the order of queue research, after other/train"},
		"after pods without a PodGroup":         {waits, order(2, pods("team", "train"), job("team", "train")), "2 of 2 in the order of queue research, after pods of team/train without a PodGroup"},
		"after all that the queue lists":        {waits, order(99, job("team", "a"), job("team", "b")), "after the first 2 of 99 in the order of queue research"},
		"not in a complete list yet":            {waits, order(2, job("team", "a"), job("team", "b")), ""},
		"a queue without an order":              {waits, nil, ""},
		"a PodGroup that has started":           {runs, order(99, job("team", "a")), ""},
		"a PodGroup that is not complete":       {incomplete, order(99, job("team", "a")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "research"}, Status: v1alpha1.QueueStatus{Order: test.order}}
			if diff := cmp.Diff(test.want, show.Position(&test.given, q)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := show.Position(&waits, nil); got != "" {
		t.Errorf("without a queue: %q", got)
	}
}
