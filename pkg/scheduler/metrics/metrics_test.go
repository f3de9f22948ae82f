package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

func TestMetrics(t *testing.T) {
	for name, tc := range map[string]struct {
		given func(*metrics.Metrics)
		names []string
		want  string
	}{
		"decisions by kind": {
			given: func(m *metrics.Metrics) {
				m.Decided(metrics.Allocate, 3)
				m.Decided(metrics.Allocate, 2)
				m.Decided(metrics.Pipeline, 1)
			},
			names: []string{"batch_scheduler_decisions_total"},
			want: `
# HELP batch_scheduler_decisions_total Committed decisions by kind.
# TYPE batch_scheduler_decisions_total counter
batch_scheduler_decisions_total{kind="allocate"} 5
batch_scheduler_decisions_total{kind="pipeline"} 1
`,
		},
		"writes by verb, resource and answer": {
			given: func(m *metrics.Metrics) {
				m.APIWrite("create", "pods/binding", 201)
				m.APIWrite("create", "pods/binding", 409)
				m.APIWrite("patch", "podgroups/status", 0)
			},
			names: []string{"batch_scheduler_api_writes_total"},
			want: `
# HELP batch_scheduler_api_writes_total Requests to the API server that may change something, by verb, resource and answer (0: no answer).
# TYPE batch_scheduler_api_writes_total counter
batch_scheduler_api_writes_total{code="0",resource="podgroups/status",verb="patch"} 1
batch_scheduler_api_writes_total{code="201",resource="pods/binding",verb="create"} 1
batch_scheduler_api_writes_total{code="409",resource="pods/binding",verb="create"} 1
`,
		},
		"reloads count from zero, and the start is none": {
			given: func(m *metrics.Metrics) { m.ConfigLoaded(time.Unix(7, 0)) },
			names: []string{"batch_scheduler_config_reloads_total", "batch_scheduler_config_last_success_timestamp_seconds"},
			want: `
# HELP batch_scheduler_config_last_success_timestamp_seconds When the configuration in force was loaded, in seconds since 1970.
# TYPE batch_scheduler_config_last_success_timestamp_seconds gauge
batch_scheduler_config_last_success_timestamp_seconds 7
# HELP batch_scheduler_config_reloads_total Changes of the configuration file by result; after a failure the old configuration stays in force.
# TYPE batch_scheduler_config_reloads_total counter
batch_scheduler_config_reloads_total{result="failure"} 0
batch_scheduler_config_reloads_total{result="success"} 0
`,
		},
		"a refused reload leaves the time of the last good one": {
			given: func(m *metrics.Metrics) {
				m.ConfigReloaded(time.Unix(8, 500e6))
				m.ConfigRefused()
			},
			names: []string{"batch_scheduler_config_reloads_total", "batch_scheduler_config_last_success_timestamp_seconds"},
			want: `
# HELP batch_scheduler_config_last_success_timestamp_seconds When the configuration in force was loaded, in seconds since 1970.
# TYPE batch_scheduler_config_last_success_timestamp_seconds gauge
batch_scheduler_config_last_success_timestamp_seconds 8.5
# HELP batch_scheduler_config_reloads_total Changes of the configuration file by result; after a failure the old configuration stays in force.
# TYPE batch_scheduler_config_reloads_total counter
batch_scheduler_config_reloads_total{result="failure"} 1
batch_scheduler_config_reloads_total{result="success"} 1
`,
		},
		"queues as published last, nothing of those that are gone": {
			given: func(m *metrics.Metrics) {
				m.PublishQueues([]metrics.Queue{{Name: "gone", Weight: 1, Pending: []metrics.Pending{{Reason: "QueueFull", Groups: 9}}}})
				m.PublishQueues([]metrics.Queue{{
					Name: "research", Weight: 3,
					Deserved:  []metrics.Amount{{Resource: "cpu", Value: 1.5}, {Resource: "nvidia.com/gpu", Value: 8}},
					Allocated: []metrics.Amount{{Resource: "cpu", Value: 0.5}},
					Pending:   []metrics.Pending{{Reason: "NotEnoughResources", Groups: 2}},
				}})
			},
			names: []string{"batch_scheduler_queue_weight", "batch_scheduler_queue_deserved",
				"batch_scheduler_queue_allocated", "batch_scheduler_pending_groups"},
			want: `
# HELP batch_scheduler_pending_groups Groups that wait, by the reason of their condition.
# TYPE batch_scheduler_pending_groups gauge
batch_scheduler_pending_groups{queue="research",reason="NotEnoughResources"} 2
# HELP batch_scheduler_queue_allocated What the pods of a queue hold of a resource (cores, bytes, or a count).
# TYPE batch_scheduler_queue_allocated gauge
batch_scheduler_queue_allocated{queue="research",resource="cpu"} 0.5
# HELP batch_scheduler_queue_deserved What a queue deserves of a resource (cores, bytes, or a count).
# TYPE batch_scheduler_queue_deserved gauge
batch_scheduler_queue_deserved{queue="research",resource="cpu"} 1.5
batch_scheduler_queue_deserved{queue="research",resource="nvidia.com/gpu"} 8
# HELP batch_scheduler_queue_weight Weight of a queue.
# TYPE batch_scheduler_queue_weight gauge
batch_scheduler_queue_weight{queue="research"} 3
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			tc.given(metrics.New(registry))
			if err := testutil.GatherAndCompare(registry, strings.NewReader(tc.want), tc.names...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDurationsAreSeconds(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := metrics.New(registry)
	for _, record := range []func(time.Duration){
		m.Cycle,
		m.EventsApplied,
		func(d time.Duration) { m.Action("allocate", d) },
		func(d time.Duration) { m.Bind(metrics.BindSucceeded, d) },
	} {
		record(1500 * time.Millisecond)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var seen int
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if h := metric.GetHistogram(); h != nil {
				seen++
				if h.GetSampleCount() != 1 || h.GetSampleSum() != 1.5 {
					t.Errorf("%s holds %d samples with a sum of %v, want 1 of 1.5", family.GetName(), h.GetSampleCount(), h.GetSampleSum())
				}
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d histograms hold samples, want 4", seen)
	}
}

func TestNamesFollowTheConventions(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := metrics.New(registry)
	m.CyclePanicked()
	m.Cycle(time.Second)
	m.PublishQueues([]metrics.Queue{{Name: "q", Deserved: []metrics.Amount{{Resource: "cpu"}},
		Allocated: []metrics.Amount{{Resource: "cpu"}}, Pending: []metrics.Pending{{Reason: "QueueFull"}}}})
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestMetricsWithoutARegistryCanBeSet(t *testing.T) {
	metrics.New(nil).Cycle(time.Second)
}
