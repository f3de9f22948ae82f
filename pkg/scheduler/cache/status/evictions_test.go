// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// evicted returns the condition that the evictor passes on.
func evicted(status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionEvicted, Status: status, Reason: v1alpha1.EvictedByReclaim, Message: message,
		LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
	}
}

func (f *harness) evict(status metav1.ConditionStatus, message string) {
	f.PodGroupEvicted(v1.ObjectReference{Namespace: "default", Name: "g", UID: "group-g"}, evicted(status, message))
}

// TestEvictedCondition: the condition stays when the pods do not exist any more, and says whether the gang runs again.
func TestEvictedCondition(t *testing.T) {
	runs := &api.Report{PodGroups: []api.PodGroupReport{{
		Namespace: "default", Name: "g", UID: "group-g", Generation: 1, Phase: v1alpha1.PodGroupRunning, Running: 1,
		Scheduled: true, Reason: v1alpha1.ReasonScheduled, Message: "all",
	}}}
	gone := onlyGroups(pendingReport(v1alpha1.ReasonNotEnoughPods, "0 of 1"))
	gone.PodGroups[0].Pending = 0
	for name, test := range map[string]struct {
		shown  *metav1.Condition // of an earlier process
		events []func(*harness)
		want   string
	}{
		"the gang does not run": {
			events: []func(*harness){publish(runs), publish(gone), evictGang("first")},
			want:   "True Reclaimed: first; Pending",
		},
		"the eviction is faster than the report of its cycle": {
			events: []func(*harness){publish(runs), evictGang("first"), publish(runs), publish(gone)},
			want:   "True Reclaimed: first; Pending",
		},
		"the gang runs again": {
			events: []func(*harness){publish(runs), evictGang("first"), publish(gone), publish(runs)},
			want:   "False Reclaimed: first; Running",
		},
		"the gang runs again and loses its nodes later": {
			events: []func(*harness){publish(runs), evictGang("first"), publish(gone), publish(runs), publish(gone)},
			want:   "False Reclaimed: first; Pending",
		},
		"the gang is evicted again": {
			events: []func(*harness){publish(runs), evictGang("first"), publish(gone), publish(runs), publish(gone), evictGang("second")},
			want:   "True Reclaimed: second; Pending",
		},
		"surplus pods are evicted, and the gang loses its nodes later": {
			events: []func(*harness){publish(runs), func(f *harness) { f.evict(metav1.ConditionFalse, "surplus") }, publish(runs), publish(gone)},
			want:   "False Reclaimed: surplus; Pending",
		},
		"an eviction by an earlier process, and the gang waits": {
			shown:  conditionOf("earlier"),
			events: []func(*harness){publish(gone)},
			want:   "True Reclaimed: earlier; Pending",
		},
		"an eviction by an earlier process, and the gang runs again": {
			shown:  conditionOf("earlier"),
			events: []func(*harness){publish(runs)},
			want:   "False Reclaimed: earlier; Running",
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(f *harness) {
				if test.shown != nil {
					g := f.get(t)
					g.Status.Conditions = []metav1.Condition{*test.shown}
					if _, err := f.Batch.SchedulingV1alpha1().PodGroups("default").UpdateStatus(t.Context(), g, metav1.UpdateOptions{}); err != nil {
						t.Fatal(err)
					}
					f.wait(time.Minute)
				}
				for _, event := range test.events {
					event(f)
					f.wait(time.Minute)
				}
				g := f.get(t)
				c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEvicted)
				if c == nil {
					t.Fatal("no condition Evicted")
				}
				got := fmt.Sprintf("%s %s: %s; %s", c.Status, c.Reason, c.Message, g.Status.Phase)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestFlushWritesTheLastEviction: a scheduler that stops completes the eviction that it has begun, and its writers have
// ended by then.
func TestFlushWritesTheLastEviction(t *testing.T) {
	run(t, func(f *harness) {
		f.evict(metav1.ConditionTrue, "last") // no report, so that the writer does not write
		f.wait(time.Minute)
		f.Flush(context.WithoutCancel(t.Context())) // that of t is outside of the bubble
		if c := meta.FindStatusCondition(f.get(t).Status.Conditions, v1alpha1.ConditionEvicted); c == nil || c.Message != "last" {
			t.Errorf("condition: %v", c)
		}
	})
}

// TestEvictionsOfDeletedPodGroups: nothing is kept for a PodGroup that was deleted while its pods were evicted.
func TestEvictionsOfDeletedPodGroups(t *testing.T) {
	run(t, func(f *harness) {
		if err := f.Batch.SchedulingV1alpha1().PodGroups("default").Delete(t.Context(), "g", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.wait(time.Minute)
		f.evict(metav1.ConditionTrue, "late")
		if n := len(f.evicted.known); n > 0 {
			t.Errorf("%d evictions are kept", n)
		}
	})
}

func publish(r *api.Report) func(*harness) { return func(f *harness) { f.Publish(r) } }

func evictGang(message string) func(*harness) {
	return func(f *harness) { f.evict(metav1.ConditionTrue, message) }
}

func conditionOf(message string) *metav1.Condition {
	c := evicted(metav1.ConditionTrue, message)
	return &c
}

func (f *harness) get(t *testing.T) *v1alpha1.PodGroup {
	t.Helper()
	g, err := f.Batch.SchedulingV1alpha1().PodGroups("default").Get(t.Context(), "g", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
