package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/informers/externalversions"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Options are what a Cache is made of. All are required, except where a default is named.
type Options struct {
	// SchedulerName is the spec.schedulerName of the pods to schedule.
	SchedulerName string
	// DefaultQueue is the queue of groups and pods that name none.
	DefaultQueue string

	// Kube and Batch should have no client-side rate limit below what the API server takes.
	Kube  kubernetes.Interface
	Batch versioned.Interface
	// Informers are shared with the plugins and must not be started before New.
	Informers informers.SharedInformerFactory

	// BindWorkers is how many binds are sent at the same time; DefaultBindWorkers if not
	// positive.
	BindWorkers int

	Clock   clock.WithTicker // the real clock by default
	Log     logr.Logger
	Metrics Metrics // none by default
}

// DefaultBindWorkers keeps an API server busy while each request waits for its storage, which writes
// the more requests at once the more there are (docs/performance.md).
const DefaultBindWorkers = 128

func (o *Options) complete() error {
	switch {
	case o.SchedulerName == "":
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

// Cache feeds the model and carries out what cycles decide.
type Cache struct {
	options Options
	log     logr.Logger

	// These belong to the scheduling goroutine.
	model *api.Cluster
	// shown is what the changes applied so far have shown, object by object: what a new model
	// is built from.
	shown map[objectKey]change
	// flights are binds that were committed and that the model has not yet seen the end of.
	flights map[types.UID]landing
	// leaving are pods whose eviction was committed and that the model has not yet seen the end of.
	leaving map[types.UID]struct{}
	// off are jobs that are put off, and why.
	off map[api.JobID]string

	changes changes
	wake    chan struct{}

	groupInformers externalversions.SharedInformerFactory
	sources        []*source
	trimmer        *trimmer
	synced         atomic.Bool

	binder   *binder
	evictor  *evictor
	recorder *recorder
	statuses statuses
}

// landing is where a pod in flight goes.
type landing struct {
	node string
	api.Commitment
}

// New makes a cache with an empty model. Nothing runs before Start.
func New(o Options) (*Cache, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	c := &Cache{
		options:        o,
		log:            o.Log.WithName("cache"),
		shown:          map[objectKey]change{},
		flights:        map[types.UID]landing{},
		leaving:        map[types.UID]struct{}{},
		off:            map[api.JobID]string{},
		wake:           make(chan struct{}, 1),
		groupInformers: externalversions.NewSharedInformerFactory(o.Batch, 0),
		trimmer:        newTrimmer(),
	}
	c.changes.clock = o.Clock
	c.model = c.emptyModel()
	c.recorder = newRecorder(o)
	c.binder = newBinder(o, c.recorder, c)
	c.recorder.calm = c.binder.calm
	c.evictor = newEvictor(o, c.recorder, c)
	c.statuses = c.newStatuses()
	if err := c.listen(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Cache) emptyModel() *api.Cluster {
	return api.NewCluster(api.Options{
		SchedulerName: c.options.SchedulerName,
		DefaultQueue:  api.QueueID(c.options.DefaultQueue),
	})
}

// Model returns the model, which Rebuild replaces. Only the scheduling goroutine may use it.
func (c *Cache) Model() *api.Cluster { return c.model }

// Wake signals that something changed that could let something be placed. One signal may stand
// for many changes.
func (c *Cache) Wake() <-chan struct{} { return c.wake }

func (c *Cache) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default: // a signal is waiting already
	}
}

// Synced tells whether the model could be complete: everything that existed when the informers
// started has been handed to Apply.
func (c *Cache) Synced() bool { return c.synced.Load() }

// Apply tells the model what happened since the last call, and returns how many changes there
// were. Only the scheduling goroutine may call it, between sessions.
func (c *Cache) Apply() int {
	batch, since := c.changes.take()
	for _, change := range batch {
		if !c.try(change) {
			c.Rebuild()
		}
	}
	if len(batch) > 0 {
		c.options.Metrics.EventsApplied(c.options.Clock.Since(since))
	}
	return len(batch)
}

// try applies a change. If the model panics at it, the object is left out from now on, until it
// changes again: one odd object must not stop the scheduler. The model is broken then.
func (c *Cache) try(change change) (ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			c.log.Error(nil, "An object breaks the model and is left out; this is a bug, please report it", "object", change.String(), "panic", cause)
			if key, ok := change.about(); ok {
				delete(c.shown, key)
			}
		}
	}()
	change.apply(c)
	return true
}

// Rebuild replaces the model by a fresh one with the same content, binds in flight included.
// Called after a panic in a cycle.
func (c *Cache) Rebuild() {
	for !c.replay() {
	}
}

func (c *Cache) replay() bool {
	c.model = c.emptyModel()
	keys := make([]objectKey, 0, len(c.shown))
	for key := range c.shown {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, objectKey.compare)
	for _, key := range keys {
		if !c.try(c.shown[key]) {
			return false
		}
	}
	for uid, f := range c.flights {
		c.model.RestoreAssumed(api.TaskID(uid), f.node, f.Commitment)
	}
	for uid := range c.leaving {
		if t := c.model.Tasks[api.TaskID(uid)]; t != nil && t.Status.Holding() { // also on a node that is gone
			c.model.MarkEvicting(t)
		}
	}
	for job, why := range c.off {
		c.model.SetBackoff(job, why)
	}
	return true
}

// Commit queues the binds of one statement as a unit, and its evictions as a plan, and returns at
// once. It implements framework.Effects.
func (c *Cache) Commit(decisions []api.Decision) {
	u, p := &unit{}, &plan{}
	for _, d := range decisions {
		switch d.Kind {
		case api.Allocate:
			c.launch(u, d)
		case api.Evict:
			c.evict(p, d)
		}
	}
	if len(p.victims) > 0 {
		slices.SortStableFunc(p.victims, func(a, b *eviction) int { return strings.Compare(a.job, b.job) })
		c.evictor.enqueue(p)
	}
	if len(u.flights) > 0 {
		c.binder.enqueue(u)
	}
}

func (c *Cache) launch(u *unit, d api.Decision) {
	job, pod := d.Task.Job, d.Task.Pod
	f := &flight{
		unit: u, namespace: pod.Namespace, name: pod.Name, uid: pod.UID, created: pod.CreationTimestamp.Time,
		reservations: d.External,
		landing:      landing{node: d.Node.Name, Commitment: api.Commitment{GroupUID: job.GroupUID()}},
	}
	if job.Queue != nil {
		f.Queue = job.Queue.ID
	}
	if job.Group != nil {
		u.group = referenceTo(job.Group)
		u.complete = later(u.complete, job.Group.CreationTimestamp.Time)
	}
	u.complete = later(u.complete, f.created)
	u.flights = append(u.flights, f)
	u.reserves = u.reserves || len(f.reservations) > 0
	u.job = job.ID
	u.forms = job.ReadyCount()-int32(len(u.flights)) < job.MinMember
	c.flights[f.uid] = f.landing
	c.statuses.pods.drop(f.uid)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (c *Cache) evict(p *plan, d api.Decision) {
	pod := d.Task.Pod
	p.victims = append(p.victims, &eviction{namespace: pod.Namespace, name: pod.Name, uid: pod.UID, job: string(d.Task.Job.ID), cause: d.Cause})
	if p.beneficiary = d.For.Key; d.For.Group != nil {
		p.group = referenceTo(d.For.Group)
	}
	if p.taker == nil {
		p.taker = takerOf(d.For)
	}
	c.leaving[pod.UID] = struct{}{}
}

// Publish takes over what a cycle found out, and returns at once. What differs from what the
// API server shows is written later, the latest first.
func (c *Cache) Publish(report *api.Report) {
	for _, g := range report.PodGroups {
		c.statuses.groups.want(g.UID, g)
	}
	for _, q := range report.Queues {
		c.statuses.queues.want(q.UID, q)
	}
	for _, p := range report.Pods {
		c.statuses.pods.want(p.UID, p)
	}
}

// Run carries out what is committed and published. It ends when ctx is done and every unit of
// which a bind was sent is finished, or drainTimeout has passed; units not begun are dropped.
func (c *Cache) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, run := range []func(context.Context){c.statuses.groups.run, c.statuses.queues.run, c.statuses.pods.run, c.recorder.run, c.evictor.run} {
		running.Go(func() { run(ctx) })
	}
	c.binder.run(ctx)
	running.Wait()
}

// refused, vanished, putOff and readmitted are how the binder tells what became of binds that failed; see tower.
func (c *Cache) refused(f *flight) {
	c.changes.add(bindRefused{f.uid, fmt.Sprintf("binding pod %s to node %s failed: %v", f.name, f.node, f.failure)})
	c.wakeUp()
}

func (c *Cache) putOff(job api.JobID, flights []*flight, why string) {
	p := putOff{job: job, why: why}
	for _, f := range flights {
		p.refused = append(p.refused, bindRefused{uid: f.uid})
	}
	c.changes.add(p)
	c.wakeUp()
}

func (c *Cache) readmitted(job api.JobID) {
	c.changes.add(readmitted{job})
	c.wakeUp()
}

func (c *Cache) vanished(f *flight) {
	c.changes.add(podVanished{objectKey{rankPod, f.namespace, f.name, f.uid}})
	c.wakeUp()
}

// spared and pardoned are how the evictor tells what became of an eviction; see bailiff.
func (c *Cache) spared(e *eviction, refused bool) {
	c.changes.add(evictionFailed{e.uid, refused})
	c.wakeUp()
}

func (c *Cache) pardoned(uid types.UID) {
	c.changes.add(pardon{uid})
	c.wakeUp()
}
