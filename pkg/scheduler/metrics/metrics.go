// Package metrics holds what the scheduler tells Prometheus about itself.
//
// Times are in seconds, resources in their base units (cpu in cores, memory in bytes). Labels are
// bounded by the configuration and the queues of the cluster, never by jobs, pods or nodes.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of one scheduler. All methods may be called from any goroutine.
type Metrics struct {
	cycleDuration  prometheus.Observer
	cycleStart     prometheus.Gauge
	cyclePanics    prometheus.Counter
	actionDuration *prometheus.HistogramVec
	decisions      *prometheus.CounterVec
	eventQueueLag  prometheus.Observer
	bindDuration   *prometheus.HistogramVec
	podWait        prometheus.Observer
	evictions      *prometheus.CounterVec
	apiWrites      *prometheus.CounterVec
	watchErrors    *prometheus.CounterVec
	leader         prometheus.Gauge
	reloads        *prometheus.CounterVec
	reloadGood     prometheus.Gauge
	reloadTime     prometheus.Gauge
	*modelCollector
}

// New returns metrics that are registered with the registerer, or with none if it is nil, as tests
// may want. It panics if the registerer has metrics of these names already.
func New(registerer prometheus.Registerer) *Metrics {
	m, _ := newMetrics(registerer)
	return m
}

func newMetrics(registerer prometheus.Registerer) (*Metrics, []Description) {
	create := newMaker(registerer)
	m := &Metrics{
		cycleDuration: create.histogram("cycle_duration_seconds",
			"Duration of a scheduling cycle, from applying events to handing over decisions. Cycles that are skipped because nothing has changed do not count.",
			short()).WithLabelValues(),
		cycleStart: create.gauge("last_cycle_start_timestamp_seconds",
			"When the last cycle began, skipped ones included, in seconds since 1970; 0 before the first, as on a replica that does not lead.").WithLabelValues(),
		cyclePanics: create.counter("cycle_panics_total",
			"Cycles that ended in a panic and were recovered. Each is a bug.").WithLabelValues(),
		actionDuration: create.histogram("action_duration_seconds",
			"Duration of one action within a cycle.", short(), actionLabel()),
		decisions: create.counter("decisions_total",
			"Committed decisions about pods: to bind it (allocate), to keep room for it that is being released (pipeline), to evict it (evict). An eviction whose room nobody needs any more when its turn comes is not made.",
			decisionLabel()),
		eventQueueLag: create.histogram("event_queue_lag_seconds",
			"Age of the oldest event of the cluster when a cycle applied it.", short()).WithLabelValues(),
		bindDuration: create.histogram("bind_duration_seconds",
			"Time from sending a binding to its answer. Whether a pod with an unknown result is bound is looked up later.",
			short(), bindLabel()),
		podWait: create.histogram("pod_wait_seconds",
			"Time from the creation of a pod, which the API server tells to the second, until it is bound.",
			long()).WithLabelValues(),
		evictions: create.counter("evictions_total",
			"Pods evicted, or whose eviction the API server refused, for a job of their queue (preempted), for another queue that deserves the room (reclaimed), or because too few of their gang run (gang-degraded).",
			causeLabel(), evictionLabel()),
		apiWrites: create.counter("api_writes_total",
			"Requests to the API server that may change something, by answer. A conflict (409) is tried again and harmless.",
			verbLabel(), writtenLabel(), codeLabel()),
		watchErrors: create.counter("watch_errors_total",
			"Lists and watches of the API server that failed, not counting watches that only expired.", watchedLabel()),
		leader: create.gauge("leader",
			"1 while this replica schedules, which it does as the leader or without leader election; else 0.").WithLabelValues(),
		reloads: create.counter("config_reloads_total",
			"Changes of the configuration file; after a failure the old configuration stays in force.", reloadLabel()),
		reloadGood: create.gauge("config_last_reload_successful",
			"0 if the configuration file has been changed to something that is refused, so that an older one is in force; else 1.").WithLabelValues(),
		reloadTime: create.gauge("config_last_success_timestamp_seconds",
			"When the configuration in force was loaded, in seconds since 1970.").WithLabelValues(),
		modelCollector: newModelCollector(create),
	}
	if registerer != nil {
		registerer.MustRegister(m.modelCollector)
	}
	return m, create.made
}

// short buckets span 100 µs to about 50 s: from an idle cycle to a cluster in trouble.
func short() []float64 { return prometheus.ExponentialBuckets(0.0001, 2, 20) }

// long buckets span 1 s to about 36 hours: from room that is free to a queue that is full over night.
func long() []float64 { return prometheus.ExponentialBuckets(1, 2, 18) }

// CycleBegan records that a cycle begins, even if it will be skipped.
func (m *Metrics) CycleBegan(at time.Time) {
	m.cycleStart.Set(seconds(at))
}

// Cycle records a cycle that was not skipped and ended without a panic.
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

// PodBound records a pod that was bound, and how long ago it was created.
func (m *Metrics) PodBound(wait time.Duration) {
	m.podWait.Observe(wait.Seconds())
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

// WatchFailed records lists or watches of a resource that failed. Rates need a first value of zero, so
// it is also called with 0, when the first watch begins.
func (m *Metrics) WatchFailed(resource string, times int) {
	m.watchErrors.WithLabelValues(resource).Add(float64(times))
}

// Leads records whether this replica schedules.
func (m *Metrics) Leads(leads bool) {
	value := 0.0
	if leads {
		value = 1
	}
	m.leader.Set(value)
}

// ConfigLoaded records a configuration that came into force when the scheduler started.
func (m *Metrics) ConfigLoaded(at time.Time) {
	m.reloadGood.Set(1)
	m.reloadTime.Set(seconds(at))
}

type reloadResult string

const (
	reloadSucceeded reloadResult = "success"
	reloadFailed    reloadResult = "failure"
)

// ConfigReloaded records a changed configuration that came into force.
func (m *Metrics) ConfigReloaded(at time.Time) {
	m.reloads.WithLabelValues(string(reloadSucceeded)).Inc()
	m.ConfigLoaded(at)
}

// ConfigRefused records a changed configuration that could not be used.
func (m *Metrics) ConfigRefused() {
	m.reloads.WithLabelValues(string(reloadFailed)).Inc()
	m.reloadGood.Set(0)
}

func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }
