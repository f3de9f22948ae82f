// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
	"github.com/batch-scheduler/batch-scheduler/test/faults"
	"github.com/batch-scheduler/batch-scheduler/test/prometheus"
)

// invariants are what the metrics must say after the work of TestMetrics: expressions that yield something then.
var invariants = []string{
	`batch_scheduler_cycle_duration_seconds_sum / batch_scheduler_cycle_duration_seconds_count < 10`,
	`time() - batch_scheduler_last_cycle_start_timestamp_seconds < 60`,
	`batch_scheduler_cycle_panics_total == 0`,
	`batch_scheduler_action_duration_seconds_count{action="reclaim"} > 0`,
	`batch_scheduler_decisions_total{kind="allocate"} >= 20`,
	`batch_scheduler_decisions_total{kind="evict"} >= 7`,
	`batch_scheduler_event_processing_lag_seconds_sum / batch_scheduler_event_processing_lag_seconds_count < 10`,
	`batch_scheduler_bind_duration_seconds_count{result="success"} >= 20`,
	`batch_scheduler_bind_duration_seconds_count{result="unknown"} > 0`,
	`batch_scheduler_pod_scheduling_duration_seconds_count >= 20`,
	`batch_scheduler_pod_scheduling_duration_seconds_sum / batch_scheduler_pod_scheduling_duration_seconds_count < 120`,
	`batch_scheduler_evictions_total{cause="reclaimed",result="success"} >= 7`,
	`sum(batch_scheduler_podgroup_evictions_total{cause="reclaimed"}) > 0`,
	`batch_scheduler_api_writes_total{verb="create",resource="pods/binding",code="500"} > 0`,
	`batch_scheduler_watch_errors_total{resource="pods"} == 0`,
	`batch_scheduler_pods_bound_by_others_total{scheduler_name="batch-scheduler"} == 0`,
	`batch_scheduler_leader == 1`,
	`batch_scheduler_config_reloads_total{result="success"} == 1`,
	`batch_scheduler_config_reloads_total{result="failure"} == 1`,
	`batch_scheduler_config_last_reload_successful == 0`,
	`time() - batch_scheduler_config_last_success_timestamp_seconds < 300`,
	`batch_scheduler_cache_objects{kind="node"} == 3`,
	`batch_scheduler_cache_objects{kind="queue"} == 4`,
	`batch_scheduler_queue_weight{queue="q2"} == 1`,
	`count(batch_scheduler_queue_capability) == 1`,
	`batch_scheduler_queue_capability{queue="capped",resource="cpu"} == 1`,
	`batch_scheduler_queue_guarantee{queue="q2",resource="cpu"} == 2`,
	`batch_scheduler_queue_deserved{queue="q2",resource="cpu"} == 7`,
	`batch_scheduler_queue_allocated{queue="q2",resource="cpu"} == 7`,
	`batch_scheduler_queue_requested{queue="q2",resource="cpu"} == 5`,
	`batch_scheduler_queue_podgroups{queue="q2",phase="Running"} == 1`,
	`batch_scheduler_refusals_total{plugin="proportion",reason="ExceedsQueueCapability"} > 0`,
	`batch_scheduler_pending_podgroups{queue="capped",reason="ExceedsQueueCapability"} == 1`,
	`batch_scheduler_pending_podgroups{queue="default",reason="NotEnoughPods"} == 1`,
	`batch_scheduler_podgroup_scheduling_duration_seconds_count{queue="q2"} == 1`,
	`batch_scheduler_podgroup_scheduling_duration_seconds_sum{queue="q2"} < 120`,
	`batch_scheduler_devices{resource="nvidia.com/gpu"} == 6`,
	`batch_scheduler_devices_free{resource="nvidia.com/gpu"} == 5`,
	`batch_scheduler_devices_fitting_pods{resource="nvidia.com/gpu",size="2"} == 2`,
	`batch_scheduler_devices_stranded{resource="nvidia.com/gpu"} == 0`,
	`batch_scheduler_devices_fragmented{resource="nvidia.com/gpu"} == 0`,
}

// TestMetrics has one queue take back what another has borrowed, while half of the binds go wrong at first, and then
// checks what is reported of that: by the metrics themselves, and by each panel of the dashboard.
func TestMetrics(t *testing.T) {
	h := newHarness(t, noControllers)
	p, args := h.newProxy()
	metrics, more := h.newScraper()
	policy := strings.Replace(evictingPolicy, "{name: nodeorder}", "{name: nodeorder}, {name: fragmentation}", 1)
	h.do(nodes("n", 3, "4cpu 2gpu"), queue("q1", 1), queue("q2", 1, guaranteed("2cpu")), queue("capped", 1, atMost("1cpu")),
		gang("a", 1, pods(12, "1cpu"), in("q1")))
	p.Set(faults.Rule{Kinds: []faults.Kind{faults.Bind}, Percent: 50, Faults: []faults.Fault{{Code: 500}}})
	h.start(slices.Concat(args, more, []string{"--scheduler-conf=" + h.file("policy.yaml", policy)})...)
	h.do(gang("full", 2, pods(2, "1cpu"), in("capped")), gang("half", 2, pods(1, "1cpu")))
	h.awaitStable(`
		a: Running Scheduled; 12 running
		full: Pending ExceedsQueueCapability; 2 waiting ExceedsQueueCapability
		half: Pending NotEnoughPods; 1 waiting NotEnoughPods`, "")
	store := prometheus.NewStore()
	h.scrape(metrics, store)

	p.Set()
	h.do(gang("b", 1, pods(12, "1cpu"), in("q2")), gang("small", 1, pods(1, "1gpu")))
	h.awaitStable(`
		a: Running Scheduled; 5 running
		b: Running Scheduled; 7 running, 5 waiting Unschedulable
		full: Pending ExceedsQueueCapability; 2 waiting ExceedsQueueCapability
		half: Pending NotEnoughPods; 1 waiting NotEnoughPods
		small: Running Scheduled; 1 running`, "")
	h.replace("policy.yaml", policy+"starvationAfter: 10m\n")
	h.eventually(func() error { return h.reloads(metrics, "success", 1) })
	h.replace("policy.yaml", misspelt)
	h.eventually(func() error { return h.reloads(metrics, "failure", 1) })
	now := h.scrape(metrics, store)

	t.Run("each metric has a plausible value", func(t *testing.T) { h.hasPlausibleMetrics(t, store, now) })
	t.Run("labels have the values that are documented", func(t *testing.T) { h.documented(t, store, now) })
	t.Run("each panel shows something", func(t *testing.T) { h.shows(t, store, now) })

	h.do(noQueue("capped"))
	h.eventually(func() error {
		store := prometheus.NewStore()
		return h.holds(store, `absent({queue="capped"}) and on () batch_scheduler_pending_podgroups{reason="QueueNotFound"} == 1`, h.scrape(metrics, store))
	})
}

// guaranteed sets the guarantee of a queue.
func guaranteed(guarantee string) func(*v1alpha1.Queue) {
	return func(q *v1alpha1.Queue) { q.Spec.Guarantee = resources(guarantee) }
}

// scrape adds what the scheduler serves to the store, as a server does that knows it as a job, and returns when.
func (h *harness) scrape(s scraper, store *prometheus.Store) time.Time {
	h.t.Helper()
	text, err := s.Get(h.ctx, "/metrics")
	h.must(err)
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	h.must(err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "batch_scheduler_") {
			h.t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	now := time.Now()
	h.must(store.Scrape(text, now, map[string]string{"job": "batch-scheduler", "instance": s.Address}))
	return now
}

// holds returns an error if an expression yields nothing, or no number.
func (h *harness) holds(store *prometheus.Store, expression string, now time.Time) error {
	found, err := store.Query(h.ctx, expression, now)
	if err != nil {
		return fmt.Errorf("%s: %w", expression, err)
	}
	for _, s := range found {
		if !math.IsNaN(s.F) {
			return nil
		}
	}
	return fmt.Errorf("%s yields %v", expression, found)
}

func (h *harness) hasPlausibleMetrics(t *testing.T, store *prometheus.Store, now time.Time) {
	all := strings.Join(invariants, "\n")
	for _, d := range metrics.Descriptions() {
		if !strings.Contains(all, d.Name) {
			t.Errorf("nothing is said about %s", d.Name)
		}
	}
	for _, truth := range invariants {
		if err := h.holds(store, truth, now); err != nil {
			t.Error(err)
		}
	}
}

func (h *harness) documented(t *testing.T, store *prometheus.Store, now time.Time) {
	for _, d := range metrics.Descriptions() {
		found, err := store.Query(h.ctx, fmt.Sprintf(`{__name__=~"%s(_count)?"}`, d.Name), now)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found {
			for _, l := range d.Labels {
				if value := s.Metric.Get(l.Name); len(l.Values) > 0 && !slices.Contains(l.Values, value) {
					t.Errorf("%s has %s=%q, the reference has only %q", d.Name, l.Name, value, l.Values)
				}
			}
		}
	}
}

// dashboard is the part of a Grafana dashboard that asks for something.
type dashboard struct {
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID      int
		Title   string
		Type    string
		Targets []struct{ Expr string }
	}
}

func (h *harness) shows(t *testing.T, store *prometheus.Store, now time.Time) {
	text, err := os.ReadFile("../../config/grafana/batch-scheduler.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	schema := store.Schema()
	for i, panel := range d.Panels {
		if panel.ID != i+1 {
			t.Errorf("panel %q has the ID %d, want %d", panel.Title, panel.ID, i+1)
		}
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			expression := strings.NewReplacer("$job", "batch-scheduler", "$queue", "capped|default|q1|q2", "$resource", "cpu",
				"$__rate_interval", "5m").Replace(target.Expr)
			if err := schema.Check(expression); err != nil {
				t.Errorf("panel %q: %v", panel.Title, err)
			}
			if err := h.holds(store, expression, now); err != nil {
				t.Errorf("panel %q: %v", panel.Title, err)
			}
		}
	}
	for _, v := range d.Templating.List {
		selector, label, isQuery := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Query, "label_values("), ")"), ", ")
		if !isQuery {
			continue
		}
		expression := fmt.Sprintf("count by (%s) (%s)", label, strings.ReplaceAll(selector, "$job", "batch-scheduler"))
		if err := schema.Check(expression); err != nil {
			t.Errorf("variable %s: %v", v.Name, err)
		}
		if err := h.holds(store, expression, now); err != nil {
			t.Errorf("variable %s: %v", v.Name, err)
		}
	}
}
