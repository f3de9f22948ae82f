// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

// deadline bounds the duration of a failing test on a real file system; passing tests are much faster.
const deadline = 20 * time.Second

var (
	allocateOnly = []byte("actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n")
	backfillOnly = []byte("actions: backfill\ntiers: [{plugins: [{name: gang}]}]\n")
	misspelt     = []byte("actions: alocate\n")
)

func watcherCatalog() Catalog {
	return Catalog{Actions: []string{"allocate", "backfill"}, Plugins: map[string]PluginInfo{"gang": {}}}
}

// outcome is what a watcher reported: the actions of a new configuration, or an error.
type outcome struct {
	actions []string
	err     error
}

// noPollClock is a clock on which a watcher never polls, so that it depends on notifications.
type noPollClock struct{ clock.RealClock }

func (c noPollClock) NewTimer(d time.Duration) clock.Timer {
	return noPolling{c.RealClock.NewTimer(d)}
}

type noPolling struct{ clock.Timer }

func (t noPolling) Reset(d time.Duration) bool {
	if d == pollPeriod {
		return t.Stop()
	}
	return t.Timer.Reset(d)
}

// watch loads the file and watches it until the test ends, by notifications alone.
func watch(t *testing.T, path string) <-chan outcome {
	t.Helper()
	w := NewWatcher(path, watcherCatalog(), noPollClock{})
	if _, _, err := w.Load(); err != nil {
		t.Fatal(err)
	}
	outcomes := make(chan outcome, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx, func(c *Configuration, _ []Warning, err error) {
			if err != nil {
				outcomes <- outcome{err: err}
				return
			}
			outcomes <- outcome{actions: c.Actions}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return outcomes
}

func next(t *testing.T, outcomes <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-outcomes:
		return o
	case <-time.After(deadline):
		t.Fatal("the watcher reported nothing")
		return outcome{}
	}
}

func wantActions(t *testing.T, outcomes <-chan outcome, want ...string) {
	t.Helper()
	got := next(t, outcomes)
	if got.err != nil {
		t.Fatalf("got error %v, want actions %v", got.err, want)
	}
	if diff := cmp.Diff(want, got.actions); diff != "" {
		t.Fatalf("actions (-want +got):\n%s", diff)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatcherReportsAFileWrittenInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scheduler.yaml")
	write(t, path, allocateOnly)
	outcomes := watch(t, path)
	write(t, path, backfillOnly)
	wantActions(t, outcomes, "backfill")
}

func TestWatcherReportsAFileRenamedIntoPlace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "scheduler.yaml")
	write(t, path, allocateOnly)
	outcomes := watch(t, path)
	for _, want := range []string{"backfill", "allocate"} { // a watch on the file itself would miss the second
		write(t, filepath.Join(dir, "new"), []byte("actions: "+want+"\ntiers: [{plugins: [{name: gang}]}]\n"))
		must(t, os.Rename(filepath.Join(dir, "new"), path))
		wantActions(t, outcomes, want)
	}
}

func TestWatcherFollowsConfigMapLinkSwaps(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "scheduler.yaml")
	// publish replaces all files the way the kubelet does: a new directory, and one rename of ..data.
	publish := func(version string, data []byte) {
		must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		write(t, filepath.Join(dir, version, "scheduler.yaml"), data)
		must(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	publish("..1", allocateOnly)
	must(t, os.Symlink(filepath.Join("..data", "scheduler.yaml"), path))
	outcomes := watch(t, path)

	publish("..2", backfillOnly)
	must(t, os.RemoveAll(filepath.Join(dir, "..1")))
	wantActions(t, outcomes, "backfill")

	publish("..3", allocateOnly)
	must(t, os.RemoveAll(filepath.Join(dir, "..2")))
	wantActions(t, outcomes, "allocate")
}

func TestWatcherContinuesAfterErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scheduler.yaml")
	write(t, path, allocateOnly)
	outcomes := watch(t, path)

	write(t, path, misspelt)
	var invalid *Error
	if got := next(t, outcomes); !errors.As(got.err, &invalid) {
		t.Fatalf("got %v, want the problems of the file", got)
	}

	// After an error, the configuration that was in force before is reported too.
	write(t, path, allocateOnly)
	wantActions(t, outcomes, "allocate")

	must(t, os.Remove(path))
	if got := next(t, outcomes); !errors.Is(got.err, fs.ErrNotExist) {
		t.Fatalf("got %v, want that the file is missing", got)
	}
	write(t, path, allocateOnly)
	wantActions(t, outcomes, "allocate")
}

func TestWatcherSeesAChangeBetweenLoadAndRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scheduler.yaml")
	write(t, path, allocateOnly)
	w := NewWatcher(path, watcherCatalog(), clock.RealClock{})
	if _, _, err := w.Load(); err != nil {
		t.Fatal(err)
	}
	write(t, path, backfillOnly)

	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var got []string
	w.Run(ctx, func(c *Configuration, _ []Warning, err error) {
		must(t, err)
		got = c.Actions
		cancel()
	})
	if diff := cmp.Diff([]string{"backfill"}, got); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// TestWatcherTiming runs on the fake time of synctest: each case changes the file at given times and expects reports
// at exact times.
func TestWatcherTiming(t *testing.T) {
	type act struct {
		at     time.Duration
		write  []byte // nil: remove the file
		notify string // the name in the notification of the file system; empty: none
	}
	type report struct {
		At  time.Duration
		Got string
	}
	for name, tc := range map[string]struct {
		given []act
		want  []report
	}{
		"without a change, nothing is reported": {},
		"a notification without a change is not reported": {
			given: []act{{at: time.Second, write: allocateOnly, notify: "scheduler.yaml"}},
		},
		"a change is read when the file does not change any more": {
			given: []act{
				{at: 1000 * time.Millisecond, write: misspelt[:5], notify: "scheduler.yaml"},
				{at: 1090 * time.Millisecond, write: misspelt, notify: "scheduler.yaml"},
				{at: 1180 * time.Millisecond, write: backfillOnly, notify: "scheduler.yaml"},
			},
			want: []report{{1380 * time.Millisecond, "backfill"}},
		},
		"a replaced ConfigMap link is a notification": {
			given: []act{{at: time.Second, write: backfillOnly, notify: "..data"}},
			want:  []report{{1200 * time.Millisecond, "backfill"}},
		},
		"notifications about other files are ignored, but polling finds the change": {
			given: []act{{at: time.Second, write: backfillOnly, notify: "other.yaml"}},
			want:  []report{{pollPeriod + debouncePeriod, "backfill"}},
		},
		"a file that is half written when polled is not used": {
			given: []act{{at: 9999 * time.Millisecond, write: misspelt[:5]}, {at: 10050 * time.Millisecond, write: backfillOnly}},
			want:  []report{{pollPeriod + 2*debouncePeriod, "backfill"}},
		},
		"a file that is missing temporarily is not reported": {
			given: []act{
				{at: time.Second, notify: "scheduler.yaml"},
				{at: 2050 * time.Millisecond, write: allocateOnly},
			},
		},
		"a file that is missing for longer is reported once, and again when it is back": {
			given: []act{
				{at: time.Second, notify: "scheduler.yaml"},
				{at: 30 * time.Second, write: allocateOnly, notify: "scheduler.yaml"},
			},
			want: []report{{2100 * time.Millisecond, "missing"}, {30200 * time.Millisecond, "allocate"}},
		},
		"the same error is reported once": {
			given: []act{
				{at: time.Second, write: misspelt, notify: "scheduler.yaml"},
				{at: 2 * time.Second, write: misspelt, notify: "scheduler.yaml"},
			},
			want: []report{{1200 * time.Millisecond, "rejected"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "scheduler.yaml")
			write(t, path, allocateOnly)
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				w := NewWatcher(path, watcherCatalog(), clock.RealClock{})
				if _, _, err := w.Load(); err != nil {
					t.Fatal(err)
				}
				var got []report
				reload := func(c *Configuration, _ []Warning, err error) {
					what := "rejected"
					if err == nil {
						what = c.Actions[0]
					} else if errors.Is(err, fs.ErrNotExist) {
						what = "missing"
					}
					got = append(got, report{time.Since(start), what})
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				events := make(chan fsnotify.Event)
				go func() {
					for _, a := range tc.given {
						<-time.After(a.at - time.Since(start))
						if a.write == nil {
							must(t, os.Remove(path))
						} else {
							write(t, path, a.write)
						}
						if a.notify != "" {
							events <- fsnotify.Event{Name: filepath.Join(filepath.Dir(path), a.notify)}
						}
					}
				}()
				w.watch(ctx, events, nil, func() time.Duration { return w.check(reload) })
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("reports (-want +got):\n%s", diff)
				}
			})
		})
	}
}
