// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the Prometheus metrics of the scheduler. All of them have the stability level ALPHA.
//
// Times are in seconds, resources in their base units (cpu in cores, memory in bytes). Labels are
// bounded by the configuration and the queues of the cluster, never by jobs, pods or nodes.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Metrics of one scheduler. All methods may be called from any goroutine.
type Metrics struct {
	cycleDuration  prometheus.Observer
	cycleStart     prometheus.Gauge
	cyclePanics    prometheus.Counter
	actionDuration *prometheus.HistogramVec
	decisions      *prometheus.CounterVec
	refusals       refusalCounters
	eventLag       prometheus.Observer
	bindDuration   *prometheus.HistogramVec
	podDuration    prometheus.Observer
	evictions      *prometheus.CounterVec
	apiWrites      *prometheus.CounterVec
	watchErrors    *prometheus.CounterVec
	boundByOthers  *prometheus.CounterVec
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
			"Duration of a scheduling cycle, from applying events to handing over decisions. Skipped cycles are not counted.",
			short()).WithLabelValues(),
		cycleStart: create.gauge("last_cycle_start_timestamp_seconds",
			"Start of the last cycle, including skipped cycles, in seconds since 1970; 0 on a replica that has run none.").WithLabelValues(),
		cyclePanics: create.counter("cycle_panics_total",
			"Cycles that ended in a panic and were recovered. Each is a bug.").WithLabelValues(),
		actionDuration: create.histogram("action_duration_seconds",
			"Duration of one action within a cycle.", short(), actionLabel()),
		decisions: create.counter("decisions_total",
			"Committed decisions about pods: bind the pod (allocate), nominate it for resources that are being released (pipeline), evict it (evict). The scheduler drops evictions that are no longer needed before it sends them.",
			decisionLabel()),
		refusals: newRefusalCounters(create.counter("refusals_total",
			"Refusals by plugins. In each cycle every reason for which a pending job waits counts once for the job. Votes against victims, plans, evictions and queues count one by one.",
			pluginLabel(), refusalLabel())),
		eventLag: create.histogram("event_processing_lag_seconds",
			"Age of the oldest event of the cluster when a cycle applied it.", short()).WithLabelValues(),
		bindDuration: create.histogram("bind_duration_seconds",
			"Time from sending a binding to its answer. For an unknown result the scheduler reads the pod afterwards.",
			short(), bindLabel()),
		podDuration: create.histogram("pod_scheduling_duration_seconds",
			"Time from the creation of a pod, which has a resolution of one second, until the pod is bound.",
			long()).WithLabelValues(),
		evictions: create.counter("evictions_total",
			"Pods evicted, or whose eviction the API server refused: for a job of the same queue (preempted), for another queue that deserves the resources (reclaimed), or because too few pods of the gang run (gang-degraded).",
			causeLabel(), evictionLabel()),
		apiWrites: create.counter("api_writes_total",
			"Write requests to the API server, by response code. The scheduler retries after a conflict (409).",
			verbLabel(), writtenLabel(), codeLabel()),
		watchErrors: create.counter("watch_errors_total",
			"Lists and watches of the API server that failed, except watches that expired.", watchedLabel()),
		boundByOthers: create.counter("pods_bound_by_others_total",
			"Pods with a scheduler name of this scheduler that another client has bound. Two schedulers with the same name exceed queues and divide gangs.",
			schedulerNameLabel()),
		leader: create.gauge("leader",
			"1 while this replica schedules, as the leader or without leader election; otherwise 0.").WithLabelValues(),
		reloads: create.counter("config_reloads_total",
			"Reloads of the configuration file. After a failed reload the previous configuration stays active.", reloadLabel()),
		reloadGood: create.gauge("config_last_reload_successful",
			"0 if the last version of the configuration file is invalid and an older one is active; otherwise 1.").WithLabelValues(),
		reloadTime: create.gauge("config_last_success_timestamp_seconds",
			"Time when the active configuration was loaded, in seconds since 1970.").WithLabelValues(),
		modelCollector: newModelCollector(create),
	}
	if registerer != nil {
		registerer.MustRegister(m.modelCollector)
	}
	return m, create.made
}

// short buckets span 100 µs to about 50 s: from an idle cycle to a cluster in trouble.
func short() []float64 { return prometheus.ExponentialBuckets(0.0001, 2, 20) }

// long buckets span 1 s to about 36 hours: from free resources to a queue that is full overnight.
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

// Decided records decisions of one kind that were committed together.
func (m *Metrics) Decided(kind api.DecisionKind, count int) {
	m.decisions.WithLabelValues(kind.String()).Add(float64(count))
}

// Refused records refusals of a plugin for a reason.
func (m *Metrics) Refused(plugin, reason string, count int) {
	m.refusals.of(plugin, reason).Add(float64(count))
}

// EventsApplied records how long the oldest of the events waited that a cycle has applied.
func (m *Metrics) EventsApplied(oldest time.Duration) {
	m.eventLag.Observe(oldest.Seconds())
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

// PodBound records a pod that was bound, and the time since it was created.
func (m *Metrics) PodBound(took time.Duration) {
	m.podDuration.Observe(took.Seconds())
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

// PodsBoundByOthers records pods with a name of this scheduler that another client has bound. Rates need a first value of
// zero, so it is also called with 0.
func (m *Metrics) PodsBoundByOthers(schedulerName string, pods int) {
	m.boundByOthers.WithLabelValues(schedulerName).Add(float64(pods))
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
