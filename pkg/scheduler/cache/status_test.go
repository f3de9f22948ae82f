// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest/fakecluster"
)

// pendingReport returns a report that PodGroup g and its pod g-0 are pending.
func pendingReport(reason, message string) *api.Report {
	return &api.Report{
		PodGroups: []api.PodGroupReport{{
			Namespace: "default", Name: "g", UID: "group-g", Generation: 1, Phase: v1alpha1.PodGroupPending,
			Pending: 1, Reason: reason, Message: message,
		}},
		Pods: []api.PodReport{{Namespace: "default", Name: "g-0", UID: "pod-g-0", Reason: reason, Message: message}},
	}
}

// TestNoConditionForABoundPod publishes that a pod is pending, and binds it afterwards. The pod gets no
// further condition.
func TestNoConditionForABoundPod(t *testing.T) {
	publish := func(r *api.Report) func(*harness) { return func(f *harness) { f.Publish(r) } }
	onlyPod := func(message string) *api.Report {
		return &api.Report{Pods: pendingReport("Unschedulable", message).Pods}
	}
	tests := map[string]struct {
		steps map[time.Duration]func(*harness)
		want  []string
	}{
		"a pod that is bound meanwhile": {
			steps: map[time.Duration]func(*harness){
				0:                       publish(onlyPod("3 nodes")),
				1500 * time.Millisecond: publish(onlyPod("4 nodes")),
				2 * time.Second:         func(f *harness) { f.place("g", "n1") },
			},
			want: []string{
				"1s pod g-0: False Unschedulable: 3 nodes",
				"2s event on PodGroup g: Scheduled: 1 pod bound",
				"2.02s event on Pod g-0: Scheduled: Successfully assigned default/g-0 to n1",
			},
		},
		"a pod in flight, whatever the time until the bind succeeds": {
			steps: map[time.Duration]func(*harness){
				0:                       publish(onlyPod("3 nodes")),
				1500 * time.Millisecond: publish(onlyPod("4 nodes")),
				2 * time.Second: func(f *harness) {
					f.Faults.Bind["g-0"] = []fault{{Err: fakecluster.ErrTimeout}}
					f.Faults.Get["g-0"] = 1000
					f.place("g", "n1")
				},
			},
			want: []string{"1s pod g-0: False Unschedulable: 3 nodes"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, 1, objects(gang("g", 1)), func(f *harness) {
				for f.Elapsed() < 30*time.Second {
					if step := test.steps[f.Elapsed()]; step != nil {
						step(f)
					}
					f.wait(100 * time.Millisecond)
				}
				if diff := cmp.Diff(test.want, f.Written()); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestOverwrittenConditionIsWrittenAgain changes the condition of a pod as another client would: the informer's
// handler passes the change to the status writers.
func TestOverwrittenConditionIsWrittenAgain(t *testing.T) {
	run(t, 1, objects(gang("g", 1)), func(f *harness) {
		f.Publish(&api.Report{Pods: pendingReport("Unschedulable", "3 nodes").Pods})
		f.wait(2 * time.Second)
		f.Update("g-0", func(p *v1.Pod) { p.Status.Conditions[0].Reason = "Mistaken" })
		f.wait(10 * time.Second)
		want := []string{"1s pod g-0: False Unschedulable: 3 nodes", "2s pod g-0: False Unschedulable: 3 nodes"}
		if diff := cmp.Diff(want, f.Written()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// TestStatusYieldsToBinds queues binds, a status and events at the same time.
func TestStatusYieldsToBinds(t *testing.T) {
	run(t, 1, objects(gang("g", 1), gang("b", 4)), func(f *harness) {
		f.Faults.Latency = 320 * time.Millisecond
		f.place("b", "n1")
		f.Publish(&api.Report{PodGroups: pendingReport("Unschedulable", "3 nodes").PodGroups})
		f.wait(10 * time.Second)
		want := []string{
			"1.2s podgroup g: Pending 1/0, False Unschedulable: 3 nodes", // due at 1s, slowed down but not starved
			"1.28s event on PodGroup g: Unschedulable: 3 nodes",
			"1.3s event on PodGroup b: Scheduled: 4 pods bound",
		}
		if diff := cmp.Diff(want, f.Written()[:3]); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// TestEqualReportsCauseNoWrites publishes equal reports about 20 pending gangs for a minute.
func TestEqualReportsCauseNoWrites(t *testing.T) {
	var all []runtime.Object
	r := &api.Report{Queues: []api.QueueReport{{
		Name: "default", UID: "queue-default", Status: v1alpha1.QueueStatus{Groups: v1alpha1.QueueGroups{Pending: 20}},
	}}}
	for i := range 20 {
		name := fmt.Sprintf("g%d", i)
		all = append(all, gang(name, 2)...)
		one := pendingReport("Unschedulable", "3 nodes")
		one.PodGroups[0].Name, one.PodGroups[0].UID = name, group(name, 1).UID
		for m := range 2 {
			one.Pods[0].Name = fmt.Sprintf("%s-%d", name, m)
			one.Pods[0].UID = member(name, one.Pods[0].Name).UID
			r.Pods = append(r.Pods, one.Pods[0])
		}
		r.PodGroups = append(r.PodGroups, one.PodGroups[0])
	}
	run(t, 1, objects(all), func(f *harness) {
		f.Publish(r)
		f.wait(30 * time.Second)
		if n := len(f.Written()); n != 20+40+1+20 {
			t.Errorf("%d writes at first, want one for each PodGroup, pod and Queue, and an event for each PodGroup", n)
		}
		for range 60 {
			f.Publish(r)
			f.wait(time.Second)
		}
		if diff := cmp.Diff([]string{}, f.Written()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		if f.Conflicts() != 0 {
			t.Errorf("%d writes had a conflict", f.Conflicts())
		}
		if f.woken(); f.Apply() != 0 || f.woken() {
			t.Error("an equal report caused an event")
		}
	})
}
