package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// TestBind binds a pod "p" to n1 once, under one condition, and looks what the model thinks and
// what the API server shows shortly after, and after the back-off.
func TestBind(t *testing.T) {
	type outcome struct {
		Model, Bound []string
		Woken        bool
	}
	inFlight, waits := []string{"p Binding n1 in flight"}, []string{"p Pending"}
	landed := outcome{Model: []string{"p Bound n1"}, Bound: []string{"p n1"}}
	tests := map[string]struct {
		given func(*world)
		// soon is 100 ms after the commit, later is after the first back-off of 500 ms.
		soon, later outcome
	}{
		"a bind that is answered is confirmed by the watch, and wakes nobody": {
			given: func(*world) {},
			soon:  landed, later: landed,
		},
		"a bind whose answer was lost is found": {
			given: func(w *world) { w.pods.faults["p"] = []fault{{err: errTimeout, done: true}} },
			soon:  landed, later: landed,
		},
		"a bind that takes effect during the back-off is found": {
			given: func(w *world) {
				w.pods.faults["p"] = []fault{{err: errNetwork, done: true, late: 300 * time.Millisecond}}
			},
			soon:  outcome{Model: inFlight, Bound: []string{}},
			later: landed,
		},
		"a bind that failed keeps its room through the back-off and is refused then": {
			given: func(w *world) { w.pods.faults["p"] = []fault{{err: errInternal}} },
			soon:  outcome{Model: inFlight, Bound: []string{}},
			later: outcome{Model: waits, Bound: []string{}, Woken: true},
		},
		"a bind that was denied is refused after the back-off": {
			given: func(w *world) { w.pods.faults["p"] = []fault{{err: errDenied}} },
			soon:  outcome{Model: inFlight, Bound: []string{}},
			later: outcome{Model: waits, Bound: []string{}, Woken: true},
		},
		"while nobody can say what became of it, a bind stays in flight": {
			given: func(w *world) {
				w.pods.faults["p"] = []fault{{err: errTimeout}}
				w.pods.silent["p"] = 100
			},
			soon:  outcome{Model: inFlight, Bound: []string{}},
			later: outcome{Model: inFlight, Bound: []string{}},
		},
		"a server that asks for patience is not asked again before": {
			given: func(w *world) { w.pods.faults["p"] = []fault{{err: errBusy}} },
			soon:  outcome{Model: inFlight, Bound: []string{}},
			later: outcome{Model: inFlight, Bound: []string{}},
		},
		"a pod that is gone leaves the model": {
			given: func(w *world) { w.deletePod("p") },
			soon:  outcome{Model: []string{}, Bound: []string{}, Woken: true},
			later: outcome{Model: []string{}, Bound: []string{}, Woken: true},
		},
		"a pod that was replaced by another of its name is not bound, and the other waits": {
			given: func(w *world) {
				w.deletePod("p")
				w.create(with(member("", "p"), func(p *v1.Pod) { p.UID = "second" }))
			},
			soon:  outcome{Model: waits, Bound: []string{}, Woken: true},
			later: outcome{Model: waits, Bound: []string{}, Woken: true},
		},
		"a pod that somebody else has bound is where they have put it": {
			given: func(w *world) { w.update("p", func(p *v1.Pod) { p.Spec.NodeName = "n2" }) },
			soon:  outcome{Model: []string{"p Bound n2"}, Bound: []string{"p n2"}},
			later: outcome{Model: []string{"p Bound n2"}, Bound: []string{"p n2"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := objects()
			objects = append(objects, member("", "p"))
			inWorld(t, 2, objects, func(w *world) {
				w.woken()
				test.given(w)
				w.place("", "n1")
				w.wait(100 * time.Millisecond)
				woken := w.woken()
				soon := outcome{Model: w.model(), Bound: w.bound(), Woken: woken}
				w.wait(600 * time.Millisecond)
				later := outcome{Model: w.model(), Bound: w.bound(), Woken: w.woken() || woken}
				if diff := cmp.Diff(test.soon, soon); diff != "" {
					t.Errorf("soon (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.later, later); diff != "" {
					t.Errorf("later (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestBindingSaysWhereThePodCounts(t *testing.T) {
	tests := map[string]struct {
		pod  *v1.Pod
		want map[string]string
	}{
		"a member carries queue and group": {
			pod:  member("g", "p"),
			want: map[string]string{v1alpha1.AnnotationQueue: "default", v1alpha1.AnnotationPodGroupUID: "group-g"},
		},
		"a pod without group carries an empty group, so that no label can give it one later": {
			pod:  member("", "p"),
			want: map[string]string{v1alpha1.AnnotationQueue: "default", v1alpha1.AnnotationPodGroupUID: ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, append(objects(), group("g", 1), test.pod), func(w *world) {
				w.place("", "n1")
				w.settle()
				if diff := cmp.Diff(test.want, w.pod("p").Annotations); diff != "" {
					t.Errorf("annotations (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestBackoff lets a cycle follow every refusal at once, and looks when binds are sent.
func TestBackoff(t *testing.T) {
	fails := func(n int, err error) (faults []fault) {
		for range n {
			faults = append(faults, fault{err: err})
		}
		return faults
	}
	tests := map[string]struct {
		faults []fault
		silent int
		want   []string
	}{
		"doubles from half a second": {
			faults: fails(4, errInternal),
			want:   []string{"0s p to n1", "500ms p to n1", "1.5s p to n1", "3.5s p to n1", "7.5s p to n1"},
		},
		"ends at 30 seconds": {
			faults: fails(8, errInternal),
			want: []string{"0s p to n1", "500ms p to n1", "1.5s p to n1", "3.5s p to n1", "7.5s p to n1",
				"15.5s p to n1", "31.5s p to n1", "1m1.5s p to n1", "1m31.5s p to n1"},
		},
		"begins when the server wants to be asked again": {
			faults: fails(1, errBusy),
			want:   []string{"0s p to n1", "3.5s p to n1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, append(objects(), member("", "p")), func(w *world) {
				w.pods.faults["p"] = test.faults
				for w.elapsed() < 2*time.Minute {
					w.place("", "n1")
					w.wait(100 * time.Millisecond)
				}
				if diff := cmp.Diff(test.want, w.pods.binds()); diff != "" {
					t.Errorf("binds (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestGangsGoOneAfterTheOther looks at the order of binds.
func TestGangsGoOneAfterTheOther(t *testing.T) {
	inWorld(t, 1, objects(gang("a", 2), gang("b", 2)), func(w *world) {
		w.pods.latency = time.Second
		w.place("b", "n1")
		w.place("a", "n2")
		w.wait(10 * time.Second)
		want := []string{"0s b-0 to n1", "1s b-1 to n1", "2s a-0 to n2", "3s a-1 to n2"}
		if diff := cmp.Diff(want, w.pods.binds()); diff != "" {
			t.Errorf("binds (-want +got):\n%s", diff)
		}
	})
}

// TestStop commits gangs a and b, stops after a while, and looks what was bound in the end.
func TestStop(t *testing.T) {
	tests := map[string]struct {
		given func(*world)
		// after is when the stop comes; ends is how long Run takes then.
		after, ends time.Duration
		want        []string
	}{
		"a gang that was begun is finished, one that was not is dropped": {
			given: func(*world) {},
			after: 1500 * time.Millisecond, ends: 1500 * time.Millisecond,
			want: []string{"a-0 n1", "a-1 n1", "a-2 n1"},
		},
		"nothing to finish ends at once": {
			given: func(*world) {},
			after: 10 * time.Second, ends: 0,
			want: []string{"a-0 n1", "a-1 n1", "a-2 n1", "b-0 n2"},
		},
		"a bind that fails while stopping is sent again, since no cycle will do it": {
			given: func(w *world) { w.pods.faults["a-2"] = []fault{{err: errInternal}} },
			after: 1500 * time.Millisecond, ends: 3 * time.Second,
			want: []string{"a-0 n1", "a-1 n1", "a-2 n1"},
		},
		"what cannot be finished in 15 seconds is left to the next scheduler": {
			given: func(w *world) {
				w.pods.faults["a-2"] = []fault{{err: errTimeout}}
				w.pods.silent["a-2"] = 1000
			},
			after: 1500 * time.Millisecond, ends: 15 * time.Second,
			want: []string{"a-0 n1", "a-1 n1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, objects(gang("a", 3), gang("b", 1)), func(w *world) {
				w.pods.latency = time.Second
				test.given(w)
				w.place("a", "n1")
				w.place("b", "n2")
				w.wait(test.after)
				w.stop()
				stopped := time.Now()
				<-w.ended
				if took := time.Since(stopped); took != test.ends {
					t.Errorf("stopping took %s, want %s", took, test.ends)
				}
				w.wait(time.Second)
				if diff := cmp.Diff(test.want, w.bound()); diff != "" {
					t.Errorf("bound (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestRecreatedPod deletes a pod whose bind is under way, and makes another with its name.
func TestRecreatedPod(t *testing.T) {
	inWorld(t, 1, append(objects(), member("", "p")), func(w *world) {
		w.pods.latency = time.Second
		w.place("", "n1")
		w.wait(500 * time.Millisecond)
		w.deletePod("p")
		w.create(with(member("", "p"), func(p *v1.Pod) {
			p.UID = "second"
			p.CreationTimestamp = metav1.Now()
		}))
		w.wait(time.Second)
		if diff := cmp.Diff([]string{"p Pending"}, w.model()); diff != "" {
			t.Errorf("model (-want +got):\n%s", diff)
		}
		if free := w.Model().Node("n1").Idle[0]; free != 8000 {
			t.Errorf("%d milli-cpu are free on the node, want all 8000", free)
		}
		w.place("", "n2")
		w.wait(2 * time.Second)
		if diff := cmp.Diff([]string{"p n2"}, w.bound()); diff != "" {
			t.Errorf("bound (-want +got):\n%s", diff)
		}
	})
}

// control notes what the binder tells.
type control struct{ lines []string }

func (c *control) refused(f *flight)  { c.lines = append(c.lines, "refused "+f.name) }
func (c *control) vanished(f *flight) { c.lines = append(c.lines, "vanished "+f.name) }

func (c *control) putOff(job api.JobID, _ []*flight, why string) {
	c.lines = append(c.lines, "put off "+string(job)+": "+why)
}

func (c *control) readmitted(job api.JobID) { c.lines = append(c.lines, "readmitted "+string(job)) }

// TestWhatBecomesOfABind looks at the binder alone: what it tells the model, whether it counts
// the pod as bound by us, and whether it has forgotten the pod in the end.
func TestWhatBecomesOfABind(t *testing.T) {
	type fate struct {
		Told      []string
		Bound     int
		Forgotten bool
	}
	tests := map[string]struct {
		given func(*world)
		want  fate
	}{
		"bound":                    {func(*world) {}, fate{Bound: 1, Forgotten: true}},
		"bound, the answer lost":   {func(w *world) { w.pods.faults["p"] = []fault{{err: errNetwork, done: true}} }, fate{Bound: 1, Forgotten: true}},
		"bound by somebody else":   {func(w *world) { w.update("p", func(p *v1.Pod) { p.Spec.NodeName = "n2" }) }, fate{Forgotten: true}},
		"refused":                  {func(w *world) { w.pods.faults["p"] = []fault{{err: errDenied}} }, fate{Told: []string{"refused p"}}},
		"gone":                     {func(w *world) { w.deletePod("p") }, fate{Told: []string{"vanished p"}, Forgotten: true}},
		"gone, its name is reused": {func(w *world) { w.update("p", func(p *v1.Pod) { p.UID = "second" }) }, fate{Told: []string{"vanished p"}, Forgotten: true}},
		"bound, but nobody could say so for a while": {
			given: func(w *world) {
				w.pods.faults["p"] = []fault{{err: errNetwork, done: true}}
				w.pods.silent["p"] = 3
			},
			want: fate{Bound: 1, Forgotten: true},
		},
		"gone after some failures": {
			given: func(w *world) {
				w.pods.silent["p"] = 3
				w.deletePod("p")
			},
			want: fate{Told: []string{"vanished p"}, Forgotten: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, []runtime.Object{member("g", "p")})
				test.given(w)
				told := &control{}
				b := newBinder(w.options, w.recorder, told)
				u := &unit{group: referenceTo(group("g", 1))}
				u.flights = []*flight{{unit: u, namespace: "default", name: "p", uid: "pod-p", landing: landing{node: "n1"}}}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					b.run(ctx)
					close(done)
				}()
				b.enqueue(u)
				time.Sleep(time.Minute)
				synctest.Wait()
				got := fate{Told: told.lines, Bound: w.recorder.bound[*u.group], Forgotten: b.backoff.NumRequeues("pod-p") == 0}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				b.forget("pod-p")
				if b.backoff.NumRequeues("pod-p") != 0 {
					t.Error("not forgotten when told so")
				}
				stop()
				<-done
			})
		})
	}
}
