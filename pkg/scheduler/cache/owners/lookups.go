// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/kindwatch"
)

// An object that pods name is looked up firstLookup after it is missing, because an informer shows most objects before, and
// then again after pauses that double up to maxPause.
const (
	firstLookup = 500 * time.Millisecond
	maxPause    = 30 * time.Second
)

// lookups are the objects that pods name and that no informer has shown.
type lookups struct {
	kinds  *kindwatch.Watcher
	gone   func(api.OwnerRef)
	signal chan struct{}

	mu   sync.Mutex
	refs map[api.OwnerRef]*lookup
}

type lookup struct {
	due   time.Time
	pause time.Duration // after the next lookup
}

func newLookups(kinds *kindwatch.Watcher, gone func(api.OwnerRef)) *lookups {
	return &lookups{kinds: kinds, gone: gone, signal: make(chan struct{}, 1), refs: map[api.OwnerRef]*lookup{}}
}

func (l *lookups) set(refs []api.OwnerRef) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.refs
	l.refs = make(map[api.OwnerRef]*lookup, len(refs))
	for _, ref := range refs {
		if l.refs[ref] = before[ref]; l.refs[ref] == nil {
			l.refs[ref] = &lookup{due: l.kinds.Clock.Now().Add(firstLookup), pause: 2 * firstLookup}
		}
	}
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

// run looks objects up until ctx ends.
func (l *lookups) run(ctx context.Context) {
	for {
		due, next := l.next()
		for _, ref := range due {
			l.find(ctx, ref)
		}
		if len(due) > 0 {
			continue
		}
		timer := l.kinds.Clock.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-l.signal:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// next returns the objects to look up now, sorted, or after which time the next one is due.
func (l *lookups) next() (due []api.OwnerRef, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.kinds.Clock.Now()
	after = time.Hour
	for ref, at := range l.refs {
		if wait := at.due.Sub(now); wait > 0 {
			after = min(after, wait)
			continue
		}
		at.due, at.pause = now.Add(at.pause), min(2*at.pause, maxPause)
		due = append(due, ref)
	}
	slices.SortFunc(due, api.OwnerRef.Compare)
	return due, after
}

// find reports an object as gone if the API server says so. If the object exists, its informer is going to show it.
func (l *lookups) find(ctx context.Context, ref api.OwnerRef) {
	kind, feed := l.kinds.Find(ref.Kind)
	switch {
	case ctx.Err() != nil || kind == nil:
	case feed == nil:
		switch served, known := l.kinds.Served(kind); {
		case known && served == nil:
			l.gone(ref)
		case known: // since the last question
			l.kinds.AskNow()
		}
	case !feed.Synced(): // the list has failed, and the informer repeats it
	default:
		found, err := l.kinds.Dynamic.Resource(feed.Resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && !ref.Names(found.GetUID()) {
			l.gone(ref)
		} else if err != nil {
			l.kinds.Log.V(2).Info("Lookup of an owner failed", "kind", ref.Kind, "namespace", ref.Namespace, "name", ref.Name, "err", err)
		}
	}
}
