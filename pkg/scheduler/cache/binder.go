package cache

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

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

const (
	// callTimeout bounds one call of the API server.
	callTimeout = 15 * time.Second
	// drainTimeout bounds how long units that were begun may take to finish at the end.
	drainTimeout = 15 * time.Second
	// settlers is how many goroutines find out what became of failed binds.
	settlers = 4

	backoffBase  = 500 * time.Millisecond
	backoffLimit = 30 * time.Second
)

// unit is the binds of one statement: they are sent one after the other without anything in
// between, and once the first was sent all are.
type unit struct {
	job     api.JobID
	group   *v1.ObjectReference // nil for a job without PodGroup
	flights []*flight

	reserves  bool      // some flights have reservations, see prepare
	forms     bool      // the gang was not complete before
	complete  time.Time // when the last of the pods, or the group, was created
	followers []*unit   // guarded by binder.mu: wait until this one is prepared

	sent, finished, landed int // guarded by binder.mu
}

// flight is one bind.
type flight struct {
	landing
	unit            *unit
	namespace, name string
	uid             types.UID
	created         time.Time
	reservations    []api.ExternalReservation

	// failure is what the last attempt has brought, nil before it.
	failure error
	// waited is set once the flight has been through its back-off.
	waited bool
}

func (f *flight) String() string { return f.namespace + "/" + f.name }

func (f *flight) binding() *v1.Binding {
	return &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.namespace, Name: f.name, UID: f.uid,
			Annotations: map[string]string{
				v1alpha1.AnnotationQueue:       string(f.Queue),
				v1alpha1.AnnotationPodGroupUID: string(f.GroupUID),
			},
		},
		Target: v1.ObjectReference{Kind: "Node", Name: f.node},
	}
}

// tower hears of flights that did not land; those that land are seen by the watch.
type tower interface {
	refused(*flight)
	vanished(*flight)
	// putOff says that nothing of a job was bound, and why; readmitted that it may be tried again.
	putOff(job api.JobID, flights []*flight, why string)
	readmitted(api.JobID)
}

// binder sends binds: unit after unit, in the order of their commits, by a fixed number of
// workers.
type binder struct {
	kube     kubernetes.Interface
	workers  int
	clock    clock.WithTicker
	log      logr.Logger
	metrics  Metrics
	recorder *recorder
	tower    tower

	backoff workqueue.TypedRateLimiter[types.UID]
	// settling holds flights of which nobody knows yet whether they have landed.
	settling workqueue.TypedDelayingInterface[*flight]

	mu         sync.Mutex
	changed    *sync.Cond // the fields below did
	unprepared []*unit    // whose preparation has not begun
	forming    map[api.JobID]*unit

	queue    []*unit       // of which not all binds were sent
	waiting  int           // binds in queue that were not sent
	sending  int           // binds that are being sent
	open     int           // units that were begun and are not finished
	draining bool          // nothing new is begun
	quiet    chan struct{} // closed while nothing is waiting or being sent
	drained  chan struct{} // closed when draining is over
}

func newBinder(o Options, recorder *recorder, tower tower) *binder {
	b := &binder{
		kube: o.Kube, workers: o.BindWorkers, clock: o.Clock, log: o.Log.WithName("bind"), metrics: o.Metrics,
		recorder: recorder, tower: tower,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](backoffBase, backoffLimit),
		forming: map[api.JobID]*unit{},
		quiet:   make(chan struct{}),
		drained: make(chan struct{}),
	}
	b.changed = sync.NewCond(&b.mu)
	close(b.quiet)
	return b
}

// enqueue takes a unit over.
func (b *binder) enqueue(u *unit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.draining {
		b.log.Info("Dropped a gang because the scheduler is stopping", "first", u.flights[0].String(), "pods", len(u.flights))
		return
	}
	b.accept(u)
}

// submit lets workers take the unit up. The caller holds mu.
func (b *binder) submit(u *unit) {
	if b.waiting+b.sending == 0 {
		b.quiet = make(chan struct{})
	}
	b.queue = append(b.queue, u)
	b.waiting += len(u.flights)
	b.changed.Broadcast()
}

// next returns the next bind to send and waits until there is one. It returns nil when the
// binder is draining and all units that were begun are sent.
func (b *binder) next() *flight {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) == 0 {
		if b.draining {
			return nil
		}
		b.changed.Wait()
	}
	u := b.queue[0]
	f := u.flights[u.sent]
	if u.sent == 0 {
		b.open++
	}
	u.sent++
	b.waiting--
	b.sending++
	if u.sent == len(u.flights) {
		b.queue[0] = nil
		b.queue = b.queue[1:]
	}
	return f
}

// sentOne ends what next began.
func (b *binder) sentOne() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sending--
	b.checkQuiet()
}

// calm waits until no bind is queued or being sent, but not longer than patience: writers of
// less urgent things give way, and are slowed down but never starved.
func (b *binder) calm(ctx context.Context, patience time.Duration) {
	b.mu.Lock()
	quiet := b.quiet
	b.mu.Unlock()
	select {
	case <-quiet:
		return
	default:
	}
	timer := b.clock.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-quiet:
	case <-timer.C():
	case <-ctx.Done():
	}
}

// run sends binds until ctx is done, then finishes the units that were begun.
func (b *binder) run(ctx context.Context) {
	calls, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	b.settling = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[*flight]{Clock: b.clock})
	var running sync.WaitGroup
	for range b.workers {
		running.Go(func() {
			for f := b.next(); f != nil; f = b.next() {
				b.send(calls, f)
				b.sentOne()
			}
		})
	}
	running.Go(func() { b.prepareAll(ctx) })
	for range settlers {
		running.Go(func() {
			for f, shutdown := b.settling.Get(); !shutdown; f, shutdown = b.settling.Get() {
				b.settle(calls, f)
				b.settling.Done(f)
			}
		})
	}
	<-ctx.Done()
	b.drain()
	stop()
	b.settling.ShutDown()
	running.Wait()
}

// drain drops the units of which nothing was sent, and waits until the others are finished or
// drainTimeout has passed.
func (b *binder) drain() {
	b.drop()
	timer := b.clock.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-b.drained:
	case <-timer.C():
		b.giveUp()
	}
}

// drop lets nothing new begin.
func (b *binder) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draining = true
	var begun []*unit
	for _, u := range b.queue {
		if u.sent > 0 {
			begun = append(begun, u)
			continue
		}
		b.waiting -= len(u.flights)
	}
	if dropped := len(b.unprepared) + len(b.queue) - len(begun); dropped > 0 {
		b.log.Info("Dropped gangs of which nothing was bound yet because the scheduler is stopping", "gangs", dropped)
	}
	b.queue, b.unprepared = begun, nil
	b.checkQuiet()
	if b.open == 0 {
		close(b.drained)
	}
	b.changed.Broadcast()
}

// giveUp leaves the rest to the next scheduler, which finishes gangs that are half bound.
func (b *binder) giveUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log.Error(nil, "The API server did not take all binds in time; the next scheduler has to finish them",
		"gangs", b.open, "pods", b.waiting+b.sending, "timeout", drainTimeout)
	b.queue, b.waiting = nil, 0
	b.changed.Broadcast()
}

// measure says how long a pod has waited that is bound now, and its group if that was the last pod that it
// needed to start.
func (b *binder) measure(f *flight) {
	b.metrics.PodBound(b.clock.Since(f.created))
	u := f.unit
	b.mu.Lock()
	u.landed++
	started := u.landed == len(u.flights) && u.forms && u.group != nil
	b.mu.Unlock()
	if started {
		b.metrics.PodGroupScheduled(string(f.Queue), b.clock.Since(u.complete))
	}
}

// finish ends a flight, whatever became of it.
func (b *binder) finish(f *flight) {
	u := f.unit
	b.mu.Lock()
	defer b.mu.Unlock()
	u.finished++
	if u.finished < len(u.flights) {
		return
	}
	b.open--
	if b.draining && b.open == 0 {
		close(b.drained)
	}
}

// checkQuiet tells those that wait in calm when nothing is under way. The caller holds mu.
func (b *binder) checkQuiet() {
	select {
	case <-b.quiet:
	default:
		if b.waiting+b.sending == 0 {
			close(b.quiet)
		}
	}
}
