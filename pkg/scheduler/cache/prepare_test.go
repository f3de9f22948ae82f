package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// errand is a reservation that takes its time and may fail.
type errand struct {
	w     *world
	pod   string
	takes time.Duration
	err   error
	deaf  bool // does not notice that it should break off
}

func (e *errand) Commit(ctx context.Context) error {
	if e.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-time.After(e.takes):
	case <-ctx.Done():
		e.note("broken off")
		return ctx.Err()
	}
	if e.err != nil {
		return e.err
	}
	e.note("fulfilled")
	return nil
}

func (e *errand) Release() { e.note("cancelled") }

func (e *errand) note(what string) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.w.errandsRun = append(e.w.errandsRun, fmt.Sprintf("%s %s %s", e.w.elapsed(), e.pod, what))
}

// errand lets the next placement of a pod reserve something.
func (w *world) errand(pod string, takes time.Duration, err error) {
	if w.errands == nil {
		w.errands = map[string][]api.ExternalReservation{}
	}
	w.errands[pod] = []api.ExternalReservation{&errand{w: w, pod: pod, takes: takes, err: err}}
}

// ran returns what became of errands, and which binds were sent, with their times.
func (w *world) ran() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := append(w.pods.binds(), w.errandsRun...)
	slices.SortFunc(lines, func(a, b string) int {
		at := func(line string) time.Duration {
			moment, _, _ := strings.Cut(line, " ")
			d, _ := time.ParseDuration(moment)
			return d
		}
		if at(a) != at(b) {
			return int(at(a) - at(b))
		}
		return strings.Compare(a, b)
	})
	return lines
}

func TestPreparation(t *testing.T) {
	broken := errors.New("claim data: no space left")
	tests := map[string]struct {
		// given commits a gang of three that starts as a whole, g, or others.
		given func(*world)
		ran   []string
		model []string // after ten seconds
	}{
		"nobody is bound before everything is prepared": {
			given: func(w *world) {
				w.errand("g-0", 2*time.Second, nil)
				w.errand("g-2", 5*time.Second, nil)
				w.place("g", "n1")
			},
			ran:   []string{"2s g-0 fulfilled", "5s g-0 to n1", "5s g-1 to n1", "5s g-2 fulfilled", "5s g-2 to n1"},
			model: []string{"g-0 Bound n1", "g-1 Bound n1", "g-2 Bound n1"},
		},
		"if one fails, the others are broken off and nobody is bound": {
			given: func(w *world) {
				w.errand("g-0", time.Second, nil)
				w.errand("g-1", 2*time.Second, broken)
				w.errand("g-2", 5*time.Second, nil)
				w.place("g", "n1")
			},
			ran:   []string{"1s g-0 fulfilled", "2s g-0 cancelled", "2s g-1 cancelled", "2s g-2 broken off", "2s g-2 cancelled"},
			model: []string{"g-0 Pending", "g-1 Pending", "g-2 Pending"},
		},
		"who is prepared and cannot be bound gives back what was prepared": {
			given: func(w *world) {
				w.pods.faults["g-1"] = []fault{{err: errDenied}}
				w.errand("g-1", 2*time.Second, nil)
				w.place("g", "n1")
			},
			ran:   []string{"2s g-0 to n1", "2s g-1 fulfilled", "2s g-1 to n1", "2s g-2 to n1", "2.5s g-1 cancelled"},
			model: []string{"g-0 Bound n1", "g-1 Pending", "g-2 Bound n1"},
		},
		"other gangs do not wait": {
			given: func(w *world) {
				w.errand("g-0", 2*time.Second, nil)
				w.place("g", "n1")
				w.create(member("", "p"))
				w.settle()
				w.place("", "n2")
			},
			ran:   []string{"0s p to n2", "2s g-0 fulfilled", "2s g-0 to n1", "2s g-1 to n1", "2s g-2 to n1"},
			model: []string{"g-0 Bound n1", "g-1 Bound n1", "g-2 Bound n1", "p Bound n2"},
		},
		"a surplus pod is not bound before its gang": {
			given: func(w *world) {
				w.errand("g-0", 2*time.Second, nil)
				w.place("g", "n1")
				w.create(member("g", "late"))
				w.settle()
				w.place("g", "n2")
			},
			ran:   []string{"2s g-0 fulfilled", "2s g-0 to n1", "2s g-1 to n1", "2s g-2 to n1", "2s late to n2"},
			model: []string{"g-0 Bound n1", "g-1 Bound n1", "g-2 Bound n1", "late Bound n2"},
		},
		"a surplus pod is prepared once its gang is": {
			given: func(w *world) {
				w.errand("g-0", 2*time.Second, nil)
				w.errand("late", 3*time.Second, nil)
				w.place("g", "n1")
				w.create(member("g", "late"))
				w.settle()
				w.place("g", "n2")
			},
			ran:   []string{"2s g-0 fulfilled", "2s g-0 to n1", "2s g-1 to n1", "2s g-2 to n1", "5s late fulfilled", "5s late to n2"},
			model: []string{"g-0 Bound n1", "g-1 Bound n1", "g-2 Bound n1", "late Bound n2"},
		},
		"a surplus pod falls with its gang": {
			given: func(w *world) {
				w.errand("g-0", 2*time.Second, broken)
				w.errand("late", 0, nil)
				w.place("g", "n1")
				w.create(member("g", "late"))
				w.settle()
				w.place("g", "n2")
			},
			ran:   []string{"2s g-0 cancelled", "2s late cancelled"},
			model: []string{"g-0 Pending", "g-1 Pending", "g-2 Pending", "late Pending"},
		},
		"a gang that runs does not wait for a surplus pod, nor falls with it": {
			given: func(w *world) {
				w.place("g", "n1")
				w.wait(time.Second)
				w.create(member("g", "late"))
				w.errand("late", time.Second, broken)
				w.settle()
				w.place("g", "n2")
				w.create(member("g", "later"))
				w.settle()
				w.place("g", "n2")
			},
			ran:   []string{"0s g-0 to n1", "0s g-1 to n1", "0s g-2 to n1", "1s later to n2", "2s late cancelled"},
			model: []string{"g-0 Bound n1", "g-1 Bound n1", "g-2 Bound n1", "late Pending", "later Bound n2"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, objects(gang("g", 3)), func(w *world) {
				test.given(w)
				w.wait(10 * time.Second)
				if diff := cmp.Diff(test.ran, w.ran()); diff != "" {
					t.Errorf("what happened (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.model, w.model()); diff != "" {
					t.Errorf("model (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestPutOff lets a cycle try a gang whenever it may be tried, and looks when that is.
func TestPutOff(t *testing.T) {
	inWorld(t, 1, objects(gang("g", 2)), func(w *world) {
		var tries []string
		job := w.tasks()[0].Job
		for w.elapsed() < 10*time.Second {
			switch verdict := w.Model().Admissible(job); {
			case job.Waiting() == 0:
			case verdict == nil:
				tries = append(tries, w.elapsed().String())
				w.errand("g-1", 0, errors.New("claim data: no space left"))
				w.place("g", "n1")
			case verdict.Reason != "ClaimsNotReady" || verdict.Message(w.Model().Dims) != "claim data: no space left":
				t.Fatalf("put off because of %s: %s", verdict.Reason, verdict.Message(w.Model().Dims))
			}
			w.wait(100 * time.Millisecond)
			w.Rebuild() // what is put off stays so
			w.Model().Recompute()
			job = w.tasks()[0].Job
		}
		if diff := cmp.Diff([]string{"0s", "500ms", "1.5s", "3.5s", "7.5s"}, tries); diff != "" {
			t.Errorf("tries (-want +got):\n%s", diff)
		}
		note := "event on PodGroup g: ClaimsNotReady: claim data: no space left"
		if lines := w.written(); !slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(line, note) }) {
			t.Errorf("written, without %s:\n%s", note, strings.Join(lines, "\n"))
		}
		if w.Model().Node("n1").Idle[api.Pods] != w.Model().Node("n2").Idle[api.Pods] {
			t.Error("while it is put off the gang holds room")
		}
	})
}

// TestStopWhilePreparing stops while one gang is prepared and another waits for its turn.
func TestStopWhilePreparing(t *testing.T) {
	inWorld(t, 1, objects(gang("g", 2)), func(w *world) {
		w.errand("g-0", time.Minute, nil)
		w.place("g", "n1")
		w.create(member("g", "late"))
		w.settle()
		w.place("g", "n1")
		w.wait(time.Second)
		w.stop()
		<-w.ended
		if diff := cmp.Diff([]string{"1s g-0 broken off", "1s g-0 cancelled"}, w.ran()); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{}, w.bound()); diff != "" {
			t.Errorf("bound (-want +got):\n%s", diff)
		}
	})
}

// TestStopOncePrepared stops before a gang is prepared, which ends well all the same: what was done is given back.
func TestStopOncePrepared(t *testing.T) {
	inWorld(t, 1, objects(gang("g", 2)), func(w *world) {
		w.errand("g-0", 2*time.Second, nil)
		w.errands["g-0"][0].(*errand).deaf = true
		w.place("g", "n1")
		w.wait(time.Second)
		w.stop()
		<-w.ended
		if diff := cmp.Diff([]string{"2s g-0 cancelled", "2s g-0 fulfilled"}, w.ran()); diff != "" {
			t.Errorf("what happened (-want +got):\n%s", diff)
		}
	})
}

// TestPreparedPodIsGone deletes a pod while its gang is prepared: the bind finds out, as without preparation.
func TestPreparedPodIsGone(t *testing.T) {
	inWorld(t, 1, objects(gang("g", 2)), func(w *world) {
		w.errand("g-0", time.Second, nil)
		w.place("g", "n1")
		w.deletePod("g-1")
		w.wait(2 * time.Second)
		if diff := cmp.Diff([]string{"g-0 Bound n1"}, w.model()); diff != "" {
			t.Errorf("model (-want +got):\n%s", diff)
		}
	})
}
