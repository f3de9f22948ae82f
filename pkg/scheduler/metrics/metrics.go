// Package metrics holds what the scheduler tells Prometheus about itself.
//
// Times are in seconds, resources in their base units (cpu in cores, memory in bytes). Labels are
// bounded by the configuration and the queues of the cluster, never by jobs, pods or nodes.
package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const namespace = "batch_scheduler"

// Metrics of one scheduler. All methods may be called from any goroutine.
type Metrics struct {
	cycleDuration  prometheus.Histogram
	cyclePanics    prometheus.Counter
	actionDuration *prometheus.HistogramVec
	decisions      *prometheus.CounterVec
	eventQueueLag  prometheus.Histogram
	bindDuration   *prometheus.HistogramVec
	evictions      *prometheus.CounterVec
	apiWrites      *prometheus.CounterVec
	reloads        *prometheus.CounterVec
	reloadTime     prometheus.Gauge
	queues         *queueCollector
}

// New returns metrics that are registered with the registerer, or with none if it is nil, as tests
// may want. It panics if the registerer has metrics of these names already.
func New(registerer prometheus.Registerer) *Metrics {
	factory := promauto.With(registerer)
	m := &Metrics{
		cycleDuration: factory.NewHistogram(histogram("cycle_duration_seconds",
			"Duration of a scheduling cycle, from applying events to handing over decisions.")),
		cyclePanics: factory.NewCounter(counter("cycle_panics_total",
			"Cycles that ended in a panic and were recovered.")),
		actionDuration: factory.NewHistogramVec(histogram("action_duration_seconds",
			"Duration of one action within a cycle."), []string{"action"}),
		decisions: factory.NewCounterVec(counter("decisions_total",
			"Committed decisions by kind."), []string{"kind"}),
		eventQueueLag: factory.NewHistogram(histogram("event_queue_lag_seconds",
			"Age of the oldest event of the cluster when a cycle applied it.")),
		bindDuration: factory.NewHistogramVec(histogram("bind_duration_seconds",
			"Time from sending a binding to its answer, by result."), []string{"result"}),
		evictions: factory.NewCounterVec(counter("evictions_total",
			"Pods evicted, by cause and result."), []string{"cause", "result"}),
		apiWrites: factory.NewCounterVec(counter("api_writes_total",
			"Requests to the API server that may change something, by verb, resource and answer (0: no answer)."),
			[]string{"verb", "resource", "code"}),
		reloads: factory.NewCounterVec(counter("config_reloads_total",
			"Changes of the configuration file by result; after a failure the old configuration stays in force."),
			[]string{"result"}),
		reloadTime: factory.NewGauge(prometheus.GaugeOpts{Namespace: namespace,
			Name: "config_last_success_timestamp_seconds",
			Help: "When the configuration in force was loaded, in seconds since 1970."}),
		queues: newQueueCollector(),
	}
	// Rates need a first value of zero.
	m.reloads.WithLabelValues(string(reloadSucceeded))
	m.reloads.WithLabelValues(string(reloadFailed))
	if registerer != nil {
		registerer.MustRegister(m.queues)
	}
	return m
}

// histogram spans 100 µs to about 50 s: from an idle cycle to a cluster in trouble.
func histogram(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help,
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 20),
	}
}

func counter(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}
}

// Cycle records a cycle that ended without a panic.
func (m *Metrics) Cycle(d time.Duration) {
	m.cycleDuration.Observe(d.Seconds())
}

// CyclePanicked records a cycle that ended in a panic.
func (m *Metrics) CyclePanicked() {
	m.cyclePanics.Inc()
}

// Action records one execution of an action.
func (m *Metrics) Action(name string, d time.Duration) {
	m.actionDuration.WithLabelValues(name).Observe(d.Seconds())
}

// DecisionKind says what was decided about a task.
type DecisionKind string

// The kinds of decisions.
const (
	Allocate DecisionKind = "allocate" // to be bound
	Pipeline DecisionKind = "pipeline" // waits for room that is being released
	Evict    DecisionKind = "evict"
)

// Decided records decisions of one kind that were committed together.
func (m *Metrics) Decided(kind DecisionKind, count int) {
	m.decisions.WithLabelValues(string(kind)).Add(float64(count))
}

// EventsApplied records how long the oldest of the events waited that a cycle has applied.
func (m *Metrics) EventsApplied(oldest time.Duration) {
	m.eventQueueLag.Observe(oldest.Seconds())
}

// BindResult is what is known about a binding after its call.
type BindResult string

// The results of a binding.
const (
	BindSucceeded BindResult = "success"
	BindRefused   BindResult = "refused" // the answer excludes success
	BindUnknown   BindResult = "unknown" // no answer: the pod may be bound or not
)

// Bind records one call of the binding subresource.
func (m *Metrics) Bind(result BindResult, d time.Duration) {
	m.bindDuration.WithLabelValues(string(result)).Observe(d.Seconds())
}

// EvictionResult is what became of an eviction.
type EvictionResult string

// The results of an eviction.
const (
	Evicted         EvictionResult = "success"
	EvictionRefused EvictionResult = "refused"
)

// Eviction records a pod that was evicted, or whose eviction was refused.
func (m *Metrics) Eviction(cause string, result EvictionResult) {
	m.evictions.WithLabelValues(cause, string(result)).Inc()
}

// APIWrite records one request that may have changed something. The verb and the resource, with
// its subresource behind a slash, are those that RBAC rules name; the code is the HTTP status, 0 if
// there was no answer.
func (m *Metrics) APIWrite(verb, resource string, code int) {
	m.apiWrites.WithLabelValues(verb, resource, strconv.Itoa(code)).Inc()
}

type reloadResult string

const (
	reloadSucceeded reloadResult = "success"
	reloadFailed    reloadResult = "failure"
)

// ConfigLoaded records a configuration that came into force when the scheduler started.
func (m *Metrics) ConfigLoaded(at time.Time) {
	m.reloadTime.Set(float64(at.UnixMilli()) / 1000)
}

// ConfigReloaded records a changed configuration that came into force.
func (m *Metrics) ConfigReloaded(at time.Time) {
	m.reloads.WithLabelValues(string(reloadSucceeded)).Inc()
	m.ConfigLoaded(at)
}

// ConfigRefused records a changed configuration that could not be used.
func (m *Metrics) ConfigRefused() {
	m.reloads.WithLabelValues(string(reloadFailed)).Inc()
}

// PublishQueues replaces all that is told about queues. The caller must not change the slice or
// what it refers to afterwards.
func (m *Metrics) PublishQueues(queues []Queue) {
	m.queues.latest.Store(&queues)
}

// Queue is what one cycle found out about one queue.
type Queue struct {
	Name   string
	Weight int32

	// Deserved and Allocated are the shares of the queue.
	Deserved, Allocated []Amount

	// Pending counts the groups that wait, at most one entry for a reason.
	Pending []Pending
}

// Amount of one resource, in its base unit: cores, bytes, or a count.
type Amount struct {
	Resource string
	Value    float64
}

// Pending counts the groups of a queue that wait for one reason, a reason of the PodGroupScheduled
// condition.
type Pending struct {
	Reason string
	Groups int
}

// queueCollector turns the latest published queues into metrics. Queues and reasons that are gone
// leave no series behind, and a scrape never sees half of an update.
type queueCollector struct {
	latest                               atomic.Pointer[[]Queue]
	weight, deserved, allocated, pending *prometheus.Desc
}

func newQueueCollector() *queueCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &queueCollector{
		weight: desc("queue_weight", "Weight of a queue.", "queue"),
		deserved: desc("queue_deserved", "What a queue deserves of a resource (cores, bytes, or a count).",
			"queue", "resource"),
		allocated: desc("queue_allocated", "What the pods of a queue hold of a resource (cores, bytes, or a count).",
			"queue", "resource"),
		pending: desc("pending_groups", "Groups that wait, by the reason of their condition.", "queue", "reason"),
	}
}

// Describe implements prometheus.Collector.
func (c *queueCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.weight
	descs <- c.deserved
	descs <- c.allocated
	descs <- c.pending
}

// Collect implements prometheus.Collector.
func (c *queueCollector) Collect(metrics chan<- prometheus.Metric) {
	queues := c.latest.Load()
	if queues == nil {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for _, q := range *queues {
		gauge(c.weight, float64(q.Weight), q.Name)
		for _, a := range q.Deserved {
			gauge(c.deserved, a.Value, q.Name, a.Resource)
		}
		for _, a := range q.Allocated {
			gauge(c.allocated, a.Value, q.Name, a.Resource)
		}
		for _, p := range q.Pending {
			gauge(c.pending, float64(p.Groups), q.Name, p.Reason)
		}
	}
}
