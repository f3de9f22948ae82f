// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest/fakecluster"
)

// externalReservation takes some time to commit and may fail. It records what happens to it.
type externalReservation struct {
	calls         *externalCalls
	pod           string
	takes         time.Duration
	err           error
	ignoresCancel bool // Commit does not end with its context
}

func (e *externalReservation) Commit(ctx context.Context) error {
	if e.ignoresCancel {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-time.After(e.takes):
	case <-ctx.Done():
		e.note("cancelled")
		return ctx.Err()
	}
	if e.err != nil {
		return e.err
	}
	e.note("committed")
	return nil
}

func (e *externalReservation) Release() { e.note("released") }

func (e *externalReservation) note(what string) {
	e.calls.mu.Lock()
	defer e.calls.mu.Unlock()
	e.calls.lines = append(e.calls.lines, fmt.Sprintf("%s %s %s", time.Since(e.calls.start), e.pod, what))
}

// externalCalls is a transcript of the calls of external reservations.
type externalCalls struct {
	mu    sync.Mutex
	start time.Time
	lines []string
}

// reserveExternal adds an external reservation to the next placement of a pod.
func (f *harness) reserveExternal(pod string, takes time.Duration, err error) {
	f.external[pod] = []api.ExternalReservation{&externalReservation{calls: &f.externalCalls, pod: pod, takes: takes, err: err}}
}

// transcript returns the calls of external reservations and the binds that were sent, with their times.
func (f *harness) transcript() []string {
	f.externalCalls.mu.Lock()
	defer f.externalCalls.mu.Unlock()
	lines := append(f.Faults.Binds(), f.externalCalls.lines...)
	fakecluster.SortByTime(lines)
	return lines
}

func TestPrepare(t *testing.T) {
	errFull := errors.New("claim data: no space left")
	tests := map[string]struct {
		// given commits gang g of three pods, which starts as a whole, or other pods.
		given func(*harness)
		calls []string
		model []string // after ten seconds
	}{
		"no pod is bound before all are prepared": {
			given: func(f *harness) {
				f.reserveExternal("g-0", 2*time.Second, nil)
				f.reserveExternal("g-2", 5*time.Second, nil)
				f.place("g", "n1")
			},
			calls: []string{"2s g-0 committed", "5s g-0 to n1", "5s g-1 to n1", "5s g-2 committed", "5s g-2 to n1"},
			model: []string{"g-0 Bound n1", "g-1 Bound n1", "g-2 Bound n1"},
		},
		"if one pod fails, the others are cancelled and none is bound": {
			given: func(f *harness) {
				f.reserveExternal("g-0", time.Second, nil)
				f.reserveExternal("g-1", 2*time.Second, errFull)
				f.reserveExternal("g-2", 5*time.Second, nil)
				f.place("g", "n1")
			},
			calls: []string{"1s g-0 committed", "2s g-0 released", "2s g-1 released", "2s g-2 cancelled", "2s g-2 released"},
			model: []string{"g-0 Pending", "g-1 Pending", "g-2 Pending"},
		},
		"a prepared pod that cannot be bound releases its reservations": {
			given: func(f *harness) {
				f.Faults.Bind["g-1"] = []fault{{Err: fakecluster.ErrDenied}}
				f.reserveExternal("g-1", 2*time.Second, nil)
				f.place("g", "n1")
			},
			calls: []string{"2s g-0 to n1", "2s g-1 committed", "2s g-1 to n1", "2s g-2 to n1", "2.5s g-1 released"},
			model: []string{"g-0 Bound n1", "g-1 Pending", "g-2 Bound n1"},
		},
		"other pods are bound meanwhile": {
			given: func(f *harness) {
				f.reserveExternal("g-0", 2*time.Second, nil)
				f.place("g", "n1")
				f.Create(member("", "p"))
				f.converge()
				f.place("", "n2")
			},
			calls: []string{"0s p to n2", "2s g-0 committed", "2s g-0 to n1", "2s g-1 to n1", "2s g-2 to n1"},
			model: []string{"g-0 Bound n1", "g-1 Bound n1", "g-2 Bound n1", "p Bound n2"},
		},
		"a surplus pod is not bound before its gang": {
			given: func(f *harness) {
				f.reserveExternal("g-0", 2*time.Second, nil)
				f.place("g", "n1")
				f.Create(member("g", "late"))
				f.converge()
				f.place("g", "n2")
			},
			calls: []string{"2s g-0 committed", "2s g-0 to n1", "2s g-1 to n1", "2s g-2 to n1", "2s late to n2"},
			model: []string{"g-0 Bound n1", "g-1 Bound n1", "g-2 Bound n1", "late Bound n2"},
		},
		"a surplus pod is prepared once its gang is": {
			given: func(f *harness) {
				f.reserveExternal("g-0", 2*time.Second, nil)
				f.reserveExternal("late", 3*time.Second, nil)
				f.place("g", "n1")
				f.Create(member("g", "late"))
				f.converge()
				f.place("g", "n2")
			},
			calls: []string{"2s g-0 committed", "2s g-0 to n1", "2s g-1 to n1", "2s g-2 to n1", "5s late committed", "5s late to n2"},
			model: []string{"g-0 Bound n1", "g-1 Bound n1", "g-2 Bound n1", "late Bound n2"},
		},
		"a surplus pod is released with its gang": {
			given: func(f *harness) {
				f.reserveExternal("g-0", 2*time.Second, errFull)
				f.reserveExternal("late", 0, nil)
				f.place("g", "n1")
				f.Create(member("g", "late"))
				f.converge()
				f.place("g", "n2")
			},
			calls: []string{"2s g-0 released", "2s late released"},
			model: []string{"g-0 Pending", "g-1 Pending", "g-2 Pending", "late Pending"},
		},
		"a running gang is independent of the preparation of a surplus pod": {
			given: func(f *harness) {
				f.place("g", "n1")
				f.wait(time.Second)
				f.Create(member("g", "late"))
				f.reserveExternal("late", time.Second, errFull)
				f.converge()
				f.place("g", "n2")
				f.Create(member("g", "later"))
				f.converge()
				f.place("g", "n2")
			},
			calls: []string{"0s g-0 to n1", "0s g-1 to n1", "0s g-2 to n1", "1s later to n2", "2s late released"},
			model: []string{"g-0 Bound n1", "g-1 Bound n1", "g-2 Bound n1", "late Pending", "later Bound n2"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, 1, objects(gang("g", 3)), func(f *harness) {
				test.given(f)
				f.wait(10 * time.Second)
				if diff := cmp.Diff(test.calls, f.transcript()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.model, f.describe()); diff != "" {
					t.Errorf("model (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestJobBackoff commits a gang whenever it may be tried, and compares when that is.
func TestJobBackoff(t *testing.T) {
	run(t, 1, objects(gang("g", 2)), func(f *harness) {
		var tries []string
		job := f.tasks()[0].Job
		for f.Elapsed() < 10*time.Second {
			switch verdict := f.Model().Admissible(job); {
			case job.Waiting() == 0:
			case verdict == nil:
				tries = append(tries, f.Elapsed().String())
				f.reserveExternal("g-1", 0, errors.New("claim data: no space left"))
				f.place("g", "n1")
			case verdict.Reason != "ClaimsNotReady" || verdict.Message(f.Model().Dims()) != "claim data: no space left":
				t.Fatalf("backs off because of %s: %s", verdict.Reason, verdict.Message(f.Model().Dims()))
			}
			f.wait(100 * time.Millisecond)
			f.Rebuild() // keeps the back-off
			f.Model().Events().Recompute()
			job = f.tasks()[0].Job
		}
		if diff := cmp.Diff([]string{"0s", "500ms", "1.5s", "3.5s", "7.5s"}, tries); diff != "" {
			t.Errorf("tries (-want +got):\n%s", diff)
		}
		note := "event on PodGroup g: ClaimsNotReady: claim data: no space left"
		if lines := f.Written(); !slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(line, note) }) {
			t.Errorf("written, without %s:\n%s", note, strings.Join(lines, "\n"))
		}
		if f.Model().Node("n1").Idle[api.Pods] != f.Model().Node("n2").Idle[api.Pods] {
			t.Error("the gang holds resources during its back-off")
		}
	})
}

// TestStopWhilePreparing stops while a gang is prepared and a surplus pod follows it.
func TestStopWhilePreparing(t *testing.T) {
	run(t, 1, objects(gang("g", 2)), func(f *harness) {
		f.reserveExternal("g-0", time.Minute, nil)
		f.place("g", "n1")
		f.Create(member("g", "late"))
		f.converge()
		f.place("g", "n1")
		f.wait(time.Second)
		f.stop()
		<-f.ended
		if diff := cmp.Diff([]string{"1s g-0 cancelled", "1s g-0 released"}, f.transcript()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{}, f.Bound()); diff != "" {
			t.Errorf("bound (-want +got):\n%s", diff)
		}
	})
}

// TestStopOncePrepared stops before the preparation of a gang succeeds: its reservations are released.
func TestStopOncePrepared(t *testing.T) {
	run(t, 1, objects(gang("g", 2)), func(f *harness) {
		f.reserveExternal("g-0", 2*time.Second, nil)
		f.external["g-0"][0].(*externalReservation).ignoresCancel = true
		f.place("g", "n1")
		f.wait(time.Second)
		f.stop()
		<-f.ended
		if diff := cmp.Diff([]string{"2s g-0 committed", "2s g-0 released"}, f.transcript()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// TestPreparedPodIsDeleted deletes a pod while its gang is prepared: the bind fails and is verified.
func TestPreparedPodIsDeleted(t *testing.T) {
	run(t, 1, objects(gang("g", 2)), func(f *harness) {
		f.reserveExternal("g-0", time.Second, nil)
		f.place("g", "n1")
		f.DeletePod("g-1")
		f.wait(2 * time.Second)
		if diff := cmp.Diff([]string{"g-0 Bound n1"}, f.describe()); diff != "" {
			t.Errorf("model (-want +got):\n%s", diff)
		}
	})
}
