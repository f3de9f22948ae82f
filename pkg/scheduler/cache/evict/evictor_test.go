// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

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
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// harness is an evictor on a fake clientset, and its own handler. It keeps a transcript of the evictions
// that take effect and of the results.
type harness struct {
	*Evictor
	kube *fake.Clientset
	// respond returns the response to an eviction.
	respond  func(name string, dryRun bool, attempt int) error
	mu       sync.Mutex
	attempts map[string]int
	lines    []string
}

func newHarness(t *testing.T, respond func(string, bool, int) error) *harness {
	h := &harness{kube: fake.NewClientset(), respond: respond, attempts: map[string]int{}}
	for _, name := range []string{"a-0", "a-1", "b-0"} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
		if err := h.kube.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	h.kube.PrependReactor("create", "pods", h.serve)
	h.Evictor = New(Options{Kube: h.kube, Workers: 1, Handler: h, Events: noEvents{}, Status: noEvents{}, Metrics: noMetrics{}, Clock: clock.RealClock{}, Log: testr.New(t)})
	return h
}

type noEvents struct{}

func (noEvents) PodEvicted(v1.ObjectReference, api.EvictionCause, string) {}
func (noEvents) PodGroupEvicted(v1.ObjectReference, metav1.Condition)     {}
func (noEvents) MarkDisruption(context.Context, v1.ObjectReference, string) error {
	return nil
}
func (noEvents) PodsPreempted(v1.ObjectReference, int, string, string) {}
func (noEvents) JobEnded(v1.ObjectReference, string, string)           {}
func (noEvents) EvictionRefused(v1.ObjectReference, error)             {}

type noMetrics struct{}

func (noMetrics) Eviction(string, metrics.EvictionResult) {}
func (noMetrics) PodGroupEvicted(string, string, bool)    {}

func (h *harness) serve(action clienttesting.Action) (bool, runtime.Object, error) {
	create := action.(clienttesting.CreateAction)
	eviction, ok := create.GetObject().(*policyv1.Eviction)
	if !ok {
		return false, nil, nil
	}
	dry := len(eviction.DeleteOptions.DryRun) > 0
	h.mu.Lock()
	if !dry {
		h.attempts[eviction.Name]++
	}
	attempt := h.attempts[eviction.Name]
	h.mu.Unlock()
	if uid := eviction.DeleteOptions.Preconditions.UID; uid == nil || *uid != types.UID(eviction.Name) {
		return true, nil, errors.New("not the pod of that UID")
	}
	err := h.respond(eviction.Name, dry, attempt)
	var lost responseLost
	if (err == nil || errors.As(err, &lost)) && !dry {
		h.note("evicted " + eviction.Name)
		err = errors.Join(err, h.kube.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "ns", eviction.Name))
	}
	if lost.error != nil {
		err = lost.error
	}
	return true, eviction, err
}

// responseLost is an error although the eviction takes effect.
type responseLost struct{ error }

func (h *harness) note(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, text)
}

func (h *harness) EvictionFailed(e *Victim, refused bool) {
	text := "failed " + e.Name
	if refused {
		text += ", refused"
	}
	h.note(text)
}

func (h *harness) EvictionAllowed(uid types.UID) { h.note("allowed " + string(uid)) }

// threeVictims returns a plan with two pods of one job and one of another.
func threeVictims() *Plan {
	p := &Plan{Preemptor: "ns/g", Jobs: map[string]*Job{"a": {Namespace: "ns", Name: "a"}, "b": {Namespace: "ns", Name: "b"}}}
	for _, name := range []string{"a-0", "a-1", "b-0"} {
		p.Victims = append(p.Victims, &Victim{Namespace: "ns", Name: name, UID: types.UID(name), Job: name[:1]})
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
		"all pods are evicted in order": {
			func(string, bool, int) error { return nil },
			[]string{"evicted a-0", "evicted a-1", "evicted b-0"},
		},
		"a refusal in the dry run drops the plan": {
			func(pod string, dryRun bool, _ int) error {
				if pod == "b-0" && dryRun {
					return budget
				}
				return nil
			},
			[]string{"failed a-0", "failed a-1", "failed b-0, refused", "allowed b-0"},
		},
		"a refusal after the dry run drops the rest of the plan": {
			func(pod string, dryRun bool, _ int) error {
				if pod == "b-0" && !dryRun {
					return budget
				}
				return nil
			},
			[]string{"evicted a-0", "evicted a-1", "failed b-0, refused", "allowed b-0"},
		},
		"a victim that does not exist any more is skipped": {
			func(pod string, _ bool, _ int) error {
				if pod == "a-1" {
					return gone
				}
				return nil
			},
			[]string{"evicted a-0", "evicted b-0"},
		},
		"an internal error is retried": {
			func(pod string, dryRun bool, attempt int) error {
				if pod == "a-0" && !dryRun && attempt < 3 {
					return apierrors.NewInternalError(errors.New("busy"))
				}
				return nil
			},
			[]string{"evicted a-0", "evicted a-1", "evicted b-0"},
		},
		"a conflict is retried while the pod exists": {
			func(pod string, dryRun bool, attempt int) error {
				if pod == "a-1" && !dryRun && attempt < 3 {
					return apierrors.NewConflict(v1.Resource("pods"), pod, errors.New("another client was faster"))
				}
				return nil
			},
			[]string{"evicted a-0", "evicted a-1", "evicted b-0"},
		},
		"an eviction whose response was lost counts as made": {
			func(pod string, dryRun bool, attempt int) error {
				if pod == "a-0" && !dryRun {
					return responseLost{apierrors.NewConflict(v1.Resource("pods"), pod, errors.New("another client was faster"))}
				}
				return nil
			},
			[]string{"evicted a-0", "evicted a-1", "evicted b-0"},
		},
		"an eviction whose last response was lost counts as made": {
			func(pod string, dryRun bool, attempt int) error {
				switch {
				case pod != "a-0" || dryRun:
					return nil
				case attempt == maxAttempts:
					return responseLost{apierrors.NewTimeoutError("no answer", 0)}
				}
				return apierrors.NewTimeoutError("no answer", 0)
			},
			[]string{"evicted a-0", "evicted a-1", "evicted b-0"},
		},
		"the evictor gives up after five attempts": {
			func(_ string, dryRun bool, _ int) error {
				if !dryRun {
					return apierrors.NewInternalError(errors.New("busy"))
				}
				return nil
			},
			[]string{"failed a-0, refused", "failed a-1", "failed b-0", "allowed a-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, test.given)
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { h.Run(ctx) })
				h.Enqueue(threeVictims())
				time.Sleep(time.Minute)
				stop()
				running.Wait()
				if diff := cmp.Diff(test.want, h.lines); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestEvictorAnnotatesVictims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, func(string, bool, int) error { return nil })
		h.execute(t.Context(), threeVictims())
		var patched []string
		for _, a := range h.kube.Actions() {
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

// TestPlanIsDroppedWhenNotNeeded: while a plan is validated, or is executed in part, the pod of the preemptor may find
// another node. Then no other job begins; a job is not evicted in part. See also TestPreemptorIsCheckedAgain.
func TestPlanIsDroppedWhenNotNeeded(t *testing.T) {
	bound := func(p *v1.Pod) { p.Spec.NodeName = "n" }
	for name, test := range map[string]struct {
		preemptor types.UID
		before    func(*v1.Pod) // the change of the pod before the plan
		midway    func(*v1.Pod) // its change when the first victim is evicted
		large     bool          // the first job has as many victims as one check is for; only two exist
		want      []string
	}{
		"the pod is pending":         {preemptor: "t", want: []string{"evicted a-0", "evicted a-1", "evicted b-0"}},
		"the pod has a node":         {preemptor: "t", before: bound, want: []string{"failed a-0", "failed a-1", "failed b-0"}},
		"the pod gets a node midway": {preemptor: "t", midway: bound, large: true, want: []string{"evicted a-0", "evicted a-1", "failed b-0"}},
		"the name has another UID":   {preemptor: "old", want: []string{"failed a-0", "failed a-1", "failed b-0"}},
		"the pod is being deleted":   {preemptor: "t", before: func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, want: []string{"failed a-0", "failed a-1", "failed b-0"}},
		"the pod does not exist":     {preemptor: "t", before: func(p *v1.Pod) { p.Name = "other" }, want: []string{"failed a-0", "failed a-1", "failed b-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				preemptor := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "t"}}
				var h *harness
				h = newHarness(t, func(pod string, dryRun bool, _ int) error {
					switch {
					case pod == "gone":
						return apierrors.NewNotFound(v1.Resource("pods"), pod)
					case pod != "a-0" || dryRun || test.midway == nil:
						return nil
					}
					test.midway(preemptor)
					return h.kube.Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), preemptor, "ns")
				})
				if test.before != nil {
					test.before(preemptor)
				}
				if err := h.kube.Tracker().Add(preemptor); err != nil {
					t.Fatal(err)
				}
				p := threeVictims()
				p.PreemptorPod = &v1.ObjectReference{Namespace: "ns", Name: "p", UID: test.preemptor}
				for i := 2; test.large && i < checkedVictims; i++ {
					p.Victims = slices.Insert(p.Victims, 2, &Victim{Namespace: "ns", Name: "gone", UID: "gone", Job: "a"})
				}
				h.execute(t.Context(), p)
				if diff := cmp.Diff(test.want, h.lines); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestStoppingEvictorCompletesTheCurrentJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		h := newHarness(t, func(pod string, dryRun bool, _ int) error {
			if pod == "a-0" && !dryRun {
				stop()
			}
			return nil
		})
		h.execute(ctx, threeVictims())
		if diff := cmp.Diff([]string{"evicted a-0", "evicted a-1", "failed b-0"}, h.lines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
