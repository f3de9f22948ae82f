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
	// settlePeriod is how long a file must be left alone before it is read, and then stay the same
	// before it counts, so that one that is being written is not taken half.
	settlePeriod = 100 * time.Millisecond

	// missingGrace is how long a file may be missing, as while an editor replaces it, before that
	// is reported.
	missingGrace = time.Second

	// pollPeriod is how often the file is read without any notice of a change. Notices cover the
	// directory of the file; polling covers what they miss: links to other directories, network
	// file systems, a directory that was itself replaced.
	pollPeriod = 10 * time.Second
)

// configMapLink is the name that the kubelet points elsewhere to replace all files of a mounted
// ConfigMap at once.
const configMapLink = "..data"

// Reload receives what became of a change of the file: a new configuration with its warnings, or
// the error that keeps the old one in force.
type Reload func(*Configuration, []Warning, error)

// Watcher loads a configuration file and loads it again whenever its content changes. It copes
// with the link swaps of mounted ConfigMaps, with editors that write a new file and rename it, and
// with a file that is missing for a while.
type Watcher struct {
	path    string
	catalog Catalog
	clock   clock.Clock

	found    sight // at the last look
	reported sight // last; what was loaded counts as reported
}

// sight is what a look at the file shows.
type sight struct {
	content string
	missing bool // or not readable
}

// NewWatcher returns a watcher of the file that reads nothing yet. Load comes before Run; neither
// may be called twice at once.
func NewWatcher(path string, catalog Catalog, clock clock.Clock) *Watcher {
	return &Watcher{path: path, catalog: catalog, clock: clock}
}

// Load reads the file as the function Load does, and notes its content, so that Run reports only
// what differs from it.
func (w *Watcher) Load() (*Configuration, []Warning, error) {
	data, err := read(w.path)
	if err != nil {
		return nil, nil, err
	}
	w.found = sight{content: string(data)}
	w.reported = w.found
	return Parse(w.path, data, w.catalog)
}

// Run watches the file until ctx ends and calls reload, on the same goroutine, once for each change
// of its content and once when the file can no longer be read. No error ends it.
func (w *Watcher) Run(ctx context.Context, reload Reload) {
	notices, err := fsnotify.NewWatcher()
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot watch the scheduler configuration, reading it periodically instead",
			"file", w.path, "period", pollPeriod)
		w.follow(ctx, nil, nil, func() time.Duration { return w.look(reload) })
		return
	}
	defer func() { _ = notices.Close() }()
	w.follow(ctx, notices.Events, notices.Errors, func() time.Duration {
		// The watch ends with its directory, so it is renewed each time. When there is no
		// directory there is no file either, and look says so.
		_ = notices.Add(filepath.Dir(w.path))
		return w.look(reload)
	})
}

// follow looks at the file at once, soon after each notice, and whenever the period that the last
// look asked for is over. Nil channels never give notice.
func (w *Watcher) follow(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error, look func() time.Duration) {
	due := w.clock.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			if w.concerns(event) {
				due.Reset(settlePeriod)
			}
		case <-errs:
			// Notices were lost; the file may have changed.
			due.Reset(settlePeriod)
		case <-due.C():
			due.Reset(look())
		}
	}
}

// concerns tells whether a notice about the directory may mean a change of the file.
func (w *Watcher) concerns(event fsnotify.Event) bool {
	name := filepath.Base(event.Name)
	return name == filepath.Base(w.path) || name == configMapLink
}

// look reads the file, reports what is new if two looks in a row find it the same, and returns when
// to look again.
func (w *Watcher) look(reload Reload) (next time.Duration) {
	data, err := read(w.path)
	now := sight{content: string(data), missing: err != nil}
	before := w.found
	w.found = now
	switch {
	case now == w.reported:
		return pollPeriod
	case now != before && now.missing:
		return missingGrace
	case now != before:
		return settlePeriod
	}
	w.reported = now
	if err != nil {
		reload(nil, nil, err)
	} else {
		reload(Parse(w.path, data, w.catalog))
	}
	return pollPeriod
}
