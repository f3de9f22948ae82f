// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// setClock is a clock whose wall time the test sets, while its monotonic time does not change. The clock of
// the API server, which is Go's in these tests, is not affected.
type setClock struct {
	clock.RealClock
	ahead atomic.Int64 // of Go's clock
}

func (c *setClock) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

// Now returns a time with a wall and a monotonic reading, as time.Now does outside of bubbles. No function
// makes one, so it is made of its bits.
func (c *setClock) Now() time.Time {
	now := time.Now()
	shown := now.Add(time.Duration(c.ahead.Load()))
	seconds := shown.Unix() - time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	bits := struct {
		wall uint64
		ext  int64
		loc  *time.Location
	}{1<<63 | uint64(seconds)<<30 | uint64(shown.Nanosecond()), now.UnixNano(), nil}
	return *(*time.Time)(unsafe.Pointer(&bits))
}

func (c *setClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func TestSetClock(t *testing.T) {
	var c setClock
	before := c.Now()
	if shown := before.Round(0); time.Since(shown).Abs() > time.Minute {
		t.Fatalf("the clock shows %s, which is not now", shown)
	}
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		c.set(ahead)
		after := c.Now()
		if shown := after.Round(0).Sub(before.Round(0)).Round(time.Minute); shown != ahead {
			t.Errorf("the clock shows %s more, want %s", shown, ahead)
		}
		if passed := after.Sub(before); passed < 0 || passed > time.Minute {
			t.Errorf("%s have passed, want less than a minute", passed)
		}
	}
}

const evicting = `
actions: "probe, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: nodeorder}]
`

// TestClockIsSetDuringPreemption evicts two pods for others, and sets the clock while these are nominated.
func TestClockIsSetDuringPreemption(t *testing.T) {
	const grace = 100 * time.Second
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		for name, test := range map[string]struct {
			stay  bool // the pods exceed their grace period
			after time.Duration
			want  []string
		}{
			"no further pod is evicted during the grace period":  {false, grace - time.Second, []string{"c", "d"}},
			"the preemptors are bound after the grace period":    {false, grace + time.Second, []string{"c", "d"}},
			"pods that exceed their grace period are waited for": {true, grace + 29*time.Second, []string{"c", "d"}},
			"30 seconds later other pods are evicted":            {true, grace + 35*time.Second, []string{"a", "b", "c", "d"}},
		} {
			t.Run(name+", clock ahead by "+ahead.String(), func(t *testing.T) {
				probe := func(context.Context, *framework.Session) error { return nil }
				run(t, evicting, probe, func(h *harness) {
					e := &evictions{harness: h, grace: grace, stay: test.stay}
					h.kube.PrependReactor("create", "pods", e.evict)
					for _, name := range []string{"u-1", "u-2"} {
						u := pod(name)
						u.Spec.PriorityClassName, u.Spec.Priority = "urgent", ptr.To[int32](100)
						h.create(u)
					}
					time.Sleep(time.Second)
					h.clock.set(ahead)
					time.Sleep(test.after - time.Second)
					if diff := cmp.Diff(test.want, e.evicted()); diff != "" {
						t.Errorf("evicted (-want +got):\n%s", diff)
					}
					if err := h.Healthy(); err != nil {
						t.Error(err)
					}
					time.Sleep(20 * grace)
					if bound := h.bound(); !slices.Contains(bound, "u-1") || !slices.Contains(bound, "u-2") {
						t.Errorf("only %q are bound in the end", bound)
					}
				}, node("n"), low("a"), low("b"), low("c"), low("d"),
					&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 100})
			})
		}
	}
}

// low returns a running pod of low priority.
func low(name string) *v1.Pod {
	p := pod(name)
	p.Spec.NodeName, p.Status.Phase = "n", v1.PodRunning
	p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("1")
	return p
}

// evictions plays the API server and the kubelets. The first two pods may exceed their grace period.
type evictions struct {
	*harness
	grace time.Duration
	stay  bool

	mu    sync.Mutex
	names []string
}

func (e *evictions) evict(action clienttesting.Action) (bool, runtime.Object, error) {
	create := action.(clienttesting.CreateAction)
	eviction, ok := create.GetObject().(*policyv1.Eviction)
	if !ok {
		return false, nil, nil
	}
	if len(eviction.DeleteOptions.DryRun) > 0 {
		return true, eviction, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.names = append(e.names, eviction.Name)
	object, err := e.kube.Tracker().Get(action.GetResource(), eviction.Namespace, eviction.Name)
	if err != nil {
		return true, nil, err
	}
	pod := object.(*v1.Pod).DeepCopy()
	end := metav1.NewTime(time.Now().Add(e.grace))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, ptr.To(int64(e.grace/time.Second))
	if !e.stay || len(e.names) > 2 {
		time.AfterFunc(e.grace, func() { _ = e.kube.Tracker().Delete(action.GetResource(), pod.Namespace, pod.Name) })
	}
	return true, eviction, e.kube.Tracker().Update(action.GetResource(), pod, pod.Namespace)
}

func (e *evictions) evicted() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(slices.Values(e.names))
}

// TestSettingTheClockIsNoStuckCycle sets the clock while a cycle runs.
func TestSettingTheClockIsNoStuckCycle(t *testing.T) {
	probe := func(context.Context, *framework.Session) error {
		time.Sleep(time.Minute)
		return nil
	}
	run(t, probed, probe, func(h *harness) {
		time.Sleep(30 * time.Second)
		h.clock.set(time.Hour)
		if err := h.Healthy(); err != nil {
			t.Error(err)
		}
	}, node("n"))
}
