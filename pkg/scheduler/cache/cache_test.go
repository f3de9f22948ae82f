// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	batchfake "github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned/fake"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/bind"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest/fakecluster"
)

// handlers are the handlers of the informers, for tests to call.
type handlers struct {
	pods, nodes, groups, queues, namespaces, classes, volumes toolscache.ResourceEventHandler
}

func newCache(t testing.TB) (*Cache, handlers) {
	kube := fake.NewSimpleClientset()
	c, err := New(Options{
		SchedulerNames: []string{fakecluster.SchedulerName}, DefaultQueue: "default", Kube: kube, Batch: batchfake.NewSimpleClientset(),
		Informers: informers.NewSharedInformerFactory(kube, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, handlers{
		pods: handler(c, podKind(c.options.SchedulerNames)), nodes: handler(c, nodeKind()), groups: handler(c, podGroupKind()),
		queues: handler(c, queueKind()), namespaces: handler(c, namespaceKind()), classes: handler(c, priorityClassKind()),
		volumes: c.externalHandler(),
	}
}

// state returns the content of the model: tasks with status, node and job, then nodes with their idle
// CPU.
func state(m *model.Cluster) []string {
	m.Events().Recompute()
	lines := []string{}
	for _, task := range tasksOf(m) {
		line := fmt.Sprintf("%s %s", task.ID, task.Status)
		if task.Node != nil {
			line += " on " + task.Node.Name
		}
		if task.Job != nil {
			line += fmt.Sprintf(" in %s of %s, priority %d", task.Job.ID, task.Job.QueueName, task.Job.Priority)
		}
		lines = append(lines, line)
	}
	for _, n := range m.Nodes() {
		if n != nil {
			lines = append(lines, fmt.Sprintf("%s idle %d", n.Name, n.Idle.At(api.CPU)))
		}
	}
	return lines
}

func bound(pod *v1.Pod, node string) *v1.Pod {
	return with(pod, func(p *v1.Pod) { p.Spec.NodeName = node })
}

func TestEventsReachTheModelInAnyOrder(t *testing.T) {
	tests := map[string]struct {
		given func(handlers)
		want  []string
	}{
		"a pod before its node": {
			given: func(h handlers) {
				h.pods.OnAdd(bound(member("", "p"), "n1"), true)
				h.nodes.OnAdd(node("n1"), true)
			},
			want: []string{"pod-p Bound on n1 in shadow/default/pod-p/default of default, priority 0", "n1 idle 7000"},
		},
		"a member before its group, the group before its queue": {
			given: func(h handlers) {
				h.pods.OnAdd(member("g", "p"), true)
				g := group("g", 1)
				g.Spec.Queue = "research"
				h.groups.OnAdd(g, true)
				h.queues.OnAdd(queue("research"), true)
			},
			want: []string{"pod-p Pending in group/default/g of research, priority 0"},
		},
		"a group before its priority class": {
			given: func(h handlers) {
				g := group("g", 1)
				g.Spec.PriorityClassName = "high"
				h.groups.OnAdd(g, true)
				h.pods.OnAdd(member("g", "p"), true)
				h.classes.OnAdd(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7}, true)
			},
			want: []string{"pod-p Pending in group/default/g of default, priority 7"},
		},
		"a pod whose deletion was missed": {
			given: func(h handlers) {
				pod := bound(member("", "p"), "n1")
				h.nodes.OnAdd(node("n1"), true)
				h.pods.OnAdd(pod, true)
				h.pods.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "default/p", Obj: pod})
			},
			want: []string{"n1 idle 8000"},
		},
		"a pod that was deleted and created again between two updates": {
			given: func(h handlers) {
				old := bound(member("", "p"), "n1")
				h.nodes.OnAdd(node("n1"), true)
				h.pods.OnAdd(old, true)
				h.pods.OnUpdate(old, with(member("", "p"), func(p *v1.Pod) { p.UID = "second" }))
			},
			want: []string{"second Pending in shadow/default/second/default of default, priority 0", "n1 idle 8000"},
		},
		"the late deletion of a pod whose name is used again": {
			given: func(h handlers) {
				h.pods.OnAdd(with(member("", "p"), func(p *v1.Pod) { p.UID = "second" }), false)
				h.pods.OnDelete(member("", "p"))
			},
			want: []string{"second Pending in shadow/default/second/default of default, priority 0"},
		},
		"a node that returns while an ended pod still names it": {
			given: func(h handlers) {
				pod := bound(member("", "p"), "n1")
				done := with(pod, func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded })
				h.nodes.OnAdd(node("n1"), true)
				h.pods.OnAdd(pod, true)
				h.pods.OnUpdate(pod, done)
				h.nodes.OnDelete(node("n1"))
				h.nodes.OnAdd(node("n1"), false)
				h.pods.OnDelete(done)
				changed := node("n1")
				changed.Labels = map[string]string{"a": "b"}
				h.nodes.OnUpdate(node("n1"), changed)
			},
			want: []string{"n1 idle 8000"},
		},
		"unexpected objects": {
			given: func(h handlers) {
				h.pods.OnAdd(node("n1"), true)
				h.pods.OnAdd(nil, true)
				h.pods.OnAdd((*v1.Pod)(nil), true)
				h.pods.OnUpdate(nil, member("", "p"))
				h.pods.OnDelete("p")
				h.pods.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "default/p"})
				h.nodes.OnDelete(node("unknown"))
				h.groups.OnDelete(group("unknown", 1))
				h.queues.OnDelete(queue("unknown"))
				h.namespaces.OnDelete(&v1.Namespace{})
			},
			want: []string{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, h := newCache(t)
			test.given(h)
			c.Apply()
			if diff := cmp.Diff(test.want, state(c.Model())); diff != "" {
				t.Errorf("model (-want +got):\n%s", diff)
			}
			c.Rebuild()
			if diff := cmp.Diff(test.want, state(c.Model())); diff != "" {
				t.Errorf("rebuilt model (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatWakesTheCycle delivers one event, and checks whether it wakes the cycle and whether it changes
// the model.
func TestWhatWakesTheCycle(t *testing.T) {
	type effect struct{ Wakes, Changes bool }
	update := func(before, after *v1.Pod) func(handlers) { return func(h handlers) { h.pods.OnUpdate(before, after) } }
	ours, theirs := member("", "p"), with(member("", "p"), func(p *v1.Pod) { p.Spec.SchedulerName = "other" })
	gated := with(ours, func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "quota"}} })
	there := bound(ours, "n1")
	phase := func(phase v1.PodPhase) *v1.Pod { return with(there, func(p *v1.Pod) { p.Status.Phase = phase }) }
	withCondition := with(ours, func(p *v1.Pod) { p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Reason: "r"}} })
	labelled := with(ours, func(p *v1.Pod) { p.Labels = map[string]string{v1alpha1.LabelPodGroup: "g"} })
	deleting := with(there, func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)} })
	heartbeat, cordoned := node("n1"), node("n1")
	heartbeat.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, LastHeartbeatTime: metav1.Now()}}
	cordoned.Spec.Unschedulable = true
	beat := heartbeat.DeepCopy()
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(1, 0))
	shown, smaller := group("g", 2), group("g", 1)
	shown.Status.Phase = v1alpha1.PodGroupPending
	labels := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"a": "b"}}}
	versioned := func(v string) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", ResourceVersion: v}}
	}
	tests := map[string]struct {
		before runtime.Object // shown first
		change func(handlers)
		want   effect
	}{
		"a pod to schedule":                 {nil, func(h handlers) { h.pods.OnAdd(ours, false) }, effect{true, true}},
		"a pod of another scheduler":        {nil, func(h handlers) { h.pods.OnAdd(theirs, false) }, effect{false, true}},
		"a gated pod":                       {nil, func(h handlers) { h.pods.OnAdd(gated, false) }, effect{false, true}},
		"a gate that is lifted":             {gated, update(gated, ours), effect{true, true}},
		"a pod that joins a PodGroup":       {ours, update(ours, labelled), effect{true, true}},
		"a condition that was written":      {ours, update(ours, withCondition), effect{false, false}},
		"a bind that is confirmed":          {ours, update(ours, there), effect{false, true}},
		"a pod that begins to run":          {there, update(there, phase(v1.PodRunning)), effect{false, true}},
		"a pod that is being deleted":       {there, update(there, deleting), effect{false, true}},
		"a pod that ends":                   {there, update(there, phase(v1.PodFailed)), effect{true, true}},
		"a deleted foreign pod":             {theirs, func(h handlers) { h.pods.OnDelete(theirs) }, effect{true, true}},
		"a repeated update":                 {ours, update(ours, ours), effect{false, false}},
		"a new node":                        {nil, func(h handlers) { h.nodes.OnAdd(node("n1"), false) }, effect{true, true}},
		"a heartbeat":                       {heartbeat, func(h handlers) { h.nodes.OnUpdate(heartbeat, beat) }, effect{false, false}},
		"a node that is cordoned":           {node("n1"), func(h handlers) { h.nodes.OnUpdate(node("n1"), cordoned) }, effect{true, true}},
		"the status of a PodGroup":          {group("g", 2), func(h handlers) { h.groups.OnUpdate(group("g", 2), shown) }, effect{false, false}},
		"a PodGroup with a smaller minimum": {group("g", 2), func(h handlers) { h.groups.OnUpdate(group("g", 2), smaller) }, effect{true, true}},
		"a new queue":                       {nil, func(h handlers) { h.queues.OnAdd(queue("q"), false) }, effect{true, true}},
		"labels of a namespace":             {&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, func(h handlers) { h.namespaces.OnUpdate(&v1.Namespace{}, labels) }, effect{true, true}},
		"a storage class that changes":      {nil, func(h handlers) { h.volumes.OnUpdate(versioned("1"), versioned("2")) }, effect{true, true}},
		"a storage class shown again":       {nil, func(h handlers) { h.volumes.OnUpdate(versioned("2"), versioned("2")) }, effect{false, false}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, h := newCache(t)
			switch before := test.before.(type) {
			case *v1.Pod:
				h.pods.OnAdd(before, true)
			case *v1.Node:
				h.nodes.OnAdd(before, true)
			case *v1alpha1.PodGroup:
				h.groups.OnAdd(before, true)
			case *v1.Namespace:
				h.namespaces.OnAdd(before, true)
			}
			c.Apply()
			f := &harness{Cache: c}
			f.woken()
			generation := c.Model().Generations().Model
			test.change(h)
			woken := f.woken()
			c.Apply()
			got := effect{woken, c.Model().Generations().Model != generation}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestExternalObjectsWakeTheCycle creates objects that are not in the model.
func TestExternalObjectsWakeTheCycle(t *testing.T) {
	name := metav1.ObjectMeta{Name: "n"}
	objects := map[string]runtime.Object{
		"claim":      &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "n"}},
		"volume":     &v1.PersistentVolume{ObjectMeta: name},
		"class":      &storagev1.StorageClass{ObjectMeta: name},
		"node":       &storagev1.CSINode{ObjectMeta: name},
		"driver":     &storagev1.CSIDriver{ObjectMeta: name},
		"capacity":   &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "n"}},
		"attachment": &storagev1.VolumeAttachment{ObjectMeta: name},
	}
	for name, object := range objects {
		t.Run(name, func(t *testing.T) {
			run(t, 1, nil, func(f *harness) {
				f.woken()
				generation := f.Model().Generations().Model
				f.Create(object)
				f.converge()
				if !f.woken() || f.Model().Generations().Model == generation {
					t.Error("no cycle")
				}
			})
		})
	}
}

func TestVanishedPodLeavesTheModelBeforeTheWatchShowsIt(t *testing.T) {
	c, h := newCache(t)
	h.pods.OnAdd(member("", "p"), true)
	results{c}.PodVanished(&bind.Request{Namespace: "default", Name: "p", UID: "pod-p"})
	c.Apply()
	if diff := cmp.Diff([]string{}, state(c.Model())); diff != "" {
		t.Errorf("model (-want +got):\n%s", diff)
	}
	c.Rebuild()
	if diff := cmp.Diff([]string{}, state(c.Model())); diff != "" {
		t.Errorf("rebuilt model (-want +got):\n%s", diff)
	}
}

func TestRepeatedUpdateIsNoEvent(t *testing.T) {
	c, h := newCache(t)
	pod := with(member("", "p"), func(p *v1.Pod) { p.ResourceVersion = "7" })
	h.pods.OnAdd(pod, true)
	h.pods.OnUpdate(pod, pod.DeepCopy())
	if n := c.Apply(); n != 1 {
		t.Errorf("%d events, want the first one only", n)
	}
}

func TestObjectThatPanicsTheModelIsLeftOut(t *testing.T) {
	c, h := newCache(t)
	h.nodes.OnAdd(node("n1"), true)
	h.pods.OnAdd(bound(member("", "good"), "n1"), true)
	c.Apply()
	pods := podKind(c.options.SchedulerNames)
	set := pods.set
	pods.set = func(c *Cache, pod *v1.Pod) {
		set(c, pod)
		if pod.Name == "odd" {
			panic("cannot do that")
		}
	}
	broken := handler(c, pods)
	broken.OnAdd(bound(member("", "odd"), "n1"), false)
	broken.OnAdd(bound(member("", "other"), "n1"), false)
	if n := c.Apply(); n != 2 {
		t.Errorf("applied %d events, want 2", n)
	}
	want := []string{
		"pod-good Bound on n1 in shadow/default/pod-good/default of default, priority 0",
		"pod-other Bound on n1 in shadow/default/pod-other/default of default, priority 0",
		"n1 idle 6000",
	}
	if diff := cmp.Diff(want, state(c.Model())); diff != "" {
		t.Errorf("model (-want +got):\n%s", diff)
	}
}

// TestRebuildKeepsBindsInFlight rebuilds the model while a gang is bound.
func TestRebuildKeepsBindsInFlight(t *testing.T) {
	run(t, 1, append(objects(gang("g", 2)), bound(member("", "old"), "n2")), func(f *harness) {
		f.Faults.Latency = time.Second
		f.place("g", "n1")
		f.wait(1500 * time.Millisecond)
		before := append(f.describe(), state(f.Model())...)
		f.Rebuild()
		if diff := cmp.Diff(before, append(f.describe(), state(f.Model())...)); diff != "" {
			t.Errorf("model after rebuilding (-before +after):\n%s", diff)
		}
		want := []string{"g-0 Bound n1", "g-1 Binding n1 in flight", "old Bound n2"}
		if diff := cmp.Diff(want, f.describe()); diff != "" {
			t.Errorf("model (-want +got):\n%s", diff)
		}
		f.wait(time.Second)
		want[1] = "g-1 Bound n1"
		if diff := cmp.Diff(want, f.describe()); diff != "" {
			t.Errorf("model after the bind (-want +got):\n%s", diff)
		}
	})
}

func TestStartErrorNamesTheMissingResources(t *testing.T) {
	refuse := func(err error) clienttesting.ReactionFunc {
		return func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
	}
	tests := map[string]struct {
		given func(*harness)
		want  string
	}{
		"custom resources that are not installed": {
			given: func(f *harness) {
				f.Batch.PrependReactor("list", "queues", refuse(apierrors.NewNotFound(v1alpha1.Resource("queues"), "")))
			},
			want: `not synced with the API server: queues (failed to list *v1alpha1.Queue: queues.scheduling.batch-scheduler.dev "" not found; ` +
				`the custom resources are not installed: kubectl apply -k config/crd): context deadline exceeded`,
		},
		"a role that does not allow it": {
			given: func(f *harness) {
				f.Kube.PrependReactor("list", "nodes", refuse(apierrors.NewForbidden(v1.Resource("nodes"), "", fmt.Errorf("no"))))
			},
			want: `not synced with the API server: nodes (failed to list *v1.Node: nodes is forbidden: no; ` +
				`the scheduler's ClusterRole does not allow it, or the API server has just been started and has not read it yet: kubectl apply -k config/default): context deadline exceeded`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newHarness(t, Options{}, nil)
				test.given(f)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := f.Start(ctx)
				if err == nil {
					t.Fatal("started")
				}
				if diff := cmp.Diff(test.want, err.Error()); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				if f.Synced() {
					t.Error("Synced before Start has succeeded")
				}
			})
		})
	}
}

func TestModelIsCompleteWhenSynced(t *testing.T) {
	run(t, 1, objects(gang("g", 3)), func(f *harness) {
		if !f.Synced() {
			t.Error("not synced after Start")
		}
		if diff := cmp.Diff([]string{"g-0 Pending", "g-1 Pending", "g-2 Pending"}, f.describe()); diff != "" {
			t.Errorf("model (-want +got):\n%s", diff)
		}
	})
}

func TestNewRefusesMissingOptions(t *testing.T) {
	kube := fake.NewSimpleClientset()
	whole := Options{
		SchedulerNames: []string{fakecluster.SchedulerName}, DefaultQueue: "default", Kube: kube, Batch: batchfake.NewSimpleClientset(),
		Informers: informers.NewSharedInformerFactory(kube, 0),
	}
	tests := map[string]struct {
		given func(*Options)
		want  string
	}{
		"no scheduler name": {func(o *Options) { o.SchedulerNames = nil }, "no scheduler name"},
		"no default queue":  {func(o *Options) { o.DefaultQueue = "" }, "no default queue"},
		"no client":         {func(o *Options) { o.Kube = nil }, "missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := whole
			test.given(&o)
			if _, err := New(o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one about %q", err, test.want)
			}
		})
	}
}

// BenchmarkApply applies 5,000 nodes and 100,000 bound pods of 1,000 PodGroups, then an update of every
// pod when it starts to run, then one with another condition.
func BenchmarkApply(b *testing.B) {
	const nodes, groups, members = 5000, 1000, 100
	var pods, running, withCondition []*v1.Pod
	for g := range groups {
		for i := range members {
			pod := bound(member(fmt.Sprintf("g%d", g), fmt.Sprintf("g%d-%d", g, i)), fmt.Sprintf("n%d", (g*members+i)%nodes))
			pods = append(pods, pod)
			run := with(pod, func(p *v1.Pod) { p.Status.Phase = v1.PodRunning })
			running = append(running, run)
			withCondition = append(withCondition, with(run, func(p *v1.Pod) { p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady}} }))
		}
	}
	allocatable := v1.ResourceList{v1.ResourceCPU: resource.MustParse("32"), v1.ResourcePods: resource.MustParse("110")}
	for b.Loop() {
		c, h := newCache(b)
		for i := range nodes {
			n := node(fmt.Sprintf("n%d", i))
			n.Status.Allocatable = allocatable
			h.nodes.OnAdd(n, true)
		}
		for g := range groups {
			h.groups.OnAdd(group(fmt.Sprintf("g%d", g), members), true)
		}
		h.queues.OnAdd(queue("default"), true)
		measure := func(name string) {
			began := time.Now()
			n := c.Apply()
			c.Model().Events().Recompute()
			b.ReportMetric(time.Since(began).Seconds(), name+"-s")
			b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(n), name+"-ns/event")
		}
		for _, pod := range pods {
			h.pods.OnAdd(pod, true)
		}
		measure("start")
		for i := range pods {
			h.pods.OnUpdate(pods[i], running[i])
		}
		measure("running")
		for i := range pods {
			h.pods.OnUpdate(running[i], withCondition[i])
		}
		measure("withCondition")
	}
}
