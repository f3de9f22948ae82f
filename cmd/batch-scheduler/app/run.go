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
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// run is the life of the process after its options were found valid. It returns nil when ctx ended
// it and everything was finished.
func (p *program) run(ctx context.Context, opts *Options) error {
	defer logs.FlushLogs()
	logger := klog.FromContext(ctx)
	logger.Info("Starting", "version", version.Describe(), "schedulerName", opts.SchedulerName)

	// 1. Build everything. What is wrong with files or addresses shows here.
	proc, err := p.assemble(opts)
	if err != nil {
		return err
	}
	logWarnings(logger, proc.policy.warnings)

	// 2. Serve, record events and watch the configuration, until the scheduler has stopped.
	beside := newBackground(ctx)
	if err = proc.accompany(beside); err != nil {
		proc.dismiss(beside)
		return err
	}

	// 3. Schedule.
	err = endedBy(ctx, proc.schedule(ctx))
	if errors.Is(err, errLeaseLost) {
		return err // Another replica may lead by now: wait for nothing.
	}
	proc.dismiss(beside)
	if err != nil {
		return err
	}
	logger.Info("Stopped")
	return nil
}

// process is everything that a running program consists of.
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
}

// assemble builds a process that does nothing yet.
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
	scheduler, err := p.newScheduler(parts{
		SchedulerName: opts.SchedulerName, DefaultQueue: opts.DefaultQueue,
		Period: opts.SchedulePeriod, BindWorkers: opts.BindWorkers, GangGrace: opts.GangGrace,
		Kube: api.kube, Batch: api.batch, Events: recorder,
		Config: policy.configuration, Registry: registry, Metrics: m, Clock: p.clock,
	})
	if err != nil {
		broadcaster.Shutdown()
		return nil, err
	}
	election := newElection(opts.LeaderElection, api.lease, p.clock)
	return &process{
		opts: opts, policy: policy, scheduler: scheduler, election: election, broadcaster: broadcaster,
		reloader: &reloader{file: opts.SchedulerConf, scheduler: scheduler, metrics: m, clock: p.clock,
			events: recorder, self: selfReference(opts)},
		metrics:     m,
		certificate: certificate,
		endpoints: endpoints{
			live:    []check{scheduler.Healthy, election.healthy},
			ready:   []check{synced(scheduler)},
			metrics: promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}),
			access:  access,
			profile: opts.Profiling,
		},
	}, nil
}

// accompany starts what goes on beside the scheduler. It fails if the port cannot be opened; what
// goes wrong later is logged.
func (p *process) accompany(beside *background) error {
	l, err := listen(p.opts)
	if err != nil {
		return err
	}
	if l != nil {
		klog.FromContext(beside.ctx).Info("Serving health and metrics", "address", l.Addr().String())
		beside.start(func(ctx context.Context) {
			if err := serve(ctx, l, p.certificate, p.endpoints.handler()); err != nil {
				klog.FromContext(ctx).Error(err, "Health and metrics are no longer served")
			}
		})
	}
	if err := p.broadcaster.StartRecordingToSinkWithContext(beside.ctx); err != nil {
		return fmt.Errorf("recording events: %w", err)
	}
	if p.policy.watcher != nil {
		beside.start(func(ctx context.Context) {
			p.policy.watcher.Run(ctx, func(c *conf.Configuration, w []conf.Warning, err error) {
				p.reloader.reload(ctx, c, w, err)
			})
		})
	}
	return nil
}

// dismiss ends what accompany started, as far as it came.
func (p *process) dismiss(beside *background) {
	beside.stop()
	p.broadcaster.Shutdown()
}

// schedule runs the scheduler until ctx ends or leadership is lost. The informers come first, so
// that a standby replica can take over at once.
func (p *process) schedule(ctx context.Context) error {
	if err := p.scheduler.Start(ctx); err != nil {
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

// endedBy returns nil in place of an error that only says that ctx has ended.
func endedBy(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.Is(err, errLeaseLost) {
		return nil
	}
	return err
}

// policy is the configuration at the start, and the watch over its file.
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

// newScheme knows the types that events may be about.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(batchscheme.AddToScheme(scheme))
	return scheme
}

// synced is the readiness of a replica, whether it leads or stands by.
func synced(s Scheduler) check {
	return func() error {
		if !s.Synced() {
			return errors.New("the informers are not synced yet")
		}
		return nil
	}
}

// background is what goes on beside the scheduler and is stopped after it.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// newBackground returns a background that does not end with ctx but when it is stopped.
func newBackground(ctx context.Context) *background {
	var b background
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return &b
}

// start runs a function that ends when its context does.
func (b *background) start(f func(context.Context)) {
	b.tasks.Go(func() { f(b.ctx) })
}

// stop ends all functions and waits for them.
func (b *background) stop() {
	b.cancel()
	b.tasks.Wait()
}
