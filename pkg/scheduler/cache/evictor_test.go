package cache

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// court is an evictor with the API server that it asks. It is also the bailiff.
type court struct {
	*evictor
	kube   *fake.Clientset
	rule   func(name string, dryRun bool, attempt int) error
	mu     sync.Mutex
	asked  map[string]int
	events []string
}

func newCourt(t *testing.T, rule func(string, bool, int) error) *court {
	c := &court{kube: fake.NewClientset(), rule: rule, asked: map[string]int{}}
	for _, name := range []string{"a-0", "a-1", "b-0"} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
		if err := c.kube.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	c.kube.PrependReactor("create", "pods", c.answer)
	o := Options{SchedulerName: us, Kube: c.kube, Clock: clock.RealClock{}, Log: testr.New(t)}
	o.Metrics = noMetrics{}
	c.evictor = newEvictor(o, newRecorder(o), c)
	return c
}

func (c *court) answer(action clienttesting.Action) (bool, runtime.Object, error) {
	create := action.(clienttesting.CreateAction)
	eviction, ok := create.GetObject().(*policyv1.Eviction)
	if !ok {
		return false, nil, nil
	}
	dry := len(eviction.DeleteOptions.DryRun) > 0
	c.mu.Lock()
	if !dry {
		c.asked[eviction.Name]++
	}
	attempt := c.asked[eviction.Name]
	c.mu.Unlock()
	if uid := eviction.DeleteOptions.Preconditions.UID; uid == nil || *uid != types.UID(eviction.Name) {
		return true, nil, errors.New("not the pod of that UID")
	}
	err := c.rule(eviction.Name, dry, attempt)
	var lost lost
	if (err == nil || errors.As(err, &lost)) && !dry {
		c.event("evicted " + eviction.Name)
		err = errors.Join(err, c.kube.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "ns", eviction.Name))
	}
	if lost.error != nil {
		err = lost.error
	}
	return true, eviction, err
}

// lost is an error that is answered although the eviction takes effect.
type lost struct{ error }

func (c *court) event(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, text)
}

func (c *court) spared(e *eviction, refused bool) {
	text := "spared " + e.name
	if refused {
		text += ", refused"
	}
	c.event(text)
}

func (c *court) pardoned(uid types.UID) { c.event("pardoned " + string(uid)) }

// Two pods of one job, and one of another.
func threeVictims() *plan {
	p := &plan{beneficiary: "ns/g"}
	for _, name := range []string{"a-0", "a-1", "b-0"} {
		p.victims = append(p.victims, &eviction{namespace: "ns", name: name, uid: types.UID(name), job: name[:1]})
	}
	return p
}

func TestEvictor(t *testing.T) {
	budget := apierrors.NewTooManyRequests("budget", 0)
	budget.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	gone := apierrors.NewNotFound(v1.Resource("pods"), "x")
	for name, test := range map[string]struct {
		given func(pod string, dryRun bool, attempt int) error
		want  []string
	}{
		"all go, in order": {
			func(string, bool, int) error { return nil },
			[]string{"evicted a-0", "evicted a-1", "evicted b-0"},
		},
		"one would be refused, so none goes": {
			func(pod string, dryRun bool, _ int) error {
				if pod == "b-0" && dryRun {
					return budget
				}
				return nil
			},
			[]string{"spared a-0", "spared a-1", "spared b-0, refused", "pardoned b-0"},
		},
		"one is refused after all, so the rest stays": {
			func(pod string, dryRun bool, _ int) error {
				if pod == "b-0" && !dryRun {
					return budget
				}
				return nil
			},
			[]string{"evicted a-0", "evicted a-1", "spared b-0, refused", "pardoned b-0"},
		},
		"one that is gone already is no reason to stop": {
			func(pod string, _ bool, _ int) error {
				if pod == "a-1" {
					return gone
				}
				return nil
			},
			[]string{"evicted a-0", "evicted b-0"},
		},
		"a server that is busy is asked again": {
			func(pod string, dryRun bool, attempt int) error {
				if pod == "a-0" && !dryRun && attempt < 3 {
					return apierrors.NewInternalError(errors.New("busy"))
				}
				return nil
			},
			[]string{"evicted a-0", "evicted a-1", "evicted b-0"},
		},
		"a conflict does not say that the pod is gone": {
			func(pod string, dryRun bool, attempt int) error {
				if pod == "a-1" && !dryRun && attempt < 3 {
					return apierrors.NewConflict(v1.Resource("pods"), pod, errors.New("somebody else was faster"))
				}
				return nil
			},
			[]string{"evicted a-0", "evicted a-1", "evicted b-0"},
		},
		"an eviction whose answer was lost is found": {
			func(pod string, dryRun bool, attempt int) error {
				if pod == "a-0" && !dryRun {
					return lost{apierrors.NewConflict(v1.Resource("pods"), pod, errors.New("somebody else was faster"))}
				}
				return nil
			},
			[]string{"evicted a-0", "evicted a-1", "evicted b-0"},
		},
		"one whose last answer was lost is no reason to stop": {
			func(pod string, dryRun bool, attempt int) error {
				switch {
				case pod != "a-0" || dryRun:
					return nil
				case attempt == evictAttempts:
					return lost{apierrors.NewTimeoutError("no answer", 0)}
				}
				return apierrors.NewTimeoutError("no answer", 0)
			},
			[]string{"evicted a-0", "evicted a-1", "evicted b-0"},
		},
		"a server that never answers is given up": {
			func(_ string, dryRun bool, _ int) error {
				if !dryRun {
					return apierrors.NewInternalError(errors.New("busy"))
				}
				return nil
			},
			[]string{"spared a-0, refused", "spared a-1", "spared b-0", "pardoned a-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCourt(t, test.given)
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { c.run(ctx) })
				c.enqueue(threeVictims())
				time.Sleep(time.Minute)
				stop()
				running.Wait()
				if diff := cmp.Diff(test.want, c.events); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestEvictorNamesTheBeneficiary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCourt(t, func(string, bool, int) error { return nil })
		c.carryOut(t.Context(), threeVictims())
		var patched []string
		for _, a := range c.kube.Actions() {
			if patch, ok := a.(clienttesting.PatchAction); ok {
				patched = append(patched, patch.GetName()+" "+patch.GetSubresource()+" "+string(patch.GetPatch()))
			}
		}
		const want = `a-0 status {"metadata":{"annotations":{"scheduling.batch-scheduler.dev/evicted-for":"ns/g"},"uid":"a-0"}}`
		if !slices.Contains(patched, want) {
			t.Errorf("no patch %s, but %q", want, patched)
		}
	})
}

// TestEvictorStopsForATakerThatDoesNotWait: while a plan waits for those before it, or is half carried out, its taker
// may find another node. Victims of a job that has been begun go, so that no gang is evicted in part.
func TestEvictorStopsForATakerThatDoesNotWait(t *testing.T) {
	bound := func(p *v1.Pod) { p.Spec.NodeName = "n" }
	for name, test := range map[string]struct {
		taker  types.UID
		before func(*v1.Pod) // what the taker has become
		midway func(*v1.Pod) // what becomes of it when the first pod has been evicted
		want   []string
	}{
		"it waits":             {taker: "t", want: []string{"evicted a-0", "evicted a-1", "evicted b-0"}},
		"it has a node":        {taker: "t", before: bound, want: []string{"spared a-0", "spared a-1", "spared b-0"}},
		"it gets a node":       {taker: "t", midway: bound, want: []string{"evicted a-0", "evicted a-1", "spared b-0"}},
		"it is another by now": {taker: "old", want: []string{"spared a-0", "spared a-1", "spared b-0"}},
		"it is being deleted":  {taker: "t", before: func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, want: []string{"spared a-0", "spared a-1", "spared b-0"}},
		"it is not there":      {taker: "t", before: func(p *v1.Pod) { p.Name = "other" }, want: []string{"spared a-0", "spared a-1", "spared b-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				preemptor := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "taker", UID: "t"}}
				var c *court
				c = newCourt(t, func(pod string, dryRun bool, _ int) error {
					if pod != "a-0" || dryRun || test.midway == nil {
						return nil
					}
					test.midway(preemptor)
					return c.kube.Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), preemptor, "ns")
				})
				if test.before != nil {
					test.before(preemptor)
				}
				if err := c.kube.Tracker().Add(preemptor); err != nil {
					t.Fatal(err)
				}
				p := threeVictims()
				p.taker = &v1.ObjectReference{Namespace: "ns", Name: "taker", UID: test.taker}
				c.carryOut(t.Context(), p)
				if diff := cmp.Diff(test.want, c.events); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestStoppingEvictorFinishesTheJobThatItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		c := newCourt(t, func(pod string, dryRun bool, _ int) error {
			if pod == "a-0" && !dryRun {
				stop()
			}
			return nil
		})
		c.carryOut(ctx, threeVictims())
		if diff := cmp.Diff([]string{"evicted a-0", "evicted a-1", "spared b-0"}, c.events); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestTheTakerIsTheFirstThatWaitsForRoom(t *testing.T) {
	task := func(name string, status api.TaskStatus) *api.TaskInfo {
		return &api.TaskInfo{Status: status, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}}
	}
	job := &api.JobInfo{Tasks: []*api.TaskInfo{task("a", api.Running), task("d", api.Pipelined), task("c", api.Pipelined), task("b", api.Pending)}}
	want := &v1.ObjectReference{Namespace: "ns", Name: "c", UID: "c"}
	if diff := cmp.Diff(want, takerOf(job)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := takerOf(&api.JobInfo{}); got != nil {
		t.Errorf("a job of which none waits for room has the taker %v", got)
	}
}
