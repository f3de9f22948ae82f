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

// setClock is the clock of a machine that somebody sets: what it shows jumps, what passes does not.
// The API server's clock, which is Go's in these tests, goes on as before.
type setClock struct {
	clock.RealClock
	ahead atomic.Int64 // of Go's clock
}

func (c *setClock) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

// Now returns a time as package time makes it outside of bubbles: with a wall clock, and with a monotonic
// clock that nobody can set. There is no function to make one, so it is made of its bits.
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
			t.Errorf("%s have passed, want next to nothing", passed)
		}
	}
}

const evicting = `
actions: "probe, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: nodeorder}]
`

// TestTheClockIsSet has two pods evicted for others, and sets the clock while those wait.
func TestTheClockIsSet(t *testing.T) {
	const grace = 100 * time.Second
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		for name, test := range map[string]struct {
			stay  bool // the pods outstay their deletion
			after time.Duration
			want  []string
		}{
			"while the pods end, nobody else is evicted":   {false, grace - time.Second, []string{"c", "d"}},
			"they get the room":                            {false, grace + time.Second, []string{"c", "d"}},
			"pods that outstay their end are waited for":   {true, grace + 29*time.Second, []string{"c", "d"}},
			"but not for ever, and then others have to go": {true, grace + 35*time.Second, []string{"a", "b", "c", "d"}},
		} {
			t.Run(name+", clock ahead by "+ahead.String(), func(t *testing.T) {
				probe := func(context.Context, *framework.Session) error { return nil }
				inWorld(t, evicting, probe, func(w *world) {
					e := &evictions{world: w, grace: grace, stay: test.stay}
					w.kube.PrependReactor("create", "pods", e.evict)
					for _, name := range []string{"u-1", "u-2"} {
						u := pod(name)
						u.Spec.PriorityClassName, u.Spec.Priority = "urgent", ptr.To[int32](100)
						w.create(u)
					}
					time.Sleep(time.Second)
					w.clock.set(ahead)
					time.Sleep(test.after - time.Second)
					if diff := cmp.Diff(test.want, e.evicted()); diff != "" {
						t.Errorf("evicted (-want +got):\n%s", diff)
					}
					if err := w.Healthy(); err != nil {
						t.Error(err)
					}
					time.Sleep(20 * grace)
					if bound := w.bound(); !slices.Contains(bound, "u-1") || !slices.Contains(bound, "u-2") {
						t.Errorf("only %q are bound in the end", bound)
					}
				}, node("n"), low("a"), low("b"), low("c"), low("d"),
					&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 100})
			})
		}
	}
}

// low is a pod of low priority that runs.
func low(name string) *v1.Pod {
	p := pod(name)
	p.Spec.NodeName, p.Status.Phase = "n", v1.PodRunning
	p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("1")
	return p
}

// evictions does what the API server and kubelets do with them. The first two pods may stay.
type evictions struct {
	*world
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

// TestAClockThatIsSetIsNoStuckCycle sets the clock while a cycle runs.
func TestAClockThatIsSetIsNoStuckCycle(t *testing.T) {
	probe := func(context.Context, *framework.Session) error {
		time.Sleep(time.Minute)
		return nil
	}
	inWorld(t, probed, probe, func(w *world) {
		time.Sleep(30 * time.Second)
		w.clock.set(time.Hour)
		if err := w.Healthy(); err != nil {
			t.Error(err)
		}
	}, node("n"))
}
