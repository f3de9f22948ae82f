// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package bind

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

const (
	// DefaultWorkers keeps an API server busy while each request waits for its storage, which
	// writes more requests at once the more there are (docs/performance.md).
	DefaultWorkers = 128

	// drainTimeout bounds how long a stopping binder waits for units that it has begun.
	drainTimeout = 15 * time.Second
	// verifiers is how many goroutines read the pods of failed binds.
	verifiers = 4

	backoffBase  = 500 * time.Millisecond
	backoffLimit = 30 * time.Second
)

// Handler receives the results of binds that failed. Its methods are called from goroutines of
// the binder and must return at once.
type Handler interface {
	// BindFailed is called when a bind has certainly had no effect; err is the error of the last
	// attempt.
	BindFailed(r *Request, err error)
	// PodVanished is called when the pod to bind does not exist any more.
	PodVanished(*Request)
	// JobBackoff is called when none of the binds of a job was sent, with the reason.
	// JobRequeued follows when the job may be tried again.
	JobBackoff(job api.JobID, requests []*Request, reason string)
	JobRequeued(api.JobID)
}

// EventSink records events about pods and PodGroups. PodGroup is nil for a pod without PodGroup.
type EventSink interface {
	PodBound(pod v1.ObjectReference, podGroup *v1.ObjectReference, node string)
	PrepareFailed(pod v1.ObjectReference, podGroup *v1.ObjectReference, err error)
}

// Metrics receives measurements. It is called from many goroutines at the same time and must
// return at once.
type Metrics interface {
	// Bind is called after each call of the binding subresource, which took d.
	Bind(result metrics.BindResult, d time.Duration)
	// PodBound is called when a pod is bound, wait after its creation.
	PodBound(wait time.Duration)
	// PodGroupScheduled is called when all members that a gang needs to start are bound, wait after the
	// last of them, or their PodGroup, was created.
	PodGroupScheduled(queue string, wait time.Duration)
}

// Options are the parts of a Binder. All are required.
type Options struct {
	Kube    kubernetes.Interface
	Workers int // how many binds are sent at the same time
	Handler Handler
	Events  EventSink
	Metrics Metrics
	Clock   clock.WithTicker
	Log     logr.Logger
}

// Binder sends binds, unit after unit, in the order of their commits; see the package comment.
type Binder struct {
	Options

	backoff workqueue.TypedRateLimiter[types.UID]
	// verifying holds failed binds of which it is unknown whether they had an effect.
	verifying workqueue.TypedDelayingInterface[*Request]

	mu        sync.Mutex
	changed   *sync.Cond // the fields below did
	toPrepare []*Unit    // whose preparation has not begun
	// preparing holds, by job, the unit with which a gang starts, from Enqueue until it is prepared.
	preparing map[api.JobID]*Unit

	queue    []*Unit       // units with binds that are not sent
	waiting  int           // binds in queue that are not sent
	sending  int           // binds that are being sent
	open     int           // units that have begun and are not finished
	draining bool          // the binder begins no other unit
	idle     chan struct{} // closed while no bind waits or is being sent
	drained  chan struct{} // closed when draining is over
}

// New returns a binder. It sends nothing before Run.
func New(o Options) *Binder {
	o.Log = o.Log.WithName("bind")
	b := &Binder{
		Options:   o,
		backoff:   workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](backoffBase, backoffLimit),
		preparing: map[api.JobID]*Unit{},
		idle:      make(chan struct{}),
		drained:   make(chan struct{}),
	}
	b.changed = sync.NewCond(&b.mu)
	close(b.idle)
	return b
}

// Enqueue takes a unit over and returns at once.
func (b *Binder) Enqueue(u *Unit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.draining {
		u.Requests[0].logger(b.Log).Info("Unit dropped", "reason", "stopping", "pods", len(u.Requests))
		return
	}
	b.accept(u)
}

// Forget drops the back-off of a deleted pod.
func (b *Binder) Forget(uid types.UID) { b.backoff.Forget(uid) }

// Yield waits until no bind is queued or being sent, but at most for the given time. Writers of
// less urgent objects call it before each write: binds slow them down, but never starve them.
func (b *Binder) Yield(ctx context.Context, atMost time.Duration) {
	b.mu.Lock()
	idle := b.idle
	b.mu.Unlock()
	select {
	case <-idle:
		return
	default:
	}
	timer := b.Clock.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C():
	case <-ctx.Done():
	}
}

// submit queues a unit for the workers. The caller holds mu.
func (b *Binder) submit(u *Unit) {
	if b.waiting+b.sending == 0 {
		b.idle = make(chan struct{})
	}
	b.queue = append(b.queue, u)
	b.waiting += len(u.Requests)
	b.changed.Broadcast()
}

// next returns the next bind to send and waits until there is one. It returns nil when the
// binder drains and all binds of the units that have begun are sent.
func (b *Binder) next() *Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) == 0 {
		if b.draining {
			return nil
		}
		b.changed.Wait()
	}
	u := b.queue[0]
	r := u.Requests[u.sent]
	if u.sent == 0 {
		b.open++
	}
	u.sent++
	b.waiting--
	b.sending++
	if u.sent == len(u.Requests) {
		b.queue[0] = nil
		b.queue = b.queue[1:]
	}
	return r
}

// sentOne ends what next began.
func (b *Binder) sentOne() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sending--
	b.signalIdle()
}

// Run sends binds until ctx is done, then finishes the units that have begun. It returns after
// drainTimeout at the latest.
func (b *Binder) Run(ctx context.Context) {
	calls, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	b.verifying = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[*Request]{Clock: b.Clock})
	var running sync.WaitGroup
	for range b.Workers {
		running.Go(func() {
			for r := b.next(); r != nil; r = b.next() {
				b.send(calls, r)
				b.sentOne()
			}
		})
	}
	running.Go(func() { b.prepareAll(ctx) })
	for range verifiers {
		running.Go(func() {
			for r, shutdown := b.verifying.Get(); !shutdown; r, shutdown = b.verifying.Get() {
				b.verify(calls, r)
				b.verifying.Done(r)
			}
		})
	}
	<-ctx.Done()
	b.drain()
	stop()
	b.verifying.ShutDown()
	running.Wait()
}

// drain drops the units that have not begun, and waits until the others are finished or
// drainTimeout has passed.
func (b *Binder) drain() {
	b.dropUnsent()
	timer := b.Clock.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-b.drained:
	case <-timer.C():
		b.abandon()
	}
}

// dropUnsent drops the units of which no bind was sent, and lets no other unit begin.
func (b *Binder) dropUnsent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draining = true
	var begun []*Unit
	for _, u := range b.queue {
		if u.sent > 0 {
			begun = append(begun, u)
			continue
		}
		b.waiting -= len(u.Requests)
	}
	if dropped := len(b.toPrepare) + len(b.queue) - len(begun); dropped > 0 {
		b.Log.Info("Units dropped", "reason", "stopping", "units", dropped)
	}
	b.queue, b.toPrepare = begun, nil
	b.signalIdle()
	if b.open == 0 {
		close(b.drained)
	}
	b.changed.Broadcast()
}

// abandon leaves the rest to the next scheduler, which completes gangs that are bound in part.
func (b *Binder) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Log.Error(nil, "Binds abandoned", "reason", "drain timeout", "units", b.open, "pods", b.waiting+b.sending, "timeout", drainTimeout)
	b.queue, b.waiting = nil, 0
	b.changed.Broadcast()
}

// finish ends a bind, whatever its result. The last one of a unit ends the unit.
func (b *Binder) finish(r *Request) {
	u := r.unit
	b.mu.Lock()
	defer b.mu.Unlock()
	u.finished++
	if u.finished < len(u.Requests) {
		return
	}
	b.open--
	if b.draining && b.open == 0 {
		close(b.drained)
	}
}

// signalIdle ends all calls of Yield if no bind waits or is being sent. The caller holds mu.
func (b *Binder) signalIdle() {
	select {
	case <-b.idle:
	default:
		if b.waiting+b.sending == 0 {
			close(b.idle)
		}
	}
}
