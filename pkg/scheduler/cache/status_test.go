package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// waiting reports that group g and its pod g-0 wait.
func waiting(reason, message string) *api.Report {
	return &api.Report{
		PodGroups: []api.PodGroupReport{{
			Namespace: "default", Name: "g", UID: "group-g", Generation: 1, Phase: v1alpha1.PodGroupPending,
			Pending: 1, Reason: reason, Message: message,
		}},
		Pods: []api.PodReport{{Namespace: "default", Name: "g-0", UID: "pod-g-0", Reason: reason, Message: message}},
	}
}

// counting is of a group with so many pods, and says nothing else that is new.
func counting(pending int32) *api.Report {
	r := onlyGroups(waiting("Unschedulable", "3 nodes"))
	r.PodGroups[0].Pending = pending
	return r
}

func onlyGroups(r *api.Report) *api.Report { return &api.Report{PodGroups: r.PodGroups} }

func onlyPods(r *api.Report) *api.Report { return &api.Report{Pods: r.Pods} }

func queueReport(pending int32) *api.Report {
	return &api.Report{Queues: []api.QueueReport{{
		Name: "default", UID: "queue-default", Status: v1alpha1.QueueStatus{Groups: v1alpha1.QueueGroups{Pending: pending}},
	}}}
}

// TestStatus lets cycles publish, and looks what is written when. The group g has one pod.
func TestStatus(t *testing.T) {
	publish := func(r *api.Report) func(*world) { return func(w *world) { w.Publish(r) } }
	tests := map[string]struct {
		steps map[time.Duration]func(*world)
		want  []string
	}{
		"what a group and its pod wait for is written once, with an event": {
			steps: map[time.Duration]func(*world){
				0:               publish(waiting("Unschedulable", "3 nodes")),
				1 * time.Second: publish(waiting("Unschedulable", "3 nodes")),
				2 * time.Second: publish(waiting("Unschedulable", "3 nodes")),
			},
			want: []string{
				"0s event on PodGroup g: Unschedulable: 3 nodes",
				"0s group g: Pending 1/0, False Unschedulable: 3 nodes",
				"0s pod g-0: False Unschedulable: 3 nodes",
			},
		},
		"counts of a group are written every 2 seconds, the latest only": {
			steps: map[time.Duration]func(*world){
				0:                       publish(onlyGroups(waiting("Unschedulable", "3 nodes"))),
				300 * time.Millisecond:  publish(counting(4)),
				600 * time.Millisecond:  publish(counting(5)),
				2300 * time.Millisecond: publish(counting(6)),
			},
			want: []string{
				"0s event on PodGroup g: Unschedulable: 3 nodes",
				"0s group g: Pending 1/0, False Unschedulable: 3 nodes",
				"2s group g: Pending 5/0, False Unschedulable: 3 nodes",
				"4s group g: Pending 6/0, False Unschedulable: 3 nodes",
			},
		},
		"if no more than numbers of its message change, every 10 seconds": {
			steps: map[time.Duration]func(*world){
				0:                      publish(onlyGroups(waiting("Unschedulable", "3 nodes"))),
				300 * time.Millisecond: publish(onlyGroups(waiting("Unschedulable", "4 nodes"))),
				9 * time.Second:        publish(onlyGroups(waiting("Unschedulable", "5 nodes"))),
				11 * time.Second:       publish(onlyGroups(waiting("Unschedulable", "6 nodes"))),
			},
			want: []string{
				"0s event on PodGroup g: Unschedulable: 3 nodes",
				"0s group g: Pending 1/0, False Unschedulable: 3 nodes",
				"10s group g: Pending 1/0, False Unschedulable: 5 nodes",
				"20s group g: Pending 1/0, False Unschedulable: 6 nodes",
			},
		},
		"numbers that come back are not written at all": {
			steps: map[time.Duration]func(*world){
				0:                      publish(onlyGroups(waiting("Unschedulable", "3 nodes"))),
				300 * time.Millisecond: publish(onlyGroups(waiting("Unschedulable", "4 nodes"))),
				600 * time.Millisecond: publish(onlyGroups(waiting("Unschedulable", "3 nodes"))),
			},
			want: []string{
				"0s event on PodGroup g: Unschedulable: 3 nodes",
				"0s group g: Pending 1/0, False Unschedulable: 3 nodes",
			},
		},
		"another reason is written at once": {
			steps: map[time.Duration]func(*world){
				0:                      publish(onlyGroups(waiting("Unschedulable", "3 nodes"))),
				300 * time.Millisecond: publish(onlyGroups(waiting("QueueFull", "4 cpu"))),
			},
			want: []string{
				"0s event on PodGroup g: Unschedulable: 3 nodes",
				"0s group g: Pending 1/0, False Unschedulable: 3 nodes",
				"300ms event on PodGroup g: QueueFull: 4 cpu",
				"300ms group g: Pending 1/0, False QueueFull: 4 cpu",
			},
		},
		"numbers of a pod are written every 10 seconds": {
			steps: map[time.Duration]func(*world){
				0:               publish(onlyPods(waiting("Unschedulable", "3 nodes"))),
				1 * time.Second: publish(onlyPods(waiting("Unschedulable", "4 nodes"))),
				2 * time.Second: publish(onlyPods(waiting("Unschedulable", "5 nodes"))),
			},
			want: []string{
				"0s pod g-0: False Unschedulable: 3 nodes",
				"10s pod g-0: False Unschedulable: 5 nodes",
			},
		},
		"a queue is written on change": {
			steps: map[time.Duration]func(*world){
				0:                      publish(queueReport(1)),
				300 * time.Millisecond: publish(queueReport(1)),
				600 * time.Millisecond: publish(queueReport(2)),
			},
			want: []string{"0s queue default: 1 pending", "2s queue default: 2 pending"},
		},
		"what somebody else has overwritten is put right": {
			steps: map[time.Duration]func(*world){
				0: publish(onlyPods(waiting("Unschedulable", "3 nodes"))),
				1 * time.Second: func(w *world) {
					w.update("g-0", func(p *v1.Pod) { p.Status.Conditions[0].Reason = "Mistaken" })
				},
			},
			want: []string{"0s pod g-0: False Unschedulable: 3 nodes", "1s pod g-0: False Unschedulable: 3 nodes"},
		},
		"a pod that is bound meanwhile is not told that it waits": {
			steps: map[time.Duration]func(*world){
				0:               publish(onlyPods(waiting("Unschedulable", "3 nodes"))),
				1 * time.Second: publish(onlyPods(waiting("Unschedulable", "4 nodes"))),
				2 * time.Second: func(w *world) { w.place("g", "n1") },
			},
			want: []string{
				"0s pod g-0: False Unschedulable: 3 nodes",
				"2s event on PodGroup g: Scheduled: 1 pod bound",
				"2.02s event on Pod g-0: Scheduled: Successfully assigned default/g-0 to n1",
			},
		},
		"a pod in flight is not told that it waits, however long the flight": {
			steps: map[time.Duration]func(*world){
				0:               publish(onlyPods(waiting("Unschedulable", "3 nodes"))),
				1 * time.Second: publish(onlyPods(waiting("Unschedulable", "4 nodes"))),
				2 * time.Second: func(w *world) {
					w.pods.faults["g-0"] = []fault{{err: errTimeout}}
					w.pods.silent["g-0"] = 1000
					w.place("g", "n1")
				},
			},
			want: []string{"0s pod g-0: False Unschedulable: 3 nodes"},
		},
		"a pod that was bound a moment ago, as the watch will show, is not told either": {
			steps: map[time.Duration]func(*world){
				0: func(w *world) {
					w.update("g-0", func(p *v1.Pod) { p.Spec.NodeName = "n2" })
					w.Publish(onlyPods(waiting("Unschedulable", "3 nodes")))
				},
			},
			want: []string{},
		},
		"a gated pod belongs to the API server": {
			steps: map[time.Duration]func(*world){
				0: func(w *world) {
					w.update("g-0", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "quota"}} })
				},
				1 * time.Second: publish(onlyPods(waiting("Unschedulable", "3 nodes"))),
			},
			want: []string{},
		},
		"a pod that is gone is forgotten": {
			steps: map[time.Duration]func(*world){
				0:               publish(onlyPods(waiting("Unschedulable", "3 nodes"))),
				1 * time.Second: func(w *world) { w.deletePod("g-0") },
				2 * time.Second: publish(onlyPods(waiting("QueueFull", "4 cpu"))),
			},
			want: []string{"0s pod g-0: False Unschedulable: 3 nodes"},
		},
		"a write that fails is tried again until it works": {
			steps: map[time.Duration]func(*world){
				0: func(w *world) {
					failures := 3
					w.batch.PrependReactor("update", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
						failures--
						return failures >= 0, nil, apierrors.NewInternalError(fmt.Errorf("no leader"))
					})
					w.Publish(onlyGroups(waiting("Unschedulable", "3 nodes")))
				},
			},
			want: []string{
				"1.4s event on PodGroup g: Unschedulable: 3 nodes",
				"1.4s group g: Pending 1/0, False Unschedulable: 3 nodes",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, objects(gang("g", 1)), func(w *world) {
				for w.elapsed() < 30*time.Second {
					if step := test.steps[w.elapsed()]; step != nil {
						step(w)
					}
					w.wait(100 * time.Millisecond)
				}
				if diff := cmp.Diff(test.want, w.written()); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestPatience lets reasons to wait come and go, as they do while the pods of a gang arrive.
func TestPatience(t *testing.T) {
	inWorld(t, 1, objects(gang("g", 1)), func(w *world) {
		w.setPatience(time.Second)
		w.Publish(waiting("NotEnoughPods", "1 of 3 pods"))
		w.wait(700 * time.Millisecond)
		w.Publish(waiting("NotEnoughPods", "2 of 3 pods"))
		w.wait(200 * time.Millisecond)
		w.Publish(waiting("Unschedulable", "3 nodes"))
		w.wait(900 * time.Millisecond)
		if got := w.written(); len(got) > 0 {
			t.Errorf("reasons that did not last a second are told: %v", got)
		}
		w.wait(10 * time.Second)
		want := []string{
			"1.9s event on PodGroup g: Unschedulable: 3 nodes",
			"1.9s group g: Pending 1/0, False Unschedulable: 3 nodes",
			"1.9s pod g-0: False Unschedulable: 3 nodes",
		}
		if diff := cmp.Diff(want, w.written()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// TestConditionTimes looks at the moments that a condition tells.
func TestConditionTimes(t *testing.T) {
	inWorld(t, 1, objects(gang("g", 1)), func(w *world) {
		condition := func() metav1.Condition {
			return *meta.FindStatusCondition(w.group("g").Status.Conditions, v1alpha1.ConditionPodGroupScheduled)
		}
		r := waiting("Unschedulable", "3 nodes")
		w.Publish(r)
		w.wait(5 * time.Second)
		first, firstOfPod := condition(), *podScheduled(w.pod("g-0"))
		if first.ObservedGeneration != 1 || firstOfPod.ObservedGeneration != 1 {
			t.Errorf("observed generations %d and %d, want 1", first.ObservedGeneration, firstOfPod.ObservedGeneration)
		}

		r = waiting("QueueFull", "4 cpu")
		w.Publish(r)
		w.wait(5 * time.Second)
		if got := condition(); !got.LastTransitionTime.Equal(&first.LastTransitionTime) || got.Reason != "QueueFull" {
			t.Errorf("another reason moved the time of transition: %v, before %v", got, first)
		}
		if got := podScheduled(w.pod("g-0")); !got.LastTransitionTime.Equal(&firstOfPod.LastTransitionTime) || got.Reason != "QueueFull" {
			t.Errorf("another reason moved the time of transition of the pod: %v, before %v", got, firstOfPod)
		}

		r.PodGroups[0].Scheduled, r.PodGroups[0].Reason = true, v1alpha1.ReasonScheduled
		w.Publish(r)
		w.wait(5 * time.Second)
		if got := condition(); got.LastTransitionTime.Sub(first.LastTransitionTime.Time) != 10*time.Second {
			t.Errorf("the group was scheduled after 10s, its condition says %v, before %v", got, first)
		}
	})
}

// TestStatusesGiveWayToBinds lets many binds and statuses wait at the same time.
func TestStatusesGiveWayToBinds(t *testing.T) {
	inWorld(t, 1, objects(gang("g", 1), gang("b", 8)), func(w *world) {
		w.pods.latency = 100 * time.Millisecond
		w.place("b", "n1")
		w.Publish(onlyGroups(waiting("Unschedulable", "3 nodes")))
		w.wait(10 * time.Second)
		want := []string{
			"200ms group g: Pending 1/0, False Unschedulable: 3 nodes", // slowed down, not starved
			"800ms event on PodGroup g: Unschedulable: 3 nodes",
			"820ms event on PodGroup b: Scheduled: 8 pods bound",
		}
		if diff := cmp.Diff(want, w.written()[:3]); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// TestQuiet publishes the same for a minute, with 20 groups waiting, then starts a second
// scheduler that publishes it once more.
func TestQuiet(t *testing.T) {
	var all []runtime.Object
	r := queueReport(20)
	for i := range 20 {
		name := fmt.Sprintf("g%d", i)
		all = append(all, gang(name, 2)...)
		one := waiting("Unschedulable", "3 nodes")
		one.PodGroups[0].Name, one.PodGroups[0].UID = name, group(name, 1).UID
		for m := range 2 {
			one.Pods[0].Name = fmt.Sprintf("%s-%d", name, m)
			one.Pods[0].UID = member(name, one.Pods[0].Name).UID
			r.Pods = append(r.Pods, one.Pods[0])
		}
		r.PodGroups = append(r.PodGroups, one.PodGroups[0])
	}
	inWorld(t, 1, objects(all), func(w *world) {
		w.Publish(r)
		w.wait(30 * time.Second)
		if n := len(w.written()); n != 20+40+1+20 {
			t.Errorf("%d writes at first, want one for each group, pod and queue, and an event for each group", n)
		}
		for range 60 {
			w.Publish(r)
			w.wait(time.Second)
		}
		if diff := cmp.Diff([]string{}, w.written()); diff != "" {
			t.Errorf("writes in a quiet minute (-want +got):\n%s", diff)
		}
		if w.conflicts != 0 {
			t.Errorf("%d writes were based on what was outdated", w.conflicts)
		}
		if w.woken(); w.Apply() != 0 || w.woken() {
			t.Error("something happened in a quiet minute")
		}
	})
}
