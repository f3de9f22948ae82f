package cache

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

const (
	// countsPause and messagePause are between two writes of the same object as long as only numbers change:
	// counts and sums, or no more than what is in a message.
	countsPause  = 2 * time.Second
	messagePause = 10 * time.Second

	// patience is how long a reason to wait must last before it is told: the pods of a gang
	// arrive one by one, and most gangs start as soon as the last is there.
	patience = time.Second
	// statusPatience is how long a write of a status gives way to binds.
	statusPatience = 200 * time.Millisecond
	// watchLag is how long to wait for the watch to show what was written.
	watchLag = 100 * time.Millisecond

	statusWorkers = 2 // per kind

	retryBase  = 200 * time.Millisecond
	retryLimit = 30 * time.Second
)

// statuses are the writers of all kinds. Each has workers of its own, so that thousands of
// waiting pods do not hold up the status of their group.
type statuses struct {
	groups *writer[api.PodGroupReport]
	queues *writer[api.QueueReport]
	pods   *writer[api.PodReport]
}

// draft is a write that would make an object show what it should.
type draft struct {
	// base is the resource version of the object that the draft was made from. The write fails
	// with a conflict if the object is not at it any more.
	base string
	// pause is how long after the last write this one may come. It is zero if more than numbers changes.
	pause time.Duration
	// waits drafts tell a reason to wait that the object does not show yet.
	waits bool
	// send writes and returns the new resource version.
	send func(ctx context.Context) (string, error)
	// sent is called after a successful write; may be nil.
	sent func()
}

// writer lets the objects of one kind show what they should. It works off levels, not edges:
// whenever the wish or the object changes, both are compared, and the difference, if there is
// one, is written. The latest wish wins.
type writer[W any] struct {
	resource string // as RBAC rules name it
	patience time.Duration
	equal    func(a, b W) bool
	// reason is what a wish says apart from numbers.
	reason func(W) string
	// draft compares; it returns nil if there is nothing to write, and false if the object is
	// gone or no longer of a kind to be written.
	draft func(W) (*draft, bool)

	clock clock.WithTicker
	log   logr.Logger
	calm  func(context.Context, time.Duration)

	mu     sync.Mutex
	wishes map[types.UID]*wish[W]
	// queue is nil before run.
	queue workqueue.TypedRateLimitingInterface[types.UID]
}

type wish[W any] struct {
	value W
	since time.Time // when value got its present reason
	// base is the version that the last write was made from: a draft on that same version is
	// too early.
	base    string
	written time.Time
}

// newWriter completes w, which has the fields that differ between kinds.
func newWriter[W any](c *Cache, w *writer[W]) *writer[W] {
	w.clock, w.patience = c.options.Clock, patience
	w.log = c.options.Log.WithName("status").WithValues("resource", w.resource)
	w.calm = c.binder.calm
	w.wishes = map[types.UID]*wish[W]{}
	return w
}

// want sets what the object should show.
func (w *writer[W]) want(uid types.UID, value W) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.wishes[uid]
	switch {
	case known == nil:
		w.wishes[uid] = &wish[W]{value: value, since: w.clock.Now()}
	case w.equal(known.value, value):
		return
	default:
		if w.reason(known.value) != w.reason(value) {
			known.since = w.clock.Now()
		}
		known.value = value
	}
	w.add(uid)
}

// look compares again: the object has changed.
func (w *writer[W]) look(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wishes[uid] != nil {
		w.add(uid)
	}
}

func (w *writer[W]) add(uid types.UID) {
	if w.queue != nil {
		w.queue.Add(uid)
	}
}

// drop ends all wishes about an object.
func (w *writer[W]) drop(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wishes, uid)
}

// notice is called when a watch shows a change of an object.
func (w *writer[W]) notice(uid types.UID, gone bool) {
	if gone {
		w.drop(uid)
	} else {
		w.look(uid)
	}
}

func (w *writer[W]) get(uid types.UID) (wish[W], bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.wishes[uid]; known != nil {
		return *known, true
	}
	return wish[W]{}, false
}

// run writes until ctx is done.
func (w *writer[W]) run(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](retryBase, retryLimit),
		workqueue.TypedRateLimitingQueueConfig[types.UID]{Clock: w.clock})
	w.mu.Lock()
	w.queue = queue
	for uid := range w.wishes {
		queue.Add(uid)
	}
	w.mu.Unlock()
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	var running sync.WaitGroup
	for range statusWorkers {
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

// write brings one object up to date, or sets a time for it.
func (w *writer[W]) write(ctx context.Context, uid types.UID) {
	if w.due(uid) == nil {
		return
	}
	w.calm(ctx, statusPatience)
	d := w.due(uid) // the wish may be another by now
	if d == nil || ctx.Err() != nil {
		return
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	version, err := d.send(call)
	switch {
	case err == nil:
		w.queue.Forget(uid)
		w.wrote(uid, d, version)
	case apierrors.IsNotFound(err):
		w.queue.Forget(uid)
		w.drop(uid)
	case apierrors.IsConflict(err):
		w.queue.AddRateLimited(uid)
	case ctx.Err() == nil:
		if needsPerson(err) {
			w.log.Error(err, "The API server does not let us write a status", "uid", uid)
		} else {
			w.log.V(2).Info("Cannot write status, trying again", "uid", uid, "err", err)
		}
		w.queue.AddRateLimited(uid)
	}
}

// due returns the write that the object needs now. If it needs one later, it sees to that and
// returns nil.
func (w *writer[W]) due(uid types.UID) *draft {
	wish, ok := w.get(uid)
	if !ok {
		w.queue.Forget(uid)
		return nil
	}
	d, ok := w.draft(wish.value)
	switch {
	case !ok:
		w.drop(uid)
		return nil
	case d == nil:
		w.queue.Forget(uid)
		return nil
	case d.base != "" && d.base == wish.base:
		w.queue.AddAfter(uid, watchLag)
		return nil
	}
	if wait := w.patience - w.clock.Since(wish.since); d.waits && wait > 0 {
		w.queue.AddAfter(uid, wait)
		return nil
	}
	if wait := d.pause - w.clock.Since(wish.written); !wish.written.IsZero() && wait > 0 {
		w.queue.AddAfter(uid, wait)
		return nil
	}
	return d
}

func (w *writer[W]) wrote(uid types.UID, d *draft, version string) {
	if d.sent != nil {
		d.sent()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.wishes[uid]; known != nil {
		known.written = w.clock.Now()
		if version != d.base { // else nothing was changed, and the watch will show nothing
			known.base = d.base
		}
	}
}
