// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/internal/version"
	batchscheme "github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned/scheme"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// run is the life of the process after its options are validated. It returns nil if ctx ended it and all components
// have stopped.
func (p *program) run(ctx context.Context, opts *Options) error {
	defer logs.FlushLogs()
	logger := klog.FromContext(ctx)
	logger.Info("Starting", "version", version.Describe(), "schedulerNames", opts.SchedulerNames)

	// 1. Build all components. Wrong files and addresses are errors here.
	proc, err := p.assemble(opts)
	if err != nil {
		return err
	}
	logWarnings(logger, proc.policy.warnings)

	// 2. Serve, record events and watch the configuration, until the scheduler has stopped.
	tasks := newBackground(ctx)
	if err = proc.startBackground(tasks); err != nil {
		proc.stopBackground(tasks)
		return err
	}

	// 3. Schedule.
	err = endedBy(ctx, proc.schedule(ctx))
	if errors.Is(err, errLeaseLost) {
		return err // Another replica may lead already: end at once.
	}
	proc.stopBackground(tasks)
	if err != nil {
		return err
	}
	logger.Info("Stopped")
	return nil
}

// process holds the components of a running program.
type process struct {
	opts        *Options
	policy      *policy
	scheduler   Scheduler
	election    *election
	broadcaster events.EventBroadcaster
	reloader    *reloader
	metrics     *metrics.Metrics
	certificate certificateSource
	endpoints   endpoints
	clock       clock.WithTicker
	server      string // the address of the API server
}

// assemble builds a process and starts nothing.
func (p *program) assemble(opts *Options) (*process, error) {
	registry, err := p.registry()
	if err != nil {
		return nil, err
	}
	policy, err := loadPolicy(opts, registry.Catalog(), p.clock)
	if err != nil {
		return nil, err
	}
	certificate, err := newCertificateSource(opts)
	if err != nil {
		return nil, err
	}
	gatherer := prometheus.NewRegistry()
	gatherer.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := metrics.New(gatherer)
	m.ConfigLoaded(p.clock.Now())
	api, err := newClients(opts, m)
	if err != nil {
		return nil, err
	}
	access, err := newAccess(api.kube)
	if err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: api.kube.EventsV1()})
	recorder := broadcaster.NewRecorder(newScheme(), "batch-scheduler")
	sched, err := p.newScheduler(scheduler.Options{
		SchedulerNames: opts.SchedulerNames, DefaultQueue: opts.DefaultQueue,
		Period: opts.SchedulePeriod, BindWorkers: opts.BindWorkers, GangGrace: opts.GangGrace,
		Kube: api.kube, Batch: api.batch, Dynamic: api.dynamic,
		Config: policy.configuration, Registry: registry, Metrics: m, Clock: p.clock, Log: klog.Background(),
	})
	if err != nil {
		broadcaster.Shutdown()
		return nil, err
	}
	election := newElection(opts.LeaderElection, api.lease, p.clock)
	return &process{
		opts: opts, policy: policy, scheduler: sched, election: election, broadcaster: broadcaster,
		reloader: &reloader{file: opts.SchedulerConf, scheduler: sched, metrics: m, clock: p.clock,
			events: recorder, self: selfReference(opts)},
		metrics:     m,
		clock:       p.clock,
		server:      api.server,
		certificate: certificate,
		endpoints: endpoints{
			live:    []check{sched.Healthy, election.healthy},
			ready:   []check{synced(sched)},
			metrics: promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}),
			access:  access,
			profile: opts.Profiling,
		},
	}, nil
}

// startBackground starts the server, the event recorder and the watcher of the configuration. It fails if the port
// cannot be opened; later errors are logged.
func (p *process) startBackground(tasks *background) error {
	l, err := listen(p.opts)
	if err != nil {
		return err
	}
	if l != nil {
		klog.FromContext(tasks.ctx).Info("Serving health and metrics", "address", l.Addr().String())
		tasks.start(func(ctx context.Context) {
			if err := serve(ctx, l, p.certificate, p.endpoints.handler()); err != nil {
				klog.FromContext(ctx).Error(err, "Server of health and metrics failed")
			}
		})
	}
	if err := p.broadcaster.StartRecordingToSinkWithContext(tasks.ctx); err != nil {
		return fmt.Errorf("recording events: %w", err)
	}
	if p.policy.watcher != nil {
		tasks.start(func(ctx context.Context) {
			p.policy.watcher.Run(ctx, func(c *conf.Configuration, w []conf.Warning, err error) {
				p.reloader.reload(ctx, c, w, err)
			})
		})
	}
	return nil
}

// stopBackground stops everything that startBackground has started, also after it failed.
func (p *process) stopBackground(tasks *background) {
	tasks.stop()
	p.broadcaster.Shutdown()
}

// schedule runs the scheduler until ctx ends or leadership is lost. It starts the informers before the election, so
// that a standby replica can lead without delay.
func (p *process) schedule(ctx context.Context) error {
	answered := p.noteWaiting(ctx)
	err := p.scheduler.Start(ctx)
	answered()
	if err != nil {
		return fmt.Errorf("starting the scheduler: %w", err)
	}
	if !p.opts.LeaderElection.LeaderElect {
		return p.lead(ctx)
	}
	return p.election.run(ctx, p.lead)
}

// lead runs the scheduler.
func (p *process) lead(ctx context.Context) error {
	p.metrics.Leads(true)
	defer p.metrics.Leads(false)
	return p.scheduler.Run(ctx)
}

// endedBy returns nil in place of an error that is only the end of ctx.
func endedBy(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.Is(err, errLeaseLost) {
		return nil
	}
	return err
}

// policy is the configuration at the start and the watcher of its file.
type policy struct {
	configuration *conf.Configuration
	warnings      []conf.Warning
	watcher       *conf.Watcher // nil if the built-in configuration is in force
}

func loadPolicy(opts *Options, catalog conf.Catalog, clk clock.Clock) (*policy, error) {
	var p policy
	var err error
	if opts.SchedulerConf == "" {
		p.configuration, err = conf.Default(catalog)
	} else {
		p.watcher = conf.NewWatcher(opts.SchedulerConf, catalog, clk)
		p.configuration, p.warnings, err = p.watcher.Load()
	}
	return &p, err
}

// newScheme returns a scheme of the types that are objects of events.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(batchscheme.AddToScheme(scheme))
	return scheme
}

// synced checks the readiness of a replica, leader or standby.
func synced(s Scheduler) check {
	return func() error {
		if !s.Synced() {
			return errors.New("the informers are not synced yet")
		}
		return nil
	}
}

// background runs functions until it is stopped, which is after the scheduler has stopped.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// newBackground returns a background that has the values of ctx but not its end.
func newBackground(ctx context.Context) *background {
	var b background
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return &b
}

// start runs a function that ends when its context does.
func (b *background) start(f func(context.Context)) {
	b.tasks.Go(func() { f(b.ctx) })
}

// stop cancels the context of all functions and returns when they have returned.
func (b *background) stop() {
	b.cancel()
	b.tasks.Wait()
}
