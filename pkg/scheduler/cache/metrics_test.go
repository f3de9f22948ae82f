package cache

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// waits notes how long pods and groups have waited.
type waits struct {
	noMetrics
	mu    sync.Mutex
	lines []string
}

func (n *waits) PodBound(wait time.Duration) { n.note("pod " + wait.Round(time.Millisecond).String()) }

func (n *waits) PodGroupScheduled(queue string, wait time.Duration) {
	n.note(fmt.Sprintf("group of %s %s", queue, wait.Round(time.Millisecond)))
}

func (n *waits) note(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

// TestWaits binds pods an hour after the first moment of the world.
func TestWaits(t *testing.T) {
	tests := map[string]struct {
		given []runtime.Object
		lead  func(*world) // before the placement
		want  []string
	}{
		"a group waits since its last pod has come": {
			given: []runtime.Object{group("g", 2), aged("g", "a", 0), aged("g", "b", 40*time.Minute)},
			want:  []string{"group of default 20m0s", "pod 1h0m0s", "pod 20m0s"},
		},
		"a group that comes after its pods waits since then": {
			given: []runtime.Object{late("g", 50*time.Minute), aged("g", "a", 0)},
			want:  []string{"group of default 10m0s", "pod 1h0m0s"},
		},
		"a group has started when the last bind is done": {
			given: []runtime.Object{group("g", 2), aged("g", "a", 0), aged("g", "b", 0)},
			lead: func(w *world) {
				w.pods.faults["b"] = []fault{{err: errNetwork, done: true}}
				w.pods.silent["b"] = 1
			},
			want: []string{"group of default 1h0m0.5s", "pod 1h0m0.5s", "pod 1h0m0s"},
		},
		"a group of which a bind was refused has not": {
			given: []runtime.Object{group("g", 2), aged("g", "a", 0), aged("g", "b", 0)},
			lead:  func(w *world) { w.pods.faults["b"] = []fault{{err: errDenied}} },
			want:  []string{"pod 1h0m0s"},
		},
		"surplus pods start no group": {
			given: []runtime.Object{group("g", 1), with(aged("g", "r", 0), bind("n1")), aged("g", "a", 0)},
			want:  []string{"pod 1h0m0s"},
		},
		"a pod without group starts none": {
			given: []runtime.Object{aged("", "a", 0)},
			want:  []string{"pod 1h0m0s"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, objects(test.given), func(w *world) {
				told := &waits{}
				w.binder.metrics = told
				time.Sleep(time.Hour)
				if test.lead != nil {
					test.lead(w)
				}
				w.place("", "n1")
				w.wait(10 * time.Second)
				slices.Sort(told.lines)
				if diff := cmp.Diff(test.want, told.lines); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// failures counts lists and watches that failed, by resource.
type failures struct {
	noMetrics
	count map[string]int
}

func (f failures) WatchFailed(resource string, times int) { f.count[resource] += times }

func TestFailedWatchesAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		given error
		want  int
	}{
		"a list that is forbidden":      {apierrors.NewForbidden(v1.Resource("pods"), "", errNetwork), 1},
		"a server that does not answer": {errNetwork, 1},
		"a watch that has expired":      {apierrors.NewResourceExpired("too old"), 0},
		"a watch that has ended":        {io.EOF, 0},
		"a watch that was cut":          {io.ErrUnexpectedEOF, 0},
	} {
		t.Run(name, func(t *testing.T) {
			told := failures{count: map[string]int{}}
			s := &source{name: "pods", metrics: told, log: testr.New(t)}
			s.failed(t.Context(), nil, test.given)
			if diff := cmp.Diff(test.want, told.count["pods"]); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

// start is when a bubble of synctest begins.
func start() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// aged is a member that was created some time after the start.
func aged(group, name string, after time.Duration) *v1.Pod {
	return with(member(group, name), func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(start().Add(after)) })
}

// late is a group of one that was created some time after the start.
func late(name string, after time.Duration) runtime.Object {
	g := group(name, 1)
	g.CreationTimestamp = metav1.NewTime(start().Add(after))
	return g
}

func bind(node string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.NodeName = node
		p.Status.Phase = v1.PodRunning
	}
}
