// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

const shared = `
actions: "allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
`

// TestMetricsOfTheModel compares all series about the model. The PodGroup of the queue has no pods.
func TestMetricsOfTheModel(t *testing.T) {
	big := pod("big")
	big.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("5")
	probe := func(context.Context, *framework.Session) error { return nil }
	run(t, shared, probe, func(h *harness) {
		time.Sleep(10 * time.Second)
		want := []string{
			`cache_objects{kind="job"} 3`,
			`cache_objects{kind="node"} 1`,
			`cache_objects{kind="pod"} 2`,
			`cache_objects{kind="queue"} 1`,
			`pending_podgroups{queue="default",reason="ExceedsClusterCapacity"} 1`,
			`pending_podgroups{queue="default",reason="NotEnoughPods"} 1`,
			`queue_allocated{queue="default",resource="cpu"} 1`,
			`queue_allocated{queue="default",resource="memory"} 0`,
			`queue_deserved{queue="default",resource="cpu"} 1`,
			`queue_deserved{queue="default",resource="memory"} 0`,
			`queue_podgroups{phase="Failed",queue="default"} 0`,
			`queue_podgroups{phase="Finished",queue="default"} 0`,
			`queue_podgroups{phase="Pending",queue="default"} 1`,
			`queue_podgroups{phase="Running",queue="default"} 0`,
			`queue_podgroups{phase="Unknown",queue="default"} 0`,
			`queue_requested{queue="default",resource="cpu"} 5`,
			`queue_requested{queue="default",resource="memory"} 0`,
			`queue_weight{queue="default"} 1`,
		}
		got := h.series("cache_", "pending_", "queue_")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("series (-want +got):\n%s", diff)
		}
	}, node("n"), pod("small"), big)
}

// TestMetricsOfDevices has a node with GPUs, with and without the plugin that measures them.
func TestMetricsOfDevices(t *testing.T) {
	for plugin, want := range map[string][]string{
		"nodeorder": nil,
		"fragmentation": {
			`devices{resource="nvidia.com/gpu"} 8`,
			`devices_fitting_pods{resource="nvidia.com/gpu",size="1"} 7`,
			`devices_fitting_pods{resource="nvidia.com/gpu",size="2"} 3`,
			`devices_fitting_pods{resource="nvidia.com/gpu",size="4"} 1`,
			`devices_fitting_pods{resource="nvidia.com/gpu",size="8"} 0`,
			`devices_fragmented{resource="nvidia.com/gpu"} 0`,
			`devices_free{resource="nvidia.com/gpu"} 7`,
			`devices_stranded{resource="nvidia.com/gpu"} 0`,
		},
	} {
		t.Run(plugin, func(t *testing.T) {
			n, p := node("n"), pod("p")
			n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("8")
			p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
			policy := strings.Replace(shared, "nodeorder", plugin, 1)
			probe := func(context.Context, *framework.Session) error { return nil }
			run(t, policy, probe, func(h *harness) {
				time.Sleep(10 * time.Second)
				if diff := cmp.Diff(want, h.series("devices")); diff != "" {
					t.Errorf("series (-want +got):\n%s", diff)
				}
			}, n, p)
		})
	}
}

// TestRefusalsAreCounted compares the counters of a cycle in which two jobs are refused.
func TestRefusalsAreCounted(t *testing.T) {
	big, picky := pod("big"), pod("picky")
	big.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("5")
	picky.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	probe := func(context.Context, *framework.Session) error { return nil }
	run(t, shared, probe, func(h *harness) {
		time.Sleep(10 * time.Second)
		want := []string{
			`refusals_total{plugin="gang",reason="NotEnoughPods"}`,
			`refusals_total{plugin="predicates",reason="NodeSelector"}`,
			`refusals_total{plugin="proportion",reason="QueueOverused"}`, // by the first pass of allocate
			`refusals_total{plugin="resources",reason="InsufficientResources"}`,
		}
		var got []string
		for _, line := range h.series("refusals_total") {
			series, value, _ := strings.Cut(line, " ")
			if value == "0" {
				t.Errorf("%s is 0", series)
			}
			got = append(got, series)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("series (-want +got):\n%s", diff)
		}
	}, node("n"), big, picky)
}

// TestSkippedCyclesUpdateTheStartTime: the metric shows that the scheduler runs while nothing changes.
func TestSkippedCyclesUpdateTheStartTime(t *testing.T) {
	probe := func(context.Context, *framework.Session) error { return nil }
	run(t, probed, probe, func(h *harness) {
		time.Sleep(10 * time.Second)
		cycles := h.series("cycle_duration_seconds_count")
		before := h.series("last_cycle_start_timestamp_seconds")
		time.Sleep(10 * time.Second)
		if diff := cmp.Diff(cycles, h.series("cycle_duration_seconds_count")); diff != "" {
			t.Errorf("a cycle was not skipped (-before +after):\n%s", diff)
		}
		if after := h.series("last_cycle_start_timestamp_seconds"); slices.Equal(before, after) {
			t.Errorf("%s has not changed", after)
		}
	}, node("n"))
}

// TestMeasureAllocatesNothingPerPod counts the allocations of measure, which runs in each cycle.
func TestMeasureAllocatesNothingPerPod(t *testing.T) {
	const most = 20 // for one queue
	n := node("n")
	n.Status.Allocatable[v1.ResourcePods] = resource.MustParse("300")
	objects := []runtime.Object{n}
	for i := range 300 {
		p := pod(fmt.Sprint("p", i))
		p.Spec.NodeName, p.Status.Phase = "n", v1.PodRunning
		p.Spec.Containers[0].Resources.Requests = nil
		objects = append(objects, p)
	}
	var measured atomic.Bool
	probe := func(_ context.Context, ssn *framework.Session) error {
		if len(ssn.Cluster().Tasks()) == 300 && !measured.Swap(true) {
			if got := testing.AllocsPerRun(100, func() { measure(ssn) }); got > most {
				t.Errorf("%v allocations with 300 pods, want at most %d", got, most)
			}
		}
		return nil
	}
	run(t, probed, probe, func(h *harness) { time.Sleep(10 * time.Second) }, objects...)
	if !measured.Load() {
		t.Error("no cycle saw all pods")
	}
}

// series returns the series whose names begin with one of the prefixes, without the namespace.
func (h *harness) series(prefixes ...string) []string {
	h.t.Helper()
	families, err := h.metrics.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			h.t.Fatal(err)
		}
	}
	var found []string
	for line := range strings.Lines(text.String()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "batch_scheduler_")
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) }) {
			found = append(found, line)
		}
	}
	return found
}
