// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// cycle is what a cycle publishes: two resources that queues share, and pods, which they do not.
func cycle(queues ...metrics.Queue) *metrics.Model {
	return &metrics.Model{
		Nodes: 3, Pods: 20, Jobs: 5,
		Resources: []string{api.CPU: "cpu", api.Memory: "memory", api.Pods: ""},
		Queues:    queues,
	}
}

func TestMetrics(t *testing.T) {
	for name, tc := range map[string]struct {
		given func(*metrics.Metrics)
		want  map[string][]string // by name without namespace: labels and values of its series
	}{
		"decisions by kind": {
			given: func(m *metrics.Metrics) {
				m.Decided(api.Allocate, 3)
				m.Decided(api.Allocate, 2)
				m.Decided(api.Pipeline, 1)
			},
			want: map[string][]string{"decisions_total": {`{kind="allocate"} 5`, `{kind="evict"} 0`, `{kind="pipeline"} 1`}},
		},
		"evictions by cause and result, from zero": {
			given: func(m *metrics.Metrics) { m.Eviction("reclaimed", metrics.Evicted) },
			want:  map[string][]string{"evictions_total": {`{cause="gang-degraded",result="refused"} 0`, `{cause="gang-degraded",result="success"} 0`, `{cause="overran",result="refused"} 0`, `{cause="overran",result="success"} 0`, `{cause="preempted",result="refused"} 0`, `{cause="preempted",result="success"} 0`, `{cause="reclaimed",result="refused"} 0`, `{cause="reclaimed",result="success"} 1`}},
		},
		"evictions of PodGroups by queue, cause and extent": {
			given: func(m *metrics.Metrics) {
				m.PodGroupEvicted("deleted", "reclaimed", true)
				m.Publish(cycle(metrics.Queue{Name: "q"}))
				m.PodGroupEvicted("q", "reclaimed", true)
				m.PodGroupEvicted("q", "preempted", false)
				m.PodGroupEvicted("q", "preempted", false)
			},
			want: map[string][]string{"podgroup_evictions_total": {`{cause="gang-degraded",extent="gang",queue="q"} 0`, `{cause="gang-degraded",extent="surplus",queue="q"} 0`, `{cause="overran",extent="gang",queue="q"} 0`, `{cause="overran",extent="surplus",queue="q"} 0`, `{cause="preempted",extent="gang",queue="q"} 0`, `{cause="preempted",extent="surplus",queue="q"} 2`, `{cause="reclaimed",extent="gang",queue="q"} 1`, `{cause="reclaimed",extent="surplus",queue="q"} 0`}},
		},
		"writes by verb, resource and answer": {
			given: func(m *metrics.Metrics) {
				m.APIWrite("create", "pods/binding", 201)
				m.APIWrite("create", "pods/binding", 409)
				m.APIWrite("patch", "podgroups/status", 0)
			},
			want: map[string][]string{"api_writes_total": {`{code="0",resource="podgroups/status",verb="patch"} 1`, `{code="201",resource="pods/binding",verb="create"} 1`, `{code="409",resource="pods/binding",verb="create"} 1`}},
		},
		"watches that failed, from zero": {
			given: func(m *metrics.Metrics) {
				m.WatchFailed("pods", 0)
				m.WatchFailed("nodes", 0)
				m.WatchFailed("nodes", 1)
			},
			want: map[string][]string{"watch_errors_total": {`{resource="nodes"} 1`, `{resource="pods"} 0`}},
		},
		"pods bound by others, from zero": {
			given: func(m *metrics.Metrics) {
				m.PodsBoundByOthers("batch-scheduler", 0)
				m.PodsBoundByOthers("volcano", 0)
				m.PodsBoundByOthers("volcano", 1)
			},
			want: map[string][]string{"pods_bound_by_others_total": {`{scheduler_name="batch-scheduler"} 0`, `{scheduler_name="volcano"} 1`}},
		},
		"a replica that leads": {
			given: func(m *metrics.Metrics) {
				m.Leads(true)
				m.CycleBegan(time.Unix(9, 250e6))
			},
			want: map[string][]string{"leader": {`1`}, "last_cycle_start_timestamp_seconds": {`9.25`}},
		},
		"a replica that leads no more": {
			given: func(m *metrics.Metrics) {
				m.Leads(true)
				m.Leads(false)
			},
			want: map[string][]string{"leader": {`0`}, "last_cycle_start_timestamp_seconds": {`0`}},
		},
		"reloads count from zero, and the start is none": {
			given: func(m *metrics.Metrics) { m.ConfigLoaded(time.Unix(7, 0)) },
			want: map[string][]string{
				"config_last_success_timestamp_seconds": {`7`},
				"config_last_reload_successful":         {`1`},
				"config_reloads_total":                  {`{result="failure"} 0`, `{result="success"} 0`},
			},
		},
		"a refused reload leaves the time of the last good one": {
			given: func(m *metrics.Metrics) {
				m.ConfigReloaded(time.Unix(8, 500e6))
				m.ConfigRefused()
			},
			want: map[string][]string{
				"config_last_success_timestamp_seconds": {`8.5`},
				"config_last_reload_successful":         {`0`},
				"config_reloads_total":                  {`{result="failure"} 1`, `{result="success"} 1`},
			},
		},
		"a good reload after a refused one": {
			given: func(m *metrics.Metrics) {
				m.ConfigRefused()
				m.ConfigReloaded(time.Unix(8, 0))
			},
			want: map[string][]string{"config_last_reload_successful": {`1`}},
		},
		"the size of the model": {
			given: func(m *metrics.Metrics) { m.Publish(cycle(metrics.Queue{Name: "a"}, metrics.Queue{Name: "b"})) },
			want:  map[string][]string{"cache_objects": {`{kind="job"} 5`, `{kind="node"} 3`, `{kind="pod"} 20`, `{kind="queue"} 2`}},
		},
		"nothing of a model before the first cycle": {
			given: func(m *metrics.Metrics) {},
			want:  map[string][]string{"cache_objects": nil, "queue_weight": nil},
		},
		"a queue in cores and bytes, of what queues share": {
			given: func(m *metrics.Metrics) {
				m.Publish(cycle(metrics.Queue{
					Name: "research", Weight: 3,
					Capability: api.Resource{api.CPU: api.Unlimited, api.Memory: 0}, Guarantee: api.Resource{api.CPU: 250},
					Deserved: api.Resource{api.CPU: 1500, api.Memory: 1 << 30}, Allocated: api.Resource{api.CPU: 500, api.Pods: 7},
					Requested: api.Resource{api.Memory: 5},
					Groups:    v1alpha1.QueueGroups{Pending: 1, Running: 2, Unknown: 3, Finished: 4, Failed: 5},
				}))
			},
			want: map[string][]string{
				"queue_weight":     {`{queue="research"} 3`},
				"queue_capability": {`{queue="research",resource="memory"} 0`}, // zero is a cap as well
				"queue_guarantee":  {`{queue="research",resource="cpu"} 0.25`},
				"queue_deserved":   {`{queue="research",resource="cpu"} 1.5`, `{queue="research",resource="memory"} 1.073741824e+09`},
				"queue_allocated":  {`{queue="research",resource="cpu"} 0.5`, `{queue="research",resource="memory"} 0`},
				"queue_requested":  {`{queue="research",resource="cpu"} 0`, `{queue="research",resource="memory"} 5`},
				"queue_podgroups":  {`{phase="Failed",queue="research"} 5`, `{phase="Finished",queue="research"} 4`, `{phase="Pending",queue="research"} 1`, `{phase="Running",queue="research"} 2`, `{phase="Unknown",queue="research"} 3`},
			},
		},
		"devices, without types of pods": {
			given: func(m *metrics.Metrics) {
				model := cycle()
				model.Devices = []*metrics.Devices{{Resource: "amd.com/gpu", Total: 8, Free: 3, Fitting: []metrics.FittingPods{{Size: 1, Pods: 3}, {Size: 2, Pods: 1}}}}
				m.Publish(model)
			},
			want: map[string][]string{
				"devices":              {`{resource="amd.com/gpu"} 8`},
				"devices_free":         {`{resource="amd.com/gpu"} 3`},
				"devices_fitting_pods": {`{resource="amd.com/gpu",size="1"} 3`, `{resource="amd.com/gpu",size="2"} 1`},
				"devices_stranded":     nil,
				"devices_fragmented":   nil,
			},
		},
		"devices that types of pods cannot use": {
			given: func(m *metrics.Metrics) {
				model := cycle()
				model.Devices = []*metrics.Devices{{Resource: "nvidia.com/gpu", Total: 8, Free: 3, Typed: true, Stranded: 0, Fragmented: 1250}}
				m.Publish(model)
			},
			want: map[string][]string{
				"devices_stranded":   {`{resource="nvidia.com/gpu"} 0`},
				"devices_fragmented": {`{resource="nvidia.com/gpu"} 1.25`},
			},
		},
		"no devices any more, after a change of the policy": {
			given: func(m *metrics.Metrics) {
				model := cycle()
				model.Devices = []*metrics.Devices{{Resource: "nvidia.com/gpu", Total: 8}}
				m.Publish(model)
				m.Publish(cycle())
			},
			want: map[string][]string{"devices": nil, "devices_free": nil},
		},
		"queues as published last, nothing of those that are gone": {
			given: func(m *metrics.Metrics) {
				m.Publish(cycle(metrics.Queue{Name: "gone", Weight: 1, Pending: map[string]int{"QueueFull": 9}}))
				m.Publish(cycle(metrics.Queue{Name: "here", Weight: 2, Pending: map[string]int{"NotEnoughResources": 2}}))
			},
			want: map[string][]string{
				"pending_podgroups": {`{queue="here",reason="NotEnoughResources"} 2`},
				"queue_weight":      {`{queue="here"} 2`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			tc.given(metrics.New(registry))
			got := map[string][]string{}
			for name := range tc.want {
				got[name] = series(t, registry, name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
}

// series returns the labels and values of a metric as they are served, a line each.
func series(t *testing.T, gatherer prometheus.Gatherer, name string) []string {
	t.Helper()
	families, err := gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		if family.GetName() != "batch_scheduler_"+name {
			continue
		}
		var text strings.Builder
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, family.GetName())))
			}
		}
	}
	return lines
}

func TestTimesAreSeconds(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := metrics.New(registry)
	m.Publish(cycle(metrics.Queue{Name: "q"}))
	for name, record := range map[string]func(time.Duration){
		"cycle_duration_seconds":               m.Cycle,
		"event_processing_lag_seconds":         m.EventsApplied,
		"action_duration_seconds":              func(d time.Duration) { m.Action("allocate", d) },
		"bind_duration_seconds":                func(d time.Duration) { m.Bind(metrics.BindSucceeded, d) },
		"pod_scheduling_duration_seconds":      m.PodBound,
		"podgroup_scheduling_duration_seconds": func(d time.Duration) { m.PodGroupScheduled("q", d) },
	} {
		t.Run(name, func(t *testing.T) {
			record(1500 * time.Millisecond)
			sum, count := 0.0, 0.0
			for _, line := range series(t, registry, name) {
				labels, text, _ := strings.Cut(line, " ")
				value, err := strconv.ParseFloat(text, 64)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case strings.HasPrefix(labels, "_sum"):
					sum += value
				case strings.HasPrefix(labels, "_count"):
					count += value
				}
			}
			if sum != 1.5 || count != 1 {
				t.Errorf("%v samples with a sum of %v, want 1 of 1.5", count, sum)
			}
		})
	}
}

// TestWaitsOfQueuesThatAreGone also has a group start after its queue is gone: its bind was under way.
func TestWaitsOfQueuesThatAreGone(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := metrics.New(registry)
	queues := func() []string {
		var found []string
		for _, line := range series(t, registry, "podgroup_scheduling_duration_seconds") {
			if labels, ok := strings.CutPrefix(line, "_count"); ok {
				found = append(found, labels)
			}
		}
		return found
	}
	m.PodGroupScheduled("a", time.Second)
	m.Publish(cycle(metrics.Queue{Name: "a"}, metrics.Queue{Name: "b"}))
	if diff := cmp.Diff([]string{`{queue="a"} 1`, `{queue="b"} 0`}, queues()); diff != "" {
		t.Errorf("while both exist (-want +got):\n%s", diff)
	}
	m.Publish(cycle(metrics.Queue{Name: "b"}))
	m.PodGroupScheduled("a", time.Second)
	if diff := cmp.Diff([]string{`{queue="b"} 0`}, queues()); diff != "" {
		t.Errorf("when one is gone (-want +got):\n%s", diff)
	}
}

func TestNamesFollowTheConventions(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	fill(metrics.New(registry))
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestDescriptions holds the reference to what is served.
func TestDescriptions(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	fill(metrics.New(registry))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, family := range families {
		for _, label := range family.GetMetric()[0].GetLabel() {
			want[family.GetName()] = append(want[family.GetName()], label.GetName())
		}
		want[family.GetName()] = append(want[family.GetName()], strings.ToLower(family.GetType().String()), family.GetHelp())
	}
	got := map[string][]string{}
	for _, d := range metrics.Descriptions() {
		for _, label := range d.Labels {
			got[d.Name] = append(got[d.Name], label.Name)
			if (label.Meaning == "") == (len(label.Values) == 0) {
				t.Errorf("%s: label %s needs either all its values or what they mean", d.Name, label.Name)
			}
		}
		slices.Sort(got[d.Name])
		got[d.Name] = append(got[d.Name], d.Type, "["+d.Stability+"] "+d.Help)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels, type and help (-served +described):\n%s", diff)
	}
}

// fill gives each metric a series.
func fill(m *metrics.Metrics) {
	m.Action("allocate", time.Second)
	m.APIWrite("create", "pods/binding", 201)
	m.Refused("gang", "NotEnoughPods", 1)
	m.WatchFailed("pods", 0)
	m.PodsBoundByOthers("batch-scheduler", 0)
	m.PodGroupScheduled("q", time.Second)
	one := api.Resource{1, 1}
	model := cycle(metrics.Queue{Name: "q", Capability: one, Guarantee: one, Pending: map[string]int{"QueueFull": 1}})
	model.Devices = []*metrics.Devices{{Resource: "nvidia.com/gpu", Fitting: []metrics.FittingPods{{Size: 1}}, Typed: true}}
	m.Publish(model)
}

func TestMetricsWithoutARegistryCanBeSet(t *testing.T) {
	fill(metrics.New(nil))
}
