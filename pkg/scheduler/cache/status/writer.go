// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/apicall"
)

const (
	// countsInterval and messageInterval are the least time between two writes of an object that
	// differ only in numbers: in counts and sums, or only in those of a message.
	countsInterval  = 2 * time.Second
	messageInterval = 10 * time.Second

	// reasonDebounce is how long a reason must last before it is written. The pods of a gang
	// arrive one by one, and most gangs start as soon as the last pod exists.
	reasonDebounce = time.Second
	// maxYield bounds how long one write yields to binds and evictions.
	maxYield = 200 * time.Millisecond
	// watchDelay is how long a writer waits for the watch to show its last write.
	watchDelay = 100 * time.Millisecond

	workers = 2 // per resource

	retryBase  = 200 * time.Millisecond
	retryLimit = 30 * time.Second
)

// patch is a write that makes an object show its desired status.
type patch struct {
	object klog.ObjectRef // for logs
	// base is the resource version of the object from which the patch was made. The write fails
	// with a conflict if the object has another one by then.
	base string
	// minInterval is the least time since the last write; zero if more than numbers changes.
	minInterval time.Duration
	// differFor is how long the desired status must have differed from what was written last.
	differFor time.Duration
	// debounced patches write a reason that the object does not show yet; see reasonDebounce.
	debounced bool
	// send writes and returns the new resource version.
	send func(ctx context.Context) (string, error)
	// sent is called after a successful write; may be nil.
	sent func()
}

// writer writes the status of the objects of one resource. It works on levels, not edges: whenever
// the desired status or the object changes, the writer compares both and writes the difference.
// Only the latest desired status counts. For each object, in this order:
//
//  1. No difference: no write, until one of the two changes.
//  2. The object is still the one from which the last write was made: the watch lags, compare again
//     after watchDelay. Otherwise the writer would write the same twice.
//  3. A new reason is less than reasonDebounce old, or only numbers differ and the last write is less
//     than minInterval ago, or they differ for less than differFor: compare again at that time.
//  4. Yield to binds and evictions for maxYield at most, compare once more, and write. After an error, retry with
//     exponential back-off, 200 ms to 30 s.
type writer[W any] struct {
	resource string // as RBAC rules name it
	debounce time.Duration
	equal    func(a, b W) bool
	// reason returns what a desired status says apart from numbers.
	reason func(W) string
	// patch compares a desired status with the object. It returns nil if they are equal, and false
	// if the object is gone or must not be written any more.
	patch func(W) (*patch, bool)

	clock clock.WithTicker
	log   logr.Logger
	yield func(context.Context, time.Duration)

	mu      sync.Mutex
	objects map[types.UID]*desired[W]
	// queue is nil before run.
	queue workqueue.TypedRateLimitingInterface[types.UID]
}

// desired is the status that one object should show.
type desired[W any] struct {
	value W
	since time.Time // when the reason of value became the present one
	// differs is when value first changed after the last write; zero if it has not, or if the object showed it since.
	differs time.Time
	// base is the resource version from which the last write was made. A patch from the same
	// version is too early.
	base    string
	written time.Time
}

// set sets the desired status of an object.
func (w *writer[W]) set(uid types.UID, value W) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.objects[uid]
	switch {
	case known == nil:
		w.objects[uid] = &desired[W]{value: value, since: w.clock.Now()}
	case w.equal(known.value, value):
		return
	default:
		if w.reason(known.value) != w.reason(value) {
			known.since = w.clock.Now()
		}
		if known.differs.IsZero() {
			known.differs = w.clock.Now()
		}
		known.value = value
	}
	w.add(uid)
}

// enqueue compares an object again, for it has changed.
func (w *writer[W]) enqueue(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.objects[uid] != nil {
		w.add(uid)
	}
}

func (w *writer[W]) add(uid types.UID) {
	if w.queue != nil {
		w.queue.Add(uid)
	}
}

// forget drops the desired status of an object.
func (w *writer[W]) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.objects, uid)
}

// observe is called when the watch shows an object, or its deletion.
func (w *writer[W]) observe(uid types.UID, deleted bool) {
	if deleted {
		w.forget(uid)
	} else {
		w.enqueue(uid)
	}
}

func (w *writer[W]) get(uid types.UID) (desired[W], bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.objects[uid]; known != nil {
		return *known, true
	}
	return desired[W]{}, false
}

// run writes until ctx is done.
func (w *writer[W]) run(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](retryBase, retryLimit),
		workqueue.TypedRateLimitingQueueConfig[types.UID]{Clock: w.clock})
	w.mu.Lock()
	w.queue = queue
	for uid := range w.objects {
		queue.Add(uid)
	}
	w.mu.Unlock()
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for uid, shutdown := queue.Get(); !shutdown; uid, shutdown = queue.Get() {
				if ctx.Err() == nil {
					w.write(ctx, uid)
				}
				queue.Done(uid)
			}
		})
	}
	running.Wait()
}

// write writes the status of one object, or queues it for later.
func (w *writer[W]) write(ctx context.Context, uid types.UID) {
	if w.next(uid) == nil {
		return
	}
	w.yield(ctx, maxYield)
	p := w.next(uid) // the desired status may have changed meanwhile
	if p == nil || ctx.Err() != nil {
		return
	}
	call, cancel := context.WithTimeout(ctx, apicall.Timeout)
	defer cancel()
	version, err := p.send(call)
	switch {
	case err == nil:
		w.queue.Forget(uid)
		w.wrote(uid, p, version)
	case apierrors.IsNotFound(err):
		w.queue.Forget(uid)
		w.forget(uid)
	case apierrors.IsConflict(err):
		w.queue.AddRateLimited(uid)
	case ctx.Err() == nil:
		if apicall.Permanent(err) {
			w.log.Error(err, "Status update failed", "object", p.object)
		} else {
			w.log.V(2).Info("Status update failed", "object", p.object, "err", err)
		}
		w.queue.AddRateLimited(uid)
	}
}

// next returns the write that an object needs now. It returns nil if it needs none, or needs it
// later; then the object is queued for that time.
func (w *writer[W]) next(uid types.UID) *patch {
	want, ok := w.get(uid)
	if !ok {
		w.queue.Forget(uid)
		return nil
	}
	p, ok := w.patch(want.value)
	switch {
	case !ok:
		w.forget(uid)
		return nil
	case p == nil:
		w.queue.Forget(uid)
		w.shown(uid, want.value)
		return nil
	case p.base != "" && p.base == want.base:
		w.queue.AddAfter(uid, watchDelay)
		return nil
	}
	if wait := w.debounce - w.clock.Since(want.since); p.debounced && wait > 0 {
		w.queue.AddAfter(uid, wait)
		return nil
	}
	if wait := p.minInterval - w.clock.Since(want.written); !want.written.IsZero() && wait > 0 {
		w.queue.AddAfter(uid, wait)
		return nil
	}
	if wait := p.differFor - w.clock.Since(want.differs); !want.differs.IsZero() && wait > 0 {
		w.queue.AddAfter(uid, wait)
		return nil
	}
	return p
}

// shown records that an object shows its desired status.
func (w *writer[W]) shown(uid types.UID, value W) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.objects[uid]; known != nil && w.equal(known.value, value) {
		known.differs = time.Time{}
	}
}

// wrote records a successful write.
func (w *writer[W]) wrote(uid types.UID, p *patch, version string) {
	if p.sent != nil {
		p.sent()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.objects[uid]; known != nil {
		known.written, known.differs = w.clock.Now(), time.Time{}
		if version != p.base { // otherwise the write changed nothing, and the watch shows nothing
			known.base = p.base
		}
	}
}
