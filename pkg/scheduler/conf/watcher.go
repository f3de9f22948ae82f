// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// debouncePeriod is how long a file must not change before it is read, and then stay equal before it is used, so that
	// a file that is being written is not used.
	debouncePeriod = 100 * time.Millisecond

	// missingGrace is how long a file may be missing, for example while an editor replaces it, before that is reported.
	missingGrace = time.Second

	// pollPeriod is how often the file is read without a notification. Notifications cover the directory of the file;
	// polling covers links to other directories, network file systems, and a directory that is replaced.
	pollPeriod = 10 * time.Second
)

// configMapLink is the symbolic link that the kubelet replaces to update all files of a mounted ConfigMap atomically.
const configMapLink = "..data"

// Reload receives the result of a change of the file: a new configuration with its warnings, or an error, after which
// the previous configuration stays in force.
type Reload func(*Configuration, []Warning, error)

// Watcher loads a configuration file and reloads it whenever its content changes. It supports the link replacement of
// mounted ConfigMaps, editors that write a new file and rename it, and a file that is temporarily missing.
type Watcher struct {
	path    string
	catalog Catalog
	clock   clock.Clock

	found    fileState // by the last check
	reported fileState // last; Load counts as a report
}

// fileState is the result of one check of the file.
type fileState struct {
	content string
	missing bool // or not readable
}

// NewWatcher returns a watcher and does not read the file. Load must be called before Run; neither may be called
// concurrently.
func NewWatcher(path string, catalog Catalog, clock clock.Clock) *Watcher {
	return &Watcher{path: path, catalog: catalog, clock: clock}
}

// Load reads the file as the function Load does, and records its content, so that Run reports only changes to it.
func (w *Watcher) Load() (*Configuration, []Warning, error) {
	data, err := Read(w.path)
	if err != nil {
		return nil, nil, err
	}
	w.found = fileState{content: string(data)}
	w.reported = w.found
	return Parse(w.path, data, w.catalog)
}

// Run watches the file until ctx ends. It calls reload, on the same goroutine, once for each change of the content and
// once when the file can no longer be read. No error ends it.
func (w *Watcher) Run(ctx context.Context, reload Reload) {
	notifications, err := fsnotify.NewWatcher()
	if err != nil {
		klog.FromContext(ctx).Error(err, "Watch of the scheduler configuration failed", "file", w.path, "pollPeriod", pollPeriod)
		w.watch(ctx, nil, nil, func() time.Duration { return w.check(reload) })
		return
	}
	defer func() { _ = notifications.Close() }()
	w.watch(ctx, notifications.Events, notifications.Errors, func() time.Duration {
		// The watch ends with its directory, so every check renews it. Without a directory there is no file either,
		// which check reports.
		_ = notifications.Add(filepath.Dir(w.path))
		return w.check(reload)
	})
}

// watch calls check immediately, debouncePeriod after each notification, and after the period that the last call
// returned.
func (w *Watcher) watch(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error, check func() time.Duration) {
	due := w.clock.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			if w.concerns(event) {
				due.Reset(debouncePeriod)
			}
		case <-errs:
			// Notifications were lost; the file may have changed.
			due.Reset(debouncePeriod)
		case <-due.C():
			due.Reset(check())
		}
	}
}

// concerns reports whether a notification about the directory may be a change of the file.
func (w *Watcher) concerns(event fsnotify.Event) bool {
	name := filepath.Base(event.Name)
	return name == filepath.Base(w.path) || name == configMapLink
}

// check reads the file, reports a change if two checks in a row find the same content, and returns the time until the
// next check.
func (w *Watcher) check(reload Reload) (next time.Duration) {
	data, err := Read(w.path)
	now := fileState{content: string(data), missing: err != nil}
	before := w.found
	w.found = now
	switch {
	case now == w.reported:
		return pollPeriod
	case now != before && now.missing:
		return missingGrace
	case now != before:
		return debouncePeriod
	}
	w.reported = now
	if err != nil {
		reload(nil, nil, err)
	} else {
		reload(Parse(w.path, data, w.catalog))
	}
	return pollPeriod
}
