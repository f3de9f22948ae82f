// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

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
	"k8s.io/client-go/dynamic"
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

// leastPause is the least time between the end of a cycle and a cycle that an event triggers, so that a stream of events
// does not cause a cycle each.
const leastPause = 5 * time.Millisecond

// stuckAfter is how long a cycle may take before Healthy reports it.
const stuckAfter = 2 * time.Minute

// Options are the parts of a Scheduler; all are required, except where noted.
type Options struct {
	SchedulerNames []string      // pods with one of these in spec.schedulerName are scheduled; events have the first
	DefaultQueue   string        // the queue of PodGroups and pods that name none
	Period         time.Duration // the longest time between two cycles
	BindWorkers    int           // how many binds are sent at the same time
	GangGrace      time.Duration // see framework.Handle

	Kube     kubernetes.Interface
	Batch    versioned.Interface
	Dynamic  dynamic.Interface // for PodGroups of other APIs and owners of pods; may be nil if no configuration needs them
	Config   *conf.Configuration
	Registry *framework.Registry
	Metrics  *metrics.Metrics
	Clock    clock.WithTicker
	Log      logr.Logger
}

// Scheduler runs cycles. Start, Run and SetConfiguration may be called from any goroutine, Start and
// Run once each.
type Scheduler struct {
	Options
	informers informers.SharedInformerFactory
	cache     *cache.Cache
	reporter  *reporter

	profile *framework.Profile         // in force; only the scheduling goroutine reads it
	next    atomic.Pointer[activation] // in force from the next cycle
	changed chan struct{}              // signals that next is set

	// decided is the generation of the model after the last cycle. As long as the model has this
	// generation, another cycle would decide the same. It is 0 if the next cycle must run in any case.
	decided uint64
	// placed is the generation of placements after the last cycle.
	placed uint64
	// wake is when a cycle is due although the model has not changed; zero if there is no such time.
	wake time.Time
	// busySince is when the running cycle began; nil between cycles. It is a time.Time, because its
	// monotonic reading is not affected when the clock is set.
	busySince atomic.Pointer[time.Time]
}

// activation is what a new configuration puts in force.
type activation struct {
	profile  *framework.Profile
	sources  api.GroupSources
	grouping api.Grouping
}

// New returns a scheduler. Nothing runs before Start.
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
		SchedulerNames: options.SchedulerNames,
		DefaultQueue:   options.DefaultQueue,
		Kube:           options.Kube,
		Batch:          options.Batch,
		Dynamic:        options.Dynamic,
		GroupSources:   options.Config.GroupSources,
		Grouping:       options.Config.Grouping,
		Informers:      s.informers,
		BindWorkers:    options.BindWorkers,
		Metrics:        options.Metrics,
		Clock:          options.Clock,
		Log:            options.Log,
	})
	return s, err
}

func (s *Scheduler) handle() framework.Handle {
	return framework.Handle{
		Informers: s.informers, Kube: s.Kube, Clock: s.Clock, GangGrace: s.GangGrace,
		Changed: func() { s.cache.NotifyExternalChange() }, // there is a cache before there are changes
	}
}

// Start starts the informers and returns when all of them have synced.
func (s *Scheduler) Start(ctx context.Context) error { return s.cache.Start(ctx) }

// Synced reports whether the informers have synced.
func (s *Scheduler) Synced() bool { return s.cache.Synced() }

// Healthy returns an error while a cycle has been running for more than stuckAfter.
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

// SetConfiguration creates the plugins of a configuration and syncs the informers that they request,
// which run until ctx ends. The plugins are in force from the next cycle on. After an error the
// old ones stay in force.
func (s *Scheduler) SetConfiguration(ctx context.Context, config *conf.Configuration) error {
	profile, err := s.Registry.NewProfile(config, s.handle())
	if err != nil {
		return err
	}
	if err := s.cache.Start(ctx); err != nil {
		return err
	}
	s.cache.EnableGroupSources(ctx, config.GroupSources)
	s.cache.EnableGrouping(ctx, config.Grouping)
	s.next.Store(&activation{profile, config.GroupSources, config.Grouping})
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return nil
}

// Run runs cycles until ctx ends: one per period at least, and one soon after each event that could
// let a task be placed. It returns when the binds of all gangs that have begun are complete.
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
		s.await(ctx, periodic.C(), max(leastPause, s.Clock.Since(began)))
	}
	<-done
	return nil
}

// await returns when a cycle is due. Events trigger one after the pause at the earliest.
func (s *Scheduler) await(ctx context.Context, periodic <-chan time.Time, pause time.Duration) {
	timer := s.Clock.NewTimer(pause)
	defer timer.Stop()
	wake, paused := (<-chan struct{})(nil), timer.C()
	for {
		select {
		case <-ctx.Done():
			return
		case <-periodic:
			return
		case <-s.changed:
			return
		case <-paused:
			wake = s.cache.Wake()
		case <-wake:
			if !s.gathering() {
				return
			}
		}
	}
}

// gathering applies the events since the last cycle, and reports whether they are about gangs that still lack pods, and
// nothing else. A cycle could place none of these, and the event of the last pod triggers one. Until then the periodic
// cycle keeps statuses up to date, and what queues deserve, which depends on what their pods request.
func (s *Scheduler) gathering() bool {
	s.cache.Apply()
	cluster := s.cache.Model()
	return s.decided != 0 && cluster.Generations().Placement == s.placed && cluster.Events().Gathering()
}

// RunOnce runs one cycle. A panic in it is a bug: it is counted and logged, and the model is rebuilt
// from what the informers show.
func (s *Scheduler) RunOnce(ctx context.Context) {
	began := s.Clock.Now()
	s.busySince.Store(&began)
	defer s.busySince.Store(nil)
	defer s.recoverCycle()
	s.Metrics.CycleBegan(began)

	// 1. Activate a new configuration.
	if next := s.next.Swap(nil); next != nil {
		s.profile, s.decided = next.profile, 0
		s.cache.UseGroupSources(next.sources)
		s.cache.UseGrouping(next.grouping)
	}

	// 2. Apply the events since the last cycle. If the model has not changed, this cycle would decide
	// nothing new, unless a time has come that a session asked for.
	s.cache.Apply()
	cluster := s.cache.Model()
	due := !s.wake.IsZero() && !began.Before(s.wake)
	if cluster.Generations().Model == s.decided && !due {
		return
	}
	changed := cluster.Events().Recompute()

	// 3. Run a session: plugins register and jobs are validated; the actions run in their order; closing the session
	// undoes what was not committed. The cache takes over what a statement commits, and sends it to the API server while
	// the cycle continues. A cancelled ctx ends the actions, and the session is closed all the same.
	ssn, decided, _ := s.profile.Run(ctx, cluster, s.cache, s.Log, s.hooks())
	auditModel(cluster)

	// 4. Publish the results as statuses, conditions and metrics.
	changed = append(changed, decided...)
	s.cache.Publish(s.reporter.report(ssn, changed))
	s.Metrics.Publish(measure(ssn))

	// 5. Record that the next cycle has nothing to decide until the model changes. Volumes are an exception:
	// kube-scheduler's plugins read them outside the model, and do not say when they have seen a change.
	s.decided, s.placed, s.wake = cluster.Generations().Model, cluster.Generations().Placement, ssn.Wake()
	if slices.ContainsFunc(ssn.Backlog().Unclassified(), waitsForVolumes) {
		s.decided = 0
	}
	s.Metrics.Cycle(s.Clock.Since(began))
	s.summarize(ssn, began)
}

// hooks measures and logs the actions of a session. Only a cancelled context ends the actions: other errors are logged,
// and the next action runs.
func (s *Scheduler) hooks() framework.Hooks {
	var took time.Duration
	return framework.Hooks{
		Watch:     planAudits(),
		AfterOpen: func(ssn *framework.Session) { s.reporter.orders = observeOrders(ssn) },
		Around: func(ctx context.Context, _ string, run func(context.Context)) {
			began := s.Clock.Now()
			run(ctx)
			took = s.Clock.Since(began)
		},
		AfterAction: func(ssn *framework.Session, action framework.Action, err error) error {
			s.Metrics.Action(action.Name(), took)
			if err != nil && !errors.Is(err, context.Canceled) {
				ssn.Log.Error(err, "Action failed", "action", action.Name())
				return nil
			}
			return err
		},
	}
}

// waitsForVolumes reports whether a job has a pending task with volumes.
func waitsForVolumes(j *api.JobInfo) bool {
	return slices.ContainsFunc(j.Tasks, func(t *api.TaskInfo) bool { return t.Waiting() && t.Signature.Volumes })
}

// summarize counts and logs the decisions of a cycle.
func (s *Scheduler) summarize(ssn *framework.Session, began time.Time) {
	allocated, pipelined, evicted := ssn.Decided(api.Allocate), ssn.Decided(api.Pipeline), ssn.Decided(api.Evict)
	s.Metrics.Decided(api.Allocate, allocated)
	s.Metrics.Decided(api.Pipeline, pipelined)
	s.Metrics.Decided(api.Evict, evicted)
	for _, r := range ssn.Refusals() {
		s.Metrics.Refused(r.Plugin, r.Reason, r.Count)
	}
	log := ssn.Log.V(3)
	if allocated+evicted > 0 {
		log = ssn.Log.V(2)
	}
	log.Info("Cycle finished", "allocated", allocated, "pipelined", pipelined, "evicted", evicted, "jobs", ssn.Backlog().Count(), "duration", s.Clock.Since(began))
}

// recoverCycle ends a cycle that panicked.
func (s *Scheduler) recoverCycle() {
	reason := recover()
	if reason == nil {
		return
	}
	s.Metrics.CyclePanicked()
	s.Log.Error(fmt.Errorf("%v", reason), "Cycle panicked", "stack", string(debug.Stack()))
	s.cache.Rebuild()
	s.decided = 0
}
