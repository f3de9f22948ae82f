// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/informers/externalversions"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/bind"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/events"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/evict"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/groups"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/status"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/ownerapi"
)

// Options are the parts of a Cache. All are required, except where a default is named.
type Options struct {
	// SchedulerNames are the values of spec.schedulerName of the pods to schedule. Events have the first one as controller.
	SchedulerNames []string
	// DefaultQueue is the queue of PodGroups and pods that name none.
	DefaultQueue string

	// Kube and Batch should have no client-side rate limit below what the API server accepts.
	Kube  kubernetes.Interface
	Batch versioned.Interface
	// Dynamic reads and writes PodGroups of other APIs; nil if none are read.
	Dynamic dynamic.Interface
	// GroupSources are the other APIs whose PodGroups are read, until UseGroupSources.
	GroupSources api.GroupSources
	// Grouping are the kinds of objects that make gangs of their pods, until UseGrouping.
	Grouping api.Grouping
	// Informers are shared with the plugins and must not be started before New.
	Informers informers.SharedInformerFactory

	// BindWorkers is how many binds are sent at the same time; DefaultBindWorkers if not
	// positive.
	BindWorkers int

	Clock   clock.WithTicker // the real clock by default
	Log     logr.Logger
	Metrics Metrics // none by default
}

// DefaultBindWorkers is the default of Options.BindWorkers.
const DefaultBindWorkers = bind.DefaultWorkers

func (o *Options) complete() error {
	switch {
	case len(o.SchedulerNames) == 0:
		return errors.New("cache: no scheduler name")
	case o.DefaultQueue == "":
		return errors.New("cache: no default queue")
	case o.Kube == nil || o.Batch == nil || o.Informers == nil:
		return errors.New("cache: a client or the informers are missing")
	}
	if o.BindWorkers <= 0 {
		o.BindWorkers = DefaultBindWorkers
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	return nil
}

// Cache feeds the model and carries out what cycles decide; see the package comment.
type Cache struct {
	options Options
	log     logr.Logger

	// These belong to the scheduling goroutine.
	model *model.Cluster
	// observed is the last applied event of each object that exists: what Rebuild builds a new
	// model from.
	observed map[objectKey]event
	// groupSources are those of which the model has the groups.
	groupSources api.GroupSources

	queue eventQueue
	wake  chan struct{}

	groupInformers externalversions.SharedInformerFactory
	groups         *groups.Watcher // of other APIs; nil if there is no client for them
	owners         *ownerFeed
	topologies     *topologyFeed
	sources        []*source
	failures       *watchFailures
	trimmer        *trimmer
	devices        *deviceFeed
	synced         atomic.Bool

	binder   binder
	evictor  evictor
	recorder *events.Recorder
	statuses *status.Writers
}

// binder is what the cache needs of *bind.Binder.
type binder interface {
	Enqueue(*bind.Unit)
	Forget(types.UID)
	Yield(ctx context.Context, atMost time.Duration)
	Run(context.Context)
}

// evictor is what the cache needs of *evict.Evictor.
type evictor interface {
	Enqueue(*evict.Plan)
	Forget(types.UID)
	Yield(ctx context.Context, atMost time.Duration)
	Run(context.Context)
}

// New returns a cache with an empty model. Nothing runs before Start.
func New(o Options) (*Cache, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	c := &Cache{
		options:        o,
		groupSources:   o.GroupSources,
		log:            o.Log.WithName("cache"),
		observed:       map[objectKey]event{},
		wake:           make(chan struct{}, 1),
		groupInformers: externalversions.NewSharedInformerFactory(o.Batch, 0),
		trimmer:        newTrimmer(),
		failures:       newWatchFailures(o.Log.WithName("cache"), o.Clock),
	}
	c.queue.clock = o.Clock
	c.devices = newDeviceFeed(c)
	for _, name := range o.SchedulerNames {
		o.Metrics.PodsBoundByOthers(name, 0)
	}
	c.owners = newOwnerFeed(c)
	c.topologies = newTopologyFeed(c)
	c.model = c.emptyModel(nil)
	c.groups = newGroups(c)
	c.wireEffects()
	if err := c.listen(); err != nil {
		return nil, err
	}
	return c, nil
}

// wireEffects makes the parts that write to the API server. The binder comes last, but the others
// yield to it.
func (c *Cache) wireEffects() {
	o := c.options
	yield := func(ctx context.Context, atMost time.Duration) { c.binder.Yield(ctx, atMost) }
	batch := c.groupInformers.Scheduling().V1alpha1()
	c.recorder = events.New(events.Options{SchedulerName: o.SchedulerNames[0], Kube: o.Kube, Yield: yield, Clock: o.Clock, Log: o.Log})
	c.statuses = status.New(status.Options{
		Kube: o.Kube, Batch: o.Batch, Dynamic: o.Dynamic, OtherGroups: c.groups,
		PodGroups: batch.PodGroups().Lister(), Queues: batch.Queues().Lister(), Topologies: c.topologies,
		Pods:   o.Informers.Core().V1().Pods().Lister(),
		Events: c.recorder, Yield: c.yieldToAll, Clock: o.Clock, Log: o.Log,
	})
	c.evictor = evict.New(evict.Options{
		Kube: o.Kube, Workers: evict.DefaultWorkers, Handler: results{c}, Events: c.recorder, Status: c.statuses, Metrics: o.Metrics,
		Clock: o.Clock, Log: o.Log,
	})
	c.binder = bind.New(bind.Options{
		Kube: o.Kube, Workers: o.BindWorkers, Handler: results{c}, Events: c.recorder, Metrics: o.Metrics, Clock: o.Clock, Log: o.Log,
	})
}

// yieldToAll waits until no bind and no eviction is queued or being sent, but at most for the given time.
func (c *Cache) yieldToAll(ctx context.Context, atMost time.Duration) {
	began := c.options.Clock.Now()
	c.binder.Yield(ctx, atMost)
	if left := atMost - c.options.Clock.Since(began); left > 0 {
		c.evictor.Yield(ctx, left)
	}
}

// emptyModel returns a model without objects that takes over a record of operations in flight.
func (c *Cache) emptyModel(inFlight *model.InFlight) *model.Cluster {
	o := model.Options{
		SchedulerNames: c.options.SchedulerNames,
		DefaultQueue:   api.QueueID(c.options.DefaultQueue),
		GroupSources:   c.groupSources,
		KueueGroups:    c.owners.grouping.Kinds.Has(api.KindKueue),
		InFlight:       inFlight,

		TopologiesUnread: c.topologies.unread,
	}
	if rules := ownerapi.RulesOf(c.owners.grouping); rules != nil {
		o.OwnerRules = rules
	}
	return model.NewCluster(o)
}

// Model returns the model, which Rebuild replaces. Only the scheduling goroutine may use it.
func (c *Cache) Model() *model.Cluster { return c.model }

// Wake returns a channel that receives a signal after events that could let a task be placed. One
// signal may stand for many events.
func (c *Cache) Wake() <-chan struct{} { return c.wake }

func (c *Cache) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default: // a signal is pending already
	}
}

// Synced reports whether the event queue has received every object that existed when the informers
// started, so that the model is complete after the next Apply.
func (c *Cache) Synced() bool { return c.synced.Load() }

// Apply applies the events since the last call to the model, and returns their number. Only the
// scheduling goroutine may call it, between sessions.
func (c *Cache) Apply() int {
	batch, since := c.queue.drain()
	for _, e := range batch {
		if !c.apply(e) {
			c.Rebuild()
		}
	}
	c.devices.requestFrom(c.model.Dims())
	c.owners.resolve()
	c.topologies.need()
	if len(batch) > 0 {
		c.options.Metrics.EventsApplied(c.options.Clock.Since(since))
	}
	return len(batch)
}

// apply applies one event, and reports whether the model is intact. If the model panics, the
// object is left out of it until the next event about it: one malformed object must not stop the
// scheduler. The caller rebuilds the model then.
func (c *Cache) apply(e event) (ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			c.log.Error(fmt.Errorf("%v", cause), "Event left out after a panic; this is a bug, please report it", "event", e.String())
			if key, ok := e.key(); ok {
				delete(c.observed, key)
			}
		}
	}()
	e.apply(c)
	return true
}

// Rebuild replaces the model by a new one with the same content, binds and evictions in flight
// included. RunOnce calls it after a panic in a cycle.
func (c *Cache) Rebuild() {
	for !c.replay() {
	}
}

func (c *Cache) replay() bool {
	c.model = c.emptyModel(c.model.InFlight())
	keys := make([]objectKey, 0, len(c.observed))
	for key := range c.observed {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, objectKey.compare)
	for _, key := range keys {
		if !c.apply(c.observed[key]) {
			return false
		}
	}
	return true
}

// EnableGroupSources starts the informers of the sources that the API server serves, and returns when they have synced.
// The model gets the groups from UseGroupSources on.
func (c *Cache) EnableGroupSources(ctx context.Context, sources api.GroupSources) {
	if c.groups != nil {
		c.groups.Enable(ctx, sources)
	}
}

// UseGroupSources builds the model with the groups of other sources, if they are others than before. Only the scheduling
// goroutine may call it.
func (c *Cache) UseGroupSources(sources api.GroupSources) {
	if sources == c.groupSources {
		return
	}
	c.groupSources = sources
	c.Rebuild()
	if c.groups != nil {
		c.groups.Keep(sources)
	}
}

// EnableGrouping starts the informers of the objects that make gangs of their pods, and returns when they have synced. The
// model makes the gangs from UseGrouping on.
func (c *Cache) EnableGrouping(ctx context.Context, grouping api.Grouping) {
	c.owners.enable(ctx, grouping)
}

// UseGrouping builds the model with other rules for gangs, if they are others than before. Only the scheduling goroutine may
// call it.
func (c *Cache) UseGrouping(grouping api.Grouping) {
	if c.owners.use(grouping) {
		c.Rebuild()
	}
}

// Run carries out what is committed and published. It ends when ctx is done and the binder has
// finished the units that it had begun; see bind.Binder.Run.
func (c *Cache) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, run := range []func(context.Context){c.statuses.Run, c.recorder.Run, c.evictor.Run} {
		running.Go(func() { run(ctx) })
	}
	c.binder.Run(ctx)
	running.Wait()
	c.statuses.Flush(context.WithoutCancel(ctx))
}
