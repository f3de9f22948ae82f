// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/apicall"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

const (
	// dryRunWorkers is how many dry runs are sent at the same time.
	dryRunWorkers = 8

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
	// JobEnded is called for a Job (batch/v1) that does not recreate its evicted pods, but fails.
	JobEnded(job v1.ObjectReference, preemptor, reason string)
}

// PodGroupEvictionSink records evictions of PodGroups.
type PodGroupEvictionSink interface {
	// PodGroupEvicted is called after pods of a PodGroup are evicted, with the condition that the PodGroup should show.
	PodGroupEvicted(podGroup v1.ObjectReference, condition metav1.Condition)
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
	Handler Handler
	Events  EventSink
	Status  PodGroupEvictionSink
	Metrics Metrics
	Clock   clock.WithTicker
	Log     logr.Logger
}

// Evictor executes plans, one after the other; see the package comment.
type Evictor struct {
	Options

	backoff workqueue.TypedRateLimiter[types.UID]
	// refused holds victims until their back-off ends.
	refused workqueue.TypedDelayingInterface[types.UID]

	mu    sync.Mutex
	queue []*Plan
	wake  chan struct{}
}

// New returns an evictor. It sends nothing before Run.
func New(o Options) *Evictor {
	o.Log = o.Log.WithName("evict")
	return &Evictor{
		Options: o,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](backoffBase, backoffLimit),
		wake:    make(chan struct{}, 1),
	}
}

// Enqueue takes a plan over and returns at once.
func (e *Evictor) Enqueue(p *Plan) {
	e.mu.Lock()
	e.queue = append(e.queue, p)
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

// Run executes plans until ctx is done. Then it completes the job of which it has evicted a pod,
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
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-e.wake:
			for p := e.next(); p != nil; p = e.next() {
				e.execute(ctx, p)
			}
		}
	}
	e.refused.ShutDown()
	running.Wait()
}

// execute carries out one plan; the package comment describes the steps.
func (e *Evictor) execute(ctx context.Context, p *Plan) {
	if ctx.Err() != nil || !e.dryRun(ctx, p) {
		return
	}
	calls := context.WithoutCancel(ctx)
	for begin := 0; begin < len(p.Victims); {
		if ctx.Err() != nil || !e.needed(calls, p) {
			e.Log.V(2).Info("Eviction plan dropped", "preemptor", p.Preemptor, "remaining", len(p.Victims)-begin)
			e.fail(p.Victims[begin:], nil)
			return
		}
		job := p.nextJob(begin)
		ended := endedJobs(calls, e.Kube, job)
		evicted, err := e.evictAll(calls, p, job)
		if evicted > 0 {
			e.report(p, job, evicted)
			for _, j := range ended {
				e.Events.JobEnded(j.job, p.Preemptor, j.reason)
			}
		}
		begin += evicted
		if err != nil {
			refused := p.Victims[begin]
			e.Log.Error(err, "Eviction refused", "pod", refused.ref(), "preemptor", p.Preemptor, "remaining", len(p.Victims)-begin)
			e.fail(p.Victims[begin:], map[types.UID]bool{refused.UID: true})
			return
		}
	}
	if p.PodGroup != nil {
		e.Events.PodsPreempted(*p.PodGroup, len(p.Victims), action(p.Victims[0].Cause), p.victimJobs())
	}
}

// evictAll evicts the victims of one job and returns how many are evicted. It ends at the first refusal, and returns that.
func (e *Evictor) evictAll(ctx context.Context, p *Plan, victims []*Victim) (evicted int, refusal error) {
	for i, victim := range victims {
		e.annotate(ctx, victim, p.Preemptor)
		if err := e.evict(ctx, victim); err != nil {
			return i, err
		}
		e.backoff.Forget(victim.UID)
		e.Metrics.Eviction(victim.Cause.String(), metrics.Evicted)
		e.Events.PodEvicted(victim.reference(), victim.Cause, p.Preemptor)
		e.Log.V(2).Info("Evicted", "pod", victim.ref(), "cause", victim.Cause.String(), "preemptor", p.Preemptor)
	}
	return len(victims), nil
}

// needed reports whether the preemptor still waits for the resources. If the read fails, it does.
func (e *Evictor) needed(ctx context.Context, p *Plan) bool {
	if p.PreemptorPod == nil {
		return true
	}
	call, cancel := context.WithTimeout(ctx, apicall.Timeout)
	defer cancel()
	pod, err := e.Kube.CoreV1().Pods(p.PreemptorPod.Namespace).Get(call, p.PreemptorPod.Name, metav1.GetOptions{})
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return pod.UID == p.PreemptorPod.UID && pod.DeletionTimestamp == nil && pod.Spec.NodeName == ""
}

// dryRun sends all evictions as dry runs, and reports whether the API server accepts all of them.
// If it does not, no pod of the plan is evicted.
func (e *Evictor) dryRun(ctx context.Context, p *Plan) bool {
	var failed atomic.Int32
	errs := make([]error, len(p.Victims))
	workqueue.ParallelizeUntil(ctx, dryRunWorkers, len(p.Victims), func(i int) {
		err := e.call(ctx, p.Victims[i], metav1.DryRunAll)
		if err != nil && !mayBeGone(err) {
			errs[i] = err
			failed.Add(1)
		}
	})
	if failed.Load() == 0 && ctx.Err() == nil {
		return true
	}
	refused := map[types.UID]bool{}
	for i, err := range errs {
		if err != nil {
			refused[p.Victims[i].UID] = true
			e.Log.V(2).Info("Eviction refused in dry run", "pod", p.Victims[i].ref(), "preemptor", p.Preemptor, "err", err)
		}
	}
	e.fail(p.Victims, refused)
	return false
}

// fail reports victims that stay. Those in refused back off.
func (e *Evictor) fail(victims []*Victim, refused map[types.UID]bool) {
	for _, victim := range victims {
		if refused[victim.UID] {
			e.Metrics.Eviction(victim.Cause.String(), metrics.EvictionRefused)
			e.refused.AddAfter(victim.UID, e.backoff.When(victim.UID))
		}
		e.Handler.EvictionFailed(victim, refused[victim.UID])
	}
}
