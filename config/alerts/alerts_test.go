// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package alerts_test

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"go.yaml.in/yaml/v3"

	"github.com/batch-scheduler/batch-scheduler/test/prometheus"
)

// unitTests is what rules_test.yaml uses of the format of "promtool test rules".
type unitTests struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []struct {
		Name        string
		Interval    model.Duration
		InputSeries []struct{ Series, Values string } `yaml:"input_series"`
		Alerts      []struct {
			EvalTime  model.Duration `yaml:"eval_time"`
			Alertname string
			Expected  []alert `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

// alert is what fires.
type alert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func TestRules(t *testing.T) {
	tests := readTests(t)
	rules := readRules(t)
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		store := prometheus.NewStore()
		for _, s := range test.InputSeries {
			give(t, store, s.Series, s.Values, time.Duration(test.Interval))
		}
		for _, c := range test.Alerts {
			t.Run(fmt.Sprintf("%s/%s at %s", test.Name, c.Alertname, c.EvalTime), func(t *testing.T) {
				rule, known := rules[c.Alertname]
				if !known {
					t.Fatal("there is no such alert")
				}
				got := firing(t, store, rule, time.Duration(tests.EvaluationInterval), time.Duration(c.EvalTime))
				if diff := cmp.Diff(c.Expected, got); diff != "" {
					t.Errorf("alerts (-want +got):\n%s", diff)
				}
			})
			if len(c.Expected) > 0 {
				fires[c.Alertname] = true
			} else {
				rests[c.Alertname] = true
			}
		}
	}
	for name := range rules {
		if !fires[name] || !rests[name] {
			t.Errorf("%s needs a test in which it fires, and one in which it does not", name)
		}
	}
}

// TestRulesAreAboutWhatThereIs looks for the metrics in the code, and for the sections in the documentation.
func TestRulesAreAboutWhatThereIs(t *testing.T) {
	guide, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	schema := prometheus.Described("job", "instance")
	for name, rule := range readRules(t) {
		t.Run(name, func(t *testing.T) {
			if err := schema.Check(rule.Expr); err != nil {
				t.Error(err)
			}
			if !strings.Contains(string(guide), "\n### "+name+"\n") {
				t.Errorf("docs/monitoring.md has no section %s", name)
			}
			if want := "docs/monitoring.md#" + strings.ToLower(name); rule.Annotations["runbook"] != want {
				t.Errorf("runbook is %q, want %q", rule.Annotations["runbook"], want)
			}
			for _, part := range []string{rule.Annotations["summary"], rule.Annotations["description"], rule.Labels["severity"]} {
				if part == "" {
					t.Error("summary, description or severity is missing")
				}
			}
		})
	}
}

func readTests(t *testing.T) unitTests {
	t.Helper()
	file, err := os.Open("rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	var tests unitTests
	if err := decoder.Decode(&tests); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"rules.yaml"}, tests.RuleFiles); diff != "" {
		t.Fatalf("rule files (-want +got):\n%s", diff)
	}
	return tests
}

func readRules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	file, errs := rulefmt.ParseFile("rules.yaml", false, model.LegacyValidation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	rules := map[string]rulefmt.Rule{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			rules[rule.Alert] = rule
		}
	}
	return rules
}

// give adds the samples that a text stands for, such as "0+1x5 _ 3".
func give(t *testing.T, store *prometheus.Store, name, values string, interval time.Duration) {
	t.Helper()
	l, samples, err := parser.ParseSeriesDesc(name + " " + values)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range samples {
		if !s.Omitted {
			store.Add(l, time.Unix(0, 0).Add(time.Duration(i)*interval), s.Value)
		}
	}
}

// firing evaluates a rule from the beginning on, and returns what fires in the end.
func firing(t *testing.T, store *prometheus.Store, rule rulefmt.Rule, interval, end time.Duration) []alert {
	t.Helper()
	since := map[string]time.Duration{} // by labels: when it became true
	var last promql.Vector
	for at := time.Duration(0); at <= end; at += interval {
		var err error
		if last, err = store.Query(t.Context(), rule.Expr, time.Unix(0, 0).Add(at)); err != nil {
			t.Fatal(err)
		}
		still := map[string]time.Duration{}
		for _, s := range last {
			began, known := since[s.Metric.String()]
			if !known {
				began = at
			}
			still[s.Metric.String()] = began
		}
		since = still
	}
	var alerts []alert
	for _, s := range last {
		if end-since[s.Metric.String()] >= time.Duration(rule.For) {
			alerts = append(alerts, announce(t, rule, s))
		}
	}
	return alerts
}

// announce is an alert as it is sent, without its name.
func announce(t *testing.T, rule rulefmt.Rule, s promql.Sample) alert {
	t.Helper()
	about := s.Metric.DropMetricName().Map()
	data := template.AlertTemplateData(about, nil, "", s)
	a := alert{Labels: maps.Clone(about), Annotations: map[string]string{}}
	maps.Copy(a.Labels, rule.Labels)
	for name, text := range rule.Annotations {
		text = `{{$labels := .Labels}}{{$value := .Value}}` + text
		nothing := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }
		expanded, err := template.NewTemplateExpander(t.Context(), text, name, data, 0, nothing, &url.URL{}, nil).Expand()
		if err != nil {
			t.Fatal(err)
		}
		a.Annotations[name] = expanded
	}
	return a
}
