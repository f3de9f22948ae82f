package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

const (
	// rehearsals is how many dry runs of evictions are under way at once.
	rehearsals = 8
	// evictAttempts bounds how often an eviction is tried that nobody answers.
	evictAttempts = 5
	evictPause    = 200 * time.Millisecond // before the second attempt, then doubled

	// Who was refused is left alone for a while, longer each time.
	pardonBase  = 2 * time.Second
	pardonLimit = 64 * time.Second
)

// takerOf names the first of the tasks of a job for which room is being made.
func takerOf(j *api.JobInfo) *v1.ObjectReference {
	var first *v1.Pod
	for _, t := range j.Tasks {
		if t.Status == api.Pipelined && (first == nil || t.Pod.Name < first.Name) {
			first = t.Pod
		}
	}
	if first == nil {
		return nil
	}
	return &v1.ObjectReference{Namespace: first.Namespace, Name: first.Name, UID: first.UID}
}

// eviction is one victim of a plan.
type eviction struct {
	namespace, name string
	uid             types.UID
	job             string // victims of one job are adjacent in a plan
	cause           api.EvictionCause
}

func (e *eviction) String() string { return e.namespace + "/" + e.name }

// plan is the evictions of one statement.
type plan struct {
	beneficiary string              // namespace/name of the group, or of the owner of its pods
	group       *v1.ObjectReference // of the beneficiary; nil for a job without PodGroup
	taker       *v1.ObjectReference // the first of the pods that are to get the room; nil if none was told
	victims     []*eviction
}

// bailiff hears of evictions that did not take place; the watch shows those that did.
type bailiff interface {
	// spared: the pod stays. refused tells whether the API server has refused just this eviction.
	spared(e *eviction, refused bool)
	// pardoned: who was refused may be asked again.
	pardoned(types.UID)
}

// evictor carries out plans, one after the other. First the whole plan is tried without effect:
// if one eviction would be refused, none is made. Then the victims go, job by job.
type evictor struct {
	kube     kubernetes.Interface
	clock    clock.WithTicker
	log      logr.Logger
	metrics  Metrics
	recorder *recorder
	bailiff  bailiff

	backoff workqueue.TypedRateLimiter[types.UID]
	pardons workqueue.TypedDelayingInterface[types.UID]

	mu    sync.Mutex
	queue []*plan
	wake  chan struct{}
}

func newEvictor(o Options, recorder *recorder, bailiff bailiff) *evictor {
	return &evictor{
		kube: o.Kube, clock: o.Clock, log: o.Log.WithName("evict"), metrics: o.Metrics, recorder: recorder, bailiff: bailiff,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](pardonBase, pardonLimit),
		wake:    make(chan struct{}, 1),
	}
}

// enqueue takes a plan over.
func (e *evictor) enqueue(p *plan) {
	e.mu.Lock()
	e.queue = append(e.queue, p)
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *evictor) next() *plan {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return nil
	}
	p := e.queue[0]
	e.queue = e.queue[1:]
	return p
}

// run carries plans out until ctx is done. A job of which a pod was evicted is finished then, the
// rest is left to the next scheduler, which plans anew.
func (e *evictor) run(ctx context.Context) {
	e.pardons = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.UID]{Clock: e.clock})
	var pardoning sync.WaitGroup
	pardoning.Go(func() {
		for uid, shutdown := e.pardons.Get(); !shutdown; uid, shutdown = e.pardons.Get() {
			e.bailiff.pardoned(uid)
			e.pardons.Done(uid)
		}
	})
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-e.wake:
			for p := e.next(); p != nil; p = e.next() {
				e.carryOut(ctx, p)
			}
		}
	}
	e.pardons.ShutDown()
	pardoning.Wait()
}

func (e *evictor) carryOut(ctx context.Context, p *plan) {
	if ctx.Err() != nil || !e.rehearse(ctx, p) {
		return
	}
	calls := context.WithoutCancel(ctx)
	for i, victim := range p.victims {
		begins := i == 0 || victim.job != p.victims[i-1].job
		if begins && (ctx.Err() != nil || !e.wanted(calls, p)) {
			e.spare(p.victims[i:], nil)
			return
		}
		e.nameBeneficiary(calls, victim, p)
		if err := e.evict(calls, victim); err != nil {
			e.log.Error(err, "An eviction is refused, the rest of the plan is dropped", "pod", victim.String(), "for", p.beneficiary, "left", len(p.victims)-i)
			e.spare(p.victims[i:], map[types.UID]bool{victim.uid: true})
			return
		}
		e.backoff.Forget(victim.uid)
		e.metrics.Eviction(victim.cause.String(), metrics.Evicted)
		e.recorder.podEvicted(victim, p)
	}
	e.log.V(2).Info("Evicted", "pods", len(p.victims), "for", p.beneficiary)
	e.recorder.madeRoom(p)
}

// wanted tells whether the room is still needed. Plans wait for those before them, and meanwhile the taker may
// have found another node, or have gone.
func (e *evictor) wanted(ctx context.Context, p *plan) bool {
	if p.taker == nil {
		return true
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pod, err := e.kube.CoreV1().Pods(p.taker.Namespace).Get(call, p.taker.Name, metav1.GetOptions{})
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return pod.UID == p.taker.UID && pod.DeletionTimestamp == nil && pod.Spec.NodeName == ""
}

// rehearse tries all evictions without effect. If any is refused, all pods are spared.
func (e *evictor) rehearse(ctx context.Context, p *plan) bool {
	var failed atomic.Int32
	errs := make([]error, len(p.victims))
	workqueue.ParallelizeUntil(ctx, rehearsals, len(p.victims), func(i int) {
		err := e.call(ctx, p.victims[i], metav1.DryRunAll)
		if err != nil && !over(err) {
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
			refused[p.victims[i].uid] = true
			e.log.V(2).Info("An eviction would be refused, the plan is dropped", "pod", p.victims[i].String(), "for", p.beneficiary, "err", err)
		}
	}
	e.spare(p.victims, refused)
	return false
}

func (e *evictor) spare(victims []*eviction, refused map[types.UID]bool) {
	for _, victim := range victims {
		if refused[victim.uid] {
			e.metrics.Eviction(victim.cause.String(), metrics.EvictionRefused)
			e.pardons.AddAfter(victim.uid, e.backoff.When(victim.uid))
		}
		e.bailiff.spared(victim, refused[victim.uid])
	}
}

// evict evicts a pod and returns nil once that is certain. It tries again while nobody answers. After an
// error it looks whether the pod is on its way: the answer may have been lost, and a conflict may be about
// another pod of that name or about somebody else's write to this one.
func (e *evictor) evict(ctx context.Context, victim *eviction) error {
	pause := evictPause
	for attempt := 1; ; attempt++ {
		err := e.call(ctx, victim)
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), needsPerson(err):
			return err
		case e.gone(ctx, victim):
			return nil
		case attempt == evictAttempts:
			return err
		}
		timer := e.clock.NewTimer(max(pause, retryAfter(err)))
		<-timer.C()
		pause *= 2
	}
}

// call asks for the eviction of this very pod, not of a successor of the same name.
func (e *evictor) call(ctx context.Context, victim *eviction, dryRun ...string) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return e.kube.PolicyV1().Evictions(victim.namespace).Evict(call, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: victim.namespace, Name: victim.name},
		DeleteOptions: &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &victim.uid},
			DryRun:        dryRun,
		},
	})
}

// over tells whether an error may say that there is nobody to evict any more.
func over(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// gone tells whether the pod is certainly on its way.
func (e *evictor) gone(ctx context.Context, victim *eviction) bool {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pod, err := e.kube.CoreV1().Pods(victim.namespace).Get(call, victim.name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && (pod.UID != victim.uid || pod.DeletionTimestamp != nil)
}

// nameBeneficiary puts the name of the job that gets the room into an annotation. The API server
// takes it with the status, so that no right to change pods is needed.
func (e *evictor) nameBeneficiary(ctx context.Context, victim *eviction, p *plan) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         victim.uid,
		"annotations": map[string]string{v1alpha1.AnnotationEvictedFor: p.beneficiary},
	}})
	if err == nil {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		_, err = e.kube.CoreV1().Pods(victim.namespace).Patch(call, victim.name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !over(err) {
		e.log.V(1).Info("Cannot name the beneficiary of an eviction", "pod", victim.String(), "for", p.beneficiary, "err", err)
	}
}

// forget drops what is remembered of a pod that is gone.
func (e *evictor) forget(uid types.UID) { e.backoff.Forget(uid) }

// podEvicted says of a victim for whom it went.
func (r *recorder) podEvicted(victim *eviction, p *plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pods) < podNotes {
		r.pods = append(r.pods, note{
			about: v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: victim.namespace, Name: victim.name, UID: victim.uid},
			kind:  v1.EventTypeNormal, reason: evictedBecause(victim.cause), action: "Evicting",
			text: "Evicted for " + p.beneficiary,
		})
	}
	r.signal()
}

// evictedBecause is the reason of the event.
func evictedBecause(cause api.EvictionCause) string {
	switch cause {
	case api.Reclaimed:
		return "Reclaimed"
	case api.GangDegraded:
		return v1alpha1.ReasonGangDegraded
	}
	return "Preempted"
}

// madeRoom says of a group how many pods went for it.
func (r *recorder) madeRoom(p *plan) {
	if p.group == nil {
		return
	}
	r.add(note{about: *p.group, kind: v1.EventTypeNormal, reason: v1alpha1.ReasonPreempting, action: "Evicting",
		text: fmt.Sprintf("%d pods evicted for this PodGroup", len(p.victims))})
}
