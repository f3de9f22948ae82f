// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/informers/externalversions"
	batchlisters "github.com/batch-scheduler/batch-scheduler/pkg/client/listers/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/events"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest/fakecluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noBinds is the Yield of a scheduler that binds nothing.
func noBinds(context.Context, time.Duration) {}

// harness is running writers and their recorder of events on a fake API server with PodGroup g, which has
// the one pod g-0. It lives in a synctest bubble.
type harness struct {
	*Writers
	*fakecluster.APIServer
}

func run(t *testing.T, test func(*harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := fakecluster.New(t, append(fakecluster.Objects(fakecluster.Gang("g", 1)), &v1alpha1.Topology{
			ObjectMeta: metav1.ObjectMeta{Name: "racks", UID: "topology-racks"},
		})...)
		kube, batch := informers.NewSharedInformerFactory(c.Kube, 0), externalversions.NewSharedInformerFactory(c.Batch, 0)
		log := testr.NewWithOptions(t, testr.Options{Verbosity: 1})
		recorder := events.New(events.Options{
			SchedulerName: fakecluster.SchedulerName, Kube: c.Kube, Yield: noBinds, Clock: clock.RealClock{}, Log: log,
		})
		f := &harness{APIServer: c, Writers: New(Options{
			Kube: c.Kube, Batch: c.Batch,
			PodGroups: batch.Scheduling().V1alpha1().PodGroups().Lister(), Queues: batch.Scheduling().V1alpha1().Queues().Lister(),
			Topologies: topologyLister{batch.Scheduling().V1alpha1().Topologies().Lister()},
			Pods:       kube.Core().V1().Pods().Lister(),
			Events:     recorder, Yield: noBinds, Clock: clock.RealClock{}, Log: log,
		})}
		f.setDebounce(0) // most tests are about other times
		f.observe(t, kube.Core().V1().Pods().Informer())
		f.observe(t, batch.Scheduling().V1alpha1().PodGroups().Informer())
		f.observe(t, batch.Scheduling().V1alpha1().Queues().Informer())
		f.observe(t, batch.Scheduling().V1alpha1().Topologies().Informer())
		ctx, stop := context.WithCancel(t.Context())
		kube.StartWithContext(ctx)
		batch.StartWithContext(ctx)
		done := make(chan struct{})
		go func() {
			f.Run(ctx)
			close(done)
		}()
		go recorder.Run(ctx)
		synctest.Wait()
		test(f)
		stop()
		<-done
		kube.Shutdown()
		batch.Shutdown()
	})
}

// observe passes what an informer shows to the writers, as the cache does.
func (f *harness) observe(t *testing.T, informer toolscache.SharedIndexInformer) {
	t.Helper()
	show := func(obj any, deleted bool) {
		switch o := obj.(type) {
		case *v1.Pod:
			f.ObservePod(o, deleted)
		case *v1alpha1.PodGroup:
			f.ObservePodGroup(o.UID, deleted)
		case *v1alpha1.Queue:
			f.ObserveQueue(o.UID, deleted)
		case *v1alpha1.Topology:
			f.ObserveTopology(o.UID, deleted)
		}
	}
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { show(obj, false) },
		UpdateFunc: func(_, obj any) { show(obj, false) },
		DeleteFunc: func(obj any) { show(obj, true) },
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (f *harness) setDebounce(d time.Duration) { f.podGroups.debounce, f.pods.debounce = d, d }

// wait lets some time pass.
func (f *harness) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

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

// counting returns a report about g that differs only in the number of pending pods.
func counting(pending int32) *api.Report {
	r := onlyGroups(pendingReport("Unschedulable", "3 nodes"))
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

// topologyLister reads topologies as the cache does.
type topologyLister struct {
	batchlisters.TopologyLister
}

func (l topologyLister) Topology(name string) *v1alpha1.Topology {
	topology, err := l.Get(name)
	if err != nil {
		return nil
	}
	return topology
}

func topologyReport(uid types.UID, unlabelled int32) *api.Report {
	return &api.Report{Topologies: []api.TopologyReport{{Name: "racks", UID: uid, Status: v1alpha1.TopologyStatus{
		Levels: []v1alpha1.TopologyLevelStatus{{Name: "rack", Domains: 2, Nodes: 8}}, UnlabelledNodes: unlabelled,
	}}}}
}

// TestWrites publishes reports and compares what is written, and when. PodGroup g has one pod.
func TestWrites(t *testing.T) {
	publish := func(r *api.Report) func(*harness) { return func(f *harness) { f.Publish(r) } }
	tests := map[string]struct {
		steps map[time.Duration]func(*harness)
		want  []string
	}{
		"a reason is written once to the PodGroup and the pod, with an event": {
			steps: map[time.Duration]func(*harness){
				0:               publish(pendingReport("Unschedulable", "3 nodes")),
				1 * time.Second: publish(pendingReport("Unschedulable", "3 nodes")),
				2 * time.Second: publish(pendingReport("Unschedulable", "3 nodes")),
			},
			want: []string{
				"0s event on PodGroup g: Unschedulable: 3 nodes",
				"0s pod g-0: False Unschedulable: 3 nodes",
				"0s podgroup g: Pending 1/0, False Unschedulable: 3 nodes",
			},
		},
		"counts of a PodGroup are written every 2 seconds, the latest only": {
			steps: map[time.Duration]func(*harness){
				0:                       publish(onlyGroups(pendingReport("Unschedulable", "3 nodes"))),
				300 * time.Millisecond:  publish(counting(4)),
				600 * time.Millisecond:  publish(counting(5)),
				2300 * time.Millisecond: publish(counting(6)),
			},
			want: []string{
				"0s event on PodGroup g: Unschedulable: 3 nodes",
				"0s podgroup g: Pending 1/0, False Unschedulable: 3 nodes",
				"2s podgroup g: Pending 5/0, False Unschedulable: 3 nodes",
				"4s podgroup g: Pending 6/0, False Unschedulable: 3 nodes",
			},
		},
		"a message that differs only in numbers is written every 10 seconds": {
			steps: map[time.Duration]func(*harness){
				0:                      publish(onlyGroups(pendingReport("Unschedulable", "3 nodes"))),
				300 * time.Millisecond: publish(onlyGroups(pendingReport("Unschedulable", "4 nodes"))),
				9 * time.Second:        publish(onlyGroups(pendingReport("Unschedulable", "5 nodes"))),
				11 * time.Second:       publish(onlyGroups(pendingReport("Unschedulable", "6 nodes"))),
			},
			want: []string{
				"0s event on PodGroup g: Unschedulable: 3 nodes",
				"0s podgroup g: Pending 1/0, False Unschedulable: 3 nodes",
				"10s podgroup g: Pending 1/0, False Unschedulable: 5 nodes",
				"20s podgroup g: Pending 1/0, False Unschedulable: 6 nodes",
			},
		},
		"numbers that return to the written value are not written": {
			steps: map[time.Duration]func(*harness){
				0:                      publish(onlyGroups(pendingReport("Unschedulable", "3 nodes"))),
				300 * time.Millisecond: publish(onlyGroups(pendingReport("Unschedulable", "4 nodes"))),
				600 * time.Millisecond: publish(onlyGroups(pendingReport("Unschedulable", "3 nodes"))),
			},
			want: []string{
				"0s event on PodGroup g: Unschedulable: 3 nodes",
				"0s podgroup g: Pending 1/0, False Unschedulable: 3 nodes",
			},
		},
		"another reason is written immediately": {
			steps: map[time.Duration]func(*harness){
				0:                      publish(onlyGroups(pendingReport("Unschedulable", "3 nodes"))),
				300 * time.Millisecond: publish(onlyGroups(pendingReport("QueueFull", "4 cpu"))),
			},
			want: []string{
				"0s event on PodGroup g: Unschedulable: 3 nodes",
				"0s podgroup g: Pending 1/0, False Unschedulable: 3 nodes",
				"300ms event on PodGroup g: QueueFull: 4 cpu",
				"300ms podgroup g: Pending 1/0, False QueueFull: 4 cpu",
			},
		},
		"numbers of a pod are written every 10 seconds": {
			steps: map[time.Duration]func(*harness){
				0:               publish(onlyPods(pendingReport("Unschedulable", "3 nodes"))),
				1 * time.Second: publish(onlyPods(pendingReport("Unschedulable", "4 nodes"))),
				2 * time.Second: publish(onlyPods(pendingReport("Unschedulable", "5 nodes"))),
			},
			want: []string{
				"0s pod g-0: False Unschedulable: 3 nodes",
				"10s pod g-0: False Unschedulable: 5 nodes",
			},
		},
		"a Queue is written on change": {
			steps: map[time.Duration]func(*harness){
				0:                      publish(queueReport(1)),
				300 * time.Millisecond: publish(queueReport(1)),
				600 * time.Millisecond: publish(queueReport(2)),
			},
			want: []string{"0s queue default: 1 pending", "2s queue default: 2 pending"},
		},
		"a Topology is written on change": {
			steps: map[time.Duration]func(*harness){
				0:                      publish(topologyReport("topology-racks", 1)),
				300 * time.Millisecond: publish(topologyReport("topology-racks", 1)),
				600 * time.Millisecond: publish(topologyReport("topology-racks", 2)),
			},
			want: []string{"0s topology racks: 1 levels, 1 unlabelled", "2s topology racks: 1 levels, 2 unlabelled"},
		},
		"a Topology that was created again is not written": {
			steps: map[time.Duration]func(*harness){0: publish(topologyReport("topology-before", 1))},
			want:  []string{},
		},
		"a condition that another client overwrites is written again": {
			steps: map[time.Duration]func(*harness){
				0: publish(onlyPods(pendingReport("Unschedulable", "3 nodes"))),
				1 * time.Second: func(f *harness) {
					f.Update("g-0", func(p *v1.Pod) { p.Status.Conditions[0].Reason = "Mistaken" })
				},
			},
			want: []string{"0s pod g-0: False Unschedulable: 3 nodes", "1s pod g-0: False Unschedulable: 3 nodes"},
		},
		"a pod that is bound gets no condition, even before the watch shows it": {
			steps: map[time.Duration]func(*harness){
				0: func(f *harness) {
					f.Update("g-0", func(p *v1.Pod) { p.Spec.NodeName = "n2" })
					f.Publish(onlyPods(pendingReport("Unschedulable", "3 nodes")))
				},
			},
			want: []string{},
		},
		"a gated pod gets no condition": {
			steps: map[time.Duration]func(*harness){
				0: func(f *harness) {
					f.Update("g-0", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "quota"}} })
				},
				1 * time.Second: publish(onlyPods(pendingReport("Unschedulable", "3 nodes"))),
			},
			want: []string{},
		},
		"a deleted pod is forgotten": {
			steps: map[time.Duration]func(*harness){
				0:               publish(onlyPods(pendingReport("Unschedulable", "3 nodes"))),
				1 * time.Second: func(f *harness) { f.DeletePod("g-0") },
				2 * time.Second: publish(onlyPods(pendingReport("QueueFull", "4 cpu"))),
			},
			want: []string{"0s pod g-0: False Unschedulable: 3 nodes"},
		},
		"a write that fails is retried until it succeeds": {
			steps: map[time.Duration]func(*harness){
				0: func(f *harness) {
					failures := 3
					f.Batch.PrependReactor("update", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
						failures--
						return failures >= 0, nil, apierrors.NewInternalError(errors.New("no leader"))
					})
					f.Publish(onlyGroups(pendingReport("Unschedulable", "3 nodes")))
				},
			},
			want: []string{
				"1.4s event on PodGroup g: Unschedulable: 3 nodes",
				"1.4s podgroup g: Pending 1/0, False Unschedulable: 3 nodes",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, func(f *harness) {
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

// TestReasonDebounce publishes reasons that do not last, as happens while the pods of a gang arrive.
func TestReasonDebounce(t *testing.T) {
	run(t, func(f *harness) {
		f.setDebounce(time.Second)
		f.Publish(pendingReport("NotEnoughPods", "1 of 3 pods"))
		f.wait(700 * time.Millisecond)
		f.Publish(pendingReport("NotEnoughPods", "2 of 3 pods"))
		f.wait(200 * time.Millisecond)
		f.Publish(pendingReport("Unschedulable", "3 nodes"))
		f.wait(900 * time.Millisecond)
		if got := f.Written(); len(got) > 0 {
			t.Errorf("reasons that did not last a second are written: %v", got)
		}
		f.wait(10 * time.Second)
		want := []string{
			"1.9s event on PodGroup g: Unschedulable: 3 nodes",
			"1.9s pod g-0: False Unschedulable: 3 nodes",
			"1.9s podgroup g: Pending 1/0, False Unschedulable: 3 nodes",
		}
		if diff := cmp.Diff(want, f.Written()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// TestConditionTimes checks when the transition time of a condition changes.
func TestConditionTimes(t *testing.T) {
	run(t, func(f *harness) {
		condition := func() metav1.Condition {
			return *meta.FindStatusCondition(f.PodGroup("g").Status.Conditions, v1alpha1.ConditionPodGroupScheduled)
		}
		r := pendingReport("Unschedulable", "3 nodes")
		f.Publish(r)
		f.wait(5 * time.Second)
		first, firstOfPod := condition(), *podScheduled(f.Pod("g-0"))
		if first.ObservedGeneration != 1 || firstOfPod.ObservedGeneration != 1 {
			t.Errorf("observed generations %d and %d, want 1", first.ObservedGeneration, firstOfPod.ObservedGeneration)
		}

		r = pendingReport("QueueFull", "4 cpu")
		f.Publish(r)
		f.wait(5 * time.Second)
		if got := condition(); !got.LastTransitionTime.Equal(&first.LastTransitionTime) || got.Reason != "QueueFull" {
			t.Errorf("another reason moved the time of transition: %v, before %v", got, first)
		}
		if got := podScheduled(f.Pod("g-0")); !got.LastTransitionTime.Equal(&firstOfPod.LastTransitionTime) || got.Reason != "QueueFull" {
			t.Errorf("another reason moved the time of transition of the pod: %v, before %v", got, firstOfPod)
		}

		r.PodGroups[0].Scheduled, r.PodGroups[0].Reason = true, v1alpha1.ReasonScheduled
		f.Publish(r)
		f.wait(5 * time.Second)
		if got := condition(); got.LastTransitionTime.Sub(first.LastTransitionTime.Time) != 10*time.Second {
			t.Errorf("the group was scheduled after 10s, its condition says %v, before %v", got, first)
		}
	})
}
