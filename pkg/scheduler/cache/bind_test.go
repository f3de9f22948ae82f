// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest/fakecluster"
)

// TestBind binds pod p to n1 once, and compares the model and the API server shortly after that and
// after the back-off.
func TestBind(t *testing.T) {
	type outcome struct {
		Model, Bound []string
		Woken        bool
	}
	inFlight, pending := []string{"p Binding n1 in flight"}, []string{"p Pending"}
	succeeded := outcome{Model: []string{"p Bound n1"}, Bound: []string{"p n1"}}
	tests := map[string]struct {
		given func(*harness)
		// soon is 100 ms after the commit, later is after the first back-off of 500 ms.
		soon, later outcome
	}{
		"a bind is confirmed by the watch, which wakes no cycle": {
			given: func(*harness) {},
			soon:  succeeded, later: succeeded,
		},
		"a bind whose response was lost is found": {
			given: func(f *harness) { f.Faults.Bind["p"] = []fault{{Err: fakecluster.ErrTimeout, Done: true}} },
			soon:  succeeded, later: succeeded,
		},
		"a bind that takes effect during the back-off is found": {
			given: func(f *harness) {
				f.Faults.Bind["p"] = []fault{{Err: fakecluster.ErrNetwork, Done: true, Delay: 300 * time.Millisecond}}
			},
			soon:  outcome{Model: inFlight, Bound: []string{}},
			later: succeeded,
		},
		"a bind that failed stays in flight during the back-off and fails then": {
			given: func(f *harness) { f.Faults.Bind["p"] = []fault{{Err: fakecluster.ErrInternal}} },
			soon:  outcome{Model: inFlight, Bound: []string{}},
			later: outcome{Model: pending, Bound: []string{}, Woken: true},
		},
		"a bind that was denied fails after the back-off": {
			given: func(f *harness) { f.Faults.Bind["p"] = []fault{{Err: fakecluster.ErrDenied}} },
			soon:  outcome{Model: inFlight, Bound: []string{}},
			later: outcome{Model: pending, Bound: []string{}, Woken: true},
		},
		"a bind stays in flight while the pod cannot be read": {
			given: func(f *harness) {
				f.Faults.Bind["p"] = []fault{{Err: fakecluster.ErrTimeout}}
				f.Faults.Get["p"] = 100
			},
			soon:  outcome{Model: inFlight, Bound: []string{}},
			later: outcome{Model: inFlight, Bound: []string{}},
		},
		"a pod is not read before the time that the server asks for": {
			given: func(f *harness) { f.Faults.Bind["p"] = []fault{{Err: fakecluster.ErrBusy}} },
			soon:  outcome{Model: inFlight, Bound: []string{}},
			later: outcome{Model: inFlight, Bound: []string{}},
		},
		"a deleted pod leaves the model": {
			given: func(f *harness) { f.DeletePod("p") },
			soon:  outcome{Model: []string{}, Bound: []string{}, Woken: true},
			later: outcome{Model: []string{}, Bound: []string{}, Woken: true},
		},
		"a pod that was replaced by another of its name is not bound, and the other is pending": {
			given: func(f *harness) {
				f.DeletePod("p")
				f.Create(with(member("", "p"), func(p *v1.Pod) { p.UID = "second" }))
			},
			soon:  outcome{Model: pending, Bound: []string{}, Woken: true},
			later: outcome{Model: pending, Bound: []string{}, Woken: true},
		},
		"a pod that another client has bound is on its node": {
			given: func(f *harness) { f.Update("p", func(p *v1.Pod) { p.Spec.NodeName = "n2" }) },
			soon:  outcome{Model: []string{"p Bound n2"}, Bound: []string{"p n2"}},
			later: outcome{Model: []string{"p Bound n2"}, Bound: []string{"p n2"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := objects()
			objects = append(objects, member("", "p"))
			run(t, 2, objects, func(f *harness) {
				f.woken()
				test.given(f)
				f.place("", "n1")
				f.wait(100 * time.Millisecond)
				woken := f.woken()
				soon := outcome{Model: f.describe(), Bound: f.Bound(), Woken: woken}
				f.wait(600 * time.Millisecond)
				later := outcome{Model: f.describe(), Bound: f.Bound(), Woken: f.woken() || woken}
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

func TestBindingAnnotations(t *testing.T) {
	tests := map[string]struct {
		pod  *v1.Pod
		want map[string]string
	}{
		"a member gets its queue and PodGroup": {
			pod:  member("g", "p"),
			want: map[string]string{v1alpha1.AnnotationQueue: "default", v1alpha1.AnnotationPodGroupUID: "group-g"},
		},
		"a pod without PodGroup gets an empty one, so that a later label has no effect": {
			pod:  member("", "p"),
			want: map[string]string{v1alpha1.AnnotationQueue: "default", v1alpha1.AnnotationPodGroupUID: ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, 2, append(objects(), group("g", 1), test.pod), func(f *harness) {
				f.place("", "n1")
				f.converge()
				if diff := cmp.Diff(test.want, f.Pod("p").Annotations); diff != "" {
					t.Errorf("annotations (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestBackoff runs a cycle after every failed bind, and compares when binds are sent.
func TestBackoff(t *testing.T) {
	fails := func(n int, err error) (faults []fault) {
		for range n {
			faults = append(faults, fault{Err: err})
		}
		return faults
	}
	tests := map[string]struct {
		faults []fault
		silent int
		want   []string
	}{
		"doubles from half a second": {
			faults: fails(4, fakecluster.ErrInternal),
			want:   []string{"0s p to n1", "500ms p to n1", "1.5s p to n1", "3.5s p to n1", "7.5s p to n1"},
		},
		"ends at 30 seconds": {
			faults: fails(8, fakecluster.ErrInternal),
			want: []string{"0s p to n1", "500ms p to n1", "1.5s p to n1", "3.5s p to n1", "7.5s p to n1",
				"15.5s p to n1", "31.5s p to n1", "1m1.5s p to n1", "1m31.5s p to n1"},
		},
		"begins at the time that the server asks for": {
			faults: fails(1, fakecluster.ErrBusy),
			want:   []string{"0s p to n1", "3.5s p to n1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, 2, append(objects(), member("", "p")), func(f *harness) {
				f.Faults.Bind["p"] = test.faults
				for f.Elapsed() < 2*time.Minute {
					f.place("", "n1")
					f.wait(100 * time.Millisecond)
				}
				if diff := cmp.Diff(test.want, f.Faults.Binds()); diff != "" {
					t.Errorf("binds (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestGangsAreBoundInTheOrderOfCommits compares the order of binds.
func TestGangsAreBoundInTheOrderOfCommits(t *testing.T) {
	run(t, 1, objects(gang("a", 2), gang("b", 2)), func(f *harness) {
		f.Faults.Latency = time.Second
		f.place("b", "n1")
		f.place("a", "n2")
		f.wait(10 * time.Second)
		want := []string{"0s b-0 to n1", "1s b-1 to n1", "2s a-0 to n2", "3s a-1 to n2"}
		if diff := cmp.Diff(want, f.Faults.Binds()); diff != "" {
			t.Errorf("binds (-want +got):\n%s", diff)
		}
	})
}

// TestStop commits gangs a and b, stops after some time, and compares what is bound in the end.
func TestStop(t *testing.T) {
	tests := map[string]struct {
		given func(*harness)
		// after is when the stop comes; ends is how long Run takes then.
		after, ends time.Duration
		want        []string
	}{
		"a gang that has begun is completed, another is dropped": {
			given: func(*harness) {},
			after: 1500 * time.Millisecond, ends: 1500 * time.Millisecond,
			want: []string{"a-0 n1", "a-1 n1", "a-2 n1"},
		},
		"without binds in flight, Run ends immediately": {
			given: func(*harness) {},
			after: 10 * time.Second, ends: 0,
			want: []string{"a-0 n1", "a-1 n1", "a-2 n1", "b-0 n2"},
		},
		"a bind that fails while stopping is sent again, for no cycle will retry it": {
			given: func(f *harness) { f.Faults.Bind["a-2"] = []fault{{Err: fakecluster.ErrInternal}} },
			after: 1500 * time.Millisecond, ends: 3 * time.Second,
			want: []string{"a-0 n1", "a-1 n1", "a-2 n1"},
		},
		"what takes more than 15 seconds is left to the next scheduler": {
			given: func(f *harness) {
				f.Faults.Bind["a-2"] = []fault{{Err: fakecluster.ErrTimeout}}
				f.Faults.Get["a-2"] = 1000
			},
			after: 1500 * time.Millisecond, ends: 15 * time.Second,
			want: []string{"a-0 n1", "a-1 n1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, 1, objects(gang("a", 3), gang("b", 1)), func(f *harness) {
				f.Faults.Latency = time.Second
				test.given(f)
				f.place("a", "n1")
				f.place("b", "n2")
				f.wait(test.after)
				f.stop()
				stopped := time.Now()
				<-f.ended
				if took := time.Since(stopped); took != test.ends {
					t.Errorf("Run took %s to end, want %s", took, test.ends)
				}
				f.wait(time.Second)
				if diff := cmp.Diff(test.want, f.Bound()); diff != "" {
					t.Errorf("bound (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestRecreatedPod deletes a pod whose bind is in flight, and creates another with its name.
func TestRecreatedPod(t *testing.T) {
	run(t, 1, append(objects(), member("", "p")), func(f *harness) {
		f.Faults.Latency = time.Second
		f.place("", "n1")
		f.wait(500 * time.Millisecond)
		f.DeletePod("p")
		f.Create(with(member("", "p"), func(p *v1.Pod) {
			p.UID = "second"
			p.CreationTimestamp = metav1.Now()
		}))
		f.wait(time.Second)
		if diff := cmp.Diff([]string{"p Pending"}, f.describe()); diff != "" {
			t.Errorf("model (-want +got):\n%s", diff)
		}
		if free := f.Model().Node("n1").Idle[0]; free != 8000 {
			t.Errorf("%d milli-cpu are free on the node, want all 8000", free)
		}
		f.place("", "n2")
		f.wait(2 * time.Second)
		if diff := cmp.Diff([]string{"p n2"}, f.Bound()); diff != "" {
			t.Errorf("bound (-want +got):\n%s", diff)
		}
	})
}
