// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

const (
	// DefaultWorkers keeps an API server busy while each eviction waits until its view of disruption budgets is fresh,
	// for which it may take 0.1 s (docs/performance.md).
	DefaultWorkers = 128

	// A victim whose eviction was refused is excluded from plans for a while, longer each time.
	backoffBase  = 2 * time.Second
	backoffLimit = 64 * time.Second
)

// Handler receives the results of evictions that were not made. Its methods are called from
// goroutines of the evictor and must return at once.
type Handler interface {
	// EvictionFailed is called for each victim that stays. refused is set if the API server
	// refused the eviction of this very pod; EvictionAllowed follows when its back-off ends.
	EvictionFailed(v *Victim, refused bool)
	EvictionAllowed(types.UID)
}

// EventSink records events about victims and preemptors.
type EventSink interface {
	PodEvicted(pod v1.ObjectReference, cause api.EvictionCause, preemptor string)
	PodGroupEvictionSink
	// PodsPreempted is called after all victims of a plan are evicted. The last text names their jobs.
	PodsPreempted(podGroup v1.ObjectReference, pods int, action, victims string)
	// EvictionRefused is called for a PodGroup whose limit has passed, if its pods may not be evicted.
	EvictionRefused(podGroup v1.ObjectReference, why error)
	// JobEnded is called for a Job (batch/v1) that does not recreate its evicted pods, but fails.
	JobEnded(job v1.ObjectReference, preemptor, reason string)
}

// PodGroupEvictionSink records evictions of PodGroups.
type PodGroupEvictionSink interface {
	// PodGroupEvicted is called after pods of a PodGroup are evicted, with the condition that the PodGroup should show.
	PodGroupEvicted(podGroup v1.ObjectReference, condition metav1.Condition)
}

// StatusSink records evictions in the status of PodGroups.
type StatusSink interface {
	PodGroupEvictionSink
	// MarkDisruption is called before the pods of a whole gang are evicted, if its API has a condition for that. It returns
	// when the condition is written.
	MarkDisruption(ctx context.Context, podGroup v1.ObjectReference, message string) error
}

// Metrics receives measurements and must return at once.
type Metrics interface {
	// Eviction is called when an eviction has been made, or refused.
	Eviction(cause string, result metrics.EvictionResult)
	// PodGroupEvicted is called when pods of a PodGroup have been evicted: the gang, or only surplus pods.
	PodGroupEvicted(queue, cause string, gang bool)
}

// Options are the parts of an Evictor. All are required.
type Options struct {
	Kube    kubernetes.Interface
	Workers int // how many requests of all plans are sent at the same time
	Handler Handler
	Events  EventSink
	Status  StatusSink
	Metrics Metrics
	Clock   clock.WithTicker
	Log     logr.Logger
}

// Evictor executes plans; see the package comment.
type Evictor struct {
	Options

	requests  *permits
	sequences *sequences

	backoff workqueue.TypedRateLimiter[types.UID]
	// refused holds victims until their back-off ends.
	refused workqueue.TypedDelayingInterface[types.UID]

	wake chan struct{}

	mu        sync.Mutex // guards the fields below
	queue     []*Plan
	executing int           // plans, including those in queue
	idle      chan struct{} // closed while there are none
}

// New returns an evictor. It sends nothing before Run.
func New(o Options) *Evictor {
	o.Log = o.Log.WithName("evict")
	e := &Evictor{
		Options:   o,
		requests:  &permits{free: o.Workers},
		sequences: &sequences{byBudget: map[string]*sequence{}},
		backoff:   workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](backoffBase, backoffLimit),
		wake:      make(chan struct{}, 1),
		idle:      make(chan struct{}),
	}
	close(e.idle)
	return e
}

// Enqueue takes a plan over and returns at once.
func (e *Evictor) Enqueue(p *Plan) {
	e.mu.Lock()
	e.queue = append(e.queue, p)
	if e.executing++; e.executing == 1 {
		e.idle = make(chan struct{})
	}
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Forget drops the back-off of a deleted pod.
func (e *Evictor) Forget(uid types.UID) { e.backoff.Forget(uid) }

func (e *Evictor) next() *Plan {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return nil
	}
	p := e.queue[0]
	e.queue = e.queue[1:]
	return p
}

// Run executes plans until ctx is done. Then it completes the jobs of which it has evicted a pod,
// and leaves the rest to the next scheduler, which makes plans of its own.
func (e *Evictor) Run(ctx context.Context) {
	e.refused = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.UID]{Clock: e.Clock})
	var running sync.WaitGroup
	running.Go(func() {
		for uid, shutdown := e.refused.Get(); !shutdown; uid, shutdown = e.refused.Get() {
			e.Handler.EvictionAllowed(uid)
			e.refused.Done(uid)
		}
	})
	var executing sync.WaitGroup
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-e.wake:
			for p := e.next(); p != nil; p = e.next() {
				executing.Go(func() {
					defer e.finished()
					e.execute(ctx, p)
				})
			}
		}
	}
	executing.Wait()
	e.drop()
	e.refused.ShutDown()
	running.Wait()
}

// execute carries out one plan.
func (e *Evictor) execute(ctx context.Context, p *Plan) { newExecution(ctx, e, p).run() }

// finished is called when a plan is executed.
func (e *Evictor) finished() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.executing--; e.executing == 0 {
		close(e.idle)
	}
}

// drop drops the plans that have not begun when the evictor stops.
func (e *Evictor) drop() {
	for p := e.next(); p != nil; p = e.next() {
		e.finished()
	}
}

// Yield waits until no plan is queued or being executed, but at most for the given time. Writers of statuses call it
// before each write: their requests would delay the evictions of a plan, and with them the preemptor.
func (e *Evictor) Yield(ctx context.Context, atMost time.Duration) {
	e.mu.Lock()
	idle := e.idle
	e.mu.Unlock()
	select {
	case <-idle:
		return
	default:
	}
	timer := e.Clock.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C():
	case <-ctx.Done():
	}
}

// fail reports victims that stay. Those in refused back off.
func (e *Evictor) fail(victims []*Victim, refused map[*Victim]error) {
	for _, victim := range victims {
		if refused[victim] != nil {
			e.Metrics.Eviction(victim.Cause.String(), metrics.EvictionRefused)
			e.refused.AddAfter(victim.UID, e.backoff.When(victim.UID))
		}
		e.Handler.EvictionFailed(victim, refused[victim] != nil)
	}
}
