// Package scheduler runs the cycle: apply what happened, open a session, run the actions, close
// it, and say what was found out.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// gatherPause is how long a cycle that something has woken waits for more of the same: pods of
// a gang arrive one by one. The last of them waits for half of it on average.
const gatherPause = 5 * time.Millisecond

// stuckAfter is how long a cycle may take before Healthy reports it.
const stuckAfter = 2 * time.Minute

// Options are the parts of a Scheduler; all are required.
type Options struct {
	SchedulerName string        // pods with this spec.schedulerName are ours
	DefaultQueue  string        // the queue of those who name none
	Period        time.Duration // at least one cycle in each
	BindWorkers   int           // bindings in flight at once
	GangGrace     time.Duration // see framework.Handle

	Kube     kubernetes.Interface
	Batch    versioned.Interface
	Config   *conf.Configuration
	Registry *framework.Registry
	Metrics  *metrics.Metrics
	Clock    clock.WithTicker
	Log      logr.Logger
}

// Scheduler runs cycles. Start, Run and SetConfiguration may be called from any goroutine, each
// of the first two once.
type Scheduler struct {
	Options
	informers informers.SharedInformerFactory
	cache     *cache.Cache
	reporter  *reporter

	profile *framework.Profile                // in force; only the scheduling goroutine reads it
	next    atomic.Pointer[framework.Profile] // to be in force from the next cycle
	changed chan struct{}                     // a configuration waits in next

	// settled is the generation of the model that the last cycle left behind: while it stands,
	// another cycle would find what that one found. 0 if that must not be relied on.
	settled uint64
	// wake is when a cycle is due even so; zero if time alone changes nothing.
	wake time.Time
	// busySince is when the running cycle began; nil between cycles. Not a number: a time also
	// knows what a clock that is set meanwhile does not change.
	busySince atomic.Pointer[time.Time]
}

// New wires a scheduler; nothing runs until Start.
func New(options Options) (*Scheduler, error) {
	s := &Scheduler{
		Options:   options,
		informers: informers.NewSharedInformerFactory(options.Kube, 0),
		reporter:  newReporter(),
		changed:   make(chan struct{}, 1),
	}
	var err error
	if s.profile, err = options.Registry.NewProfile(options.Config, s.handle()); err != nil {
		return nil, err
	}
	s.cache, err = cache.New(cache.Options{
		SchedulerName: options.SchedulerName,
		DefaultQueue:  options.DefaultQueue,
		Kube:          options.Kube,
		Batch:         options.Batch,
		Informers:     s.informers,
		BindWorkers:   options.BindWorkers,
		Metrics:       options.Metrics,
		Clock:         options.Clock,
		Log:           options.Log,
	})
	return s, err
}

func (s *Scheduler) handle() framework.Handle {
	return framework.Handle{Informers: s.informers, Kube: s.Kube, Clock: s.Clock, GangGrace: s.GangGrace}
}

// Start starts the informers and returns when all of them have synced.
func (s *Scheduler) Start(ctx context.Context) error { return s.cache.Start(ctx) }

// Synced tells whether the informers have synced.
func (s *Scheduler) Synced() bool { return s.cache.Synced() }

// Healthy returns an error while a cycle takes so long that it must be stuck.
func (s *Scheduler) Healthy() error {
	since := s.busySince.Load()
	if since == nil {
		return nil
	}
	if took := s.Clock.Since(*since); took > stuckAfter {
		return fmt.Errorf("the scheduling cycle has been running for %s", took.Round(time.Second))
	}
	return nil
}

// SetConfiguration makes the plugins of a configuration, syncs the informers that they ask for,
// which then run until ctx ends, and puts the plugins in force from the next cycle on. On an
// error the old ones stay.
func (s *Scheduler) SetConfiguration(ctx context.Context, config *conf.Configuration) error {
	profile, err := s.Registry.NewProfile(config, s.handle())
	if err != nil {
		return err
	}
	if err := s.cache.Start(ctx); err != nil {
		return err
	}
	s.next.Store(profile)
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return nil
}

// Run runs cycles until ctx ends: one in each period at least, and one as soon as something
// happened that could let a task be placed. It returns when what was decided has been carried
// out as far as gangs need it to be whole.
func (s *Scheduler) Run(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.cache.Run(ctx)
	}()
	periodic := s.Clock.NewTicker(s.Period)
	defer periodic.Stop()
	for ctx.Err() == nil {
		began := s.Clock.Now()
		s.RunOnce(ctx)
		took := s.Clock.Since(began)
		select {
		case <-ctx.Done():
		case <-periodic.C():
		case <-s.changed:
		case <-s.cache.Wake():
			s.pause(ctx, max(gatherPause, took))
		}
	}
	<-done
	return nil
}

func (s *Scheduler) pause(ctx context.Context, d time.Duration) {
	timer := s.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// RunOnce is the cycle. A panic in it, which only a mistake in code can cause, is counted and
// logged, and the model is rebuilt from what the API server shows.
func (s *Scheduler) RunOnce(ctx context.Context) {
	began := s.Clock.Now()
	s.busySince.Store(&began)
	defer s.busySince.Store(nil)
	defer s.recoverCycle()
	s.Metrics.CycleBegan(began)

	// 1. Take over a new configuration.
	if next := s.next.Swap(nil); next != nil {
		s.profile, s.settled = next, 0
	}

	// 2. Apply what happened since the last cycle. If nothing did, nothing can be decided, unless
	// something is a matter of time.
	s.cache.Apply()
	cluster := s.cache.Model()
	due := !s.wake.IsZero() && !began.Before(s.wake)
	if cluster.Generation() == s.settled && !due {
		return
	}
	changed := cluster.Recompute()

	// 3. Open a session: plugins register, jobs are validated.
	ssn := s.profile.Open(cluster, s.cache, s.Log, planAudits()...)

	// 4. Run the actions in their order. What a statement commits goes to the cache at once,
	// and from there to the API server while we go on.
	for _, action := range ssn.Actions() {
		if err := s.execute(ctx, action, ssn); err != nil {
			break
		}
	}

	// 5. Close the session: what was not committed is undone.
	ssn.Close()
	audit(cluster)

	// 6. Say what was found out, for statuses, conditions and metrics.
	changed = append(changed, cluster.Recompute()...)
	waiting := cluster.WaitingJobs()
	s.cache.Publish(s.reporter.report(ssn, slices.Concat(changed, waiting)))
	s.Metrics.Publish(measure(ssn))

	// 7. Until the model changes there is nothing more to decide; except about volumes and
	// claims, which upstream's plugins look up outside of the model.
	s.settled, s.wake = cluster.Generation(), ssn.Wake()
	if slices.ContainsFunc(ssn.Jobs(), waitsForClaims) {
		s.settled = 0
	}
	s.Metrics.Cycle(s.Clock.Since(began))
	s.summarize(ssn, began)
}

// execute runs one action. Cancellation is not an error: the process is stopping.
func (s *Scheduler) execute(ctx context.Context, action framework.Action, ssn *framework.Session) error {
	began := s.Clock.Now()
	err := action.Execute(ctx, ssn)
	s.Metrics.Action(action.Name(), s.Clock.Since(began))
	if err != nil && !errors.Is(err, context.Canceled) {
		ssn.Log.Error(err, "Action failed", "action", action.Name())
		return nil
	}
	return err
}

func waitsForClaims(j *api.JobInfo) bool {
	return slices.ContainsFunc(j.Tasks, func(t *api.TaskInfo) bool { return t.Waiting() && t.Signature.HasExternalResources() })
}

func (s *Scheduler) summarize(ssn *framework.Session, began time.Time) {
	placed, waiting, evicted := ssn.Decided(api.Allocate), ssn.Decided(api.Pipeline), ssn.Decided(api.Evict)
	s.Metrics.Decided(metrics.Allocate, placed)
	s.Metrics.Decided(metrics.Pipeline, waiting)
	s.Metrics.Decided(metrics.Evict, evicted)
	log := ssn.Log.V(4)
	if placed+evicted > 0 {
		log = ssn.Log.V(2)
	}
	log.Info("Cycle", "placed", placed, "waitingForRoom", waiting, "evicted", evicted, "jobs", len(ssn.Jobs()), "took", s.Clock.Since(began))
}

func (s *Scheduler) recoverCycle() {
	reason := recover()
	if reason == nil {
		return
	}
	s.Metrics.CyclePanicked()
	s.Log.Error(fmt.Errorf("%v", reason), "Cycle panicked; rebuilding the model", "stack", string(debug.Stack()))
	s.cache.Rebuild()
	s.settled = 0
}
