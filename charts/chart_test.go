// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package charts_test holds the chart to config/, and its values to their schema.
package charts_test

import (
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/test/chart"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

const (
	dir       = "batch-scheduler"
	namespace = "batch-scheduler-system"
)

// TestTheChartIsTheSameAsConfig compares all objects except the Namespace, which Helm creates itself with a flag.
func TestTheChartIsTheSameAsConfig(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values string
		want   []string // directories
	}{
		"without values": {"", []string{"../config/default"}},
		"with admission": {"admission: {enabled: true}", []string{"../config/default", "../config/admission"}},
		"with group sources": {"groupSources: [native, scheduler-plugins, volcano, kai]", []string{
			"../config/default", "../config/groupsources/native", "../config/groupsources/scheduler-plugins", "../config/groupsources/volcano",
			"../config/groupsources/kai",
		}},
		"with grouping": {"grouping: [jobset, kueue, trainjob, mpijob]", []string{
			"../config/default", "../config/grouping/jobset", "../config/grouping/trainjob", "../config/grouping/mpijob",
		}},
		"as a dependency": {"global: {color: red}", []string{"../config/default"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []*unstructured.Unstructured
			for _, dir := range tc.want {
				objects, err := cluster.Render(dir)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, objects...)
			}
			want = slices.DeleteFunc(want, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" })
			got := render(t, namespace, tc.values).Objects
			if diff := cmp.Diff(byName(t, want), byName(t, got)); diff != "" {
				t.Errorf("objects (-config +chart):\n%s", diff)
			}
		})
	}
}

func TestTheDefinitionsAreTheSameAsInConfig(t *testing.T) {
	t.Parallel()
	read := func(pattern string) map[string]string {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no file is %s: %v", pattern, err)
		}
		texts := map[string]string{}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.Base(file)] = string(data)
		}
		return texts
	}
	if diff := cmp.Diff(read("../config/crd/scheduling.*.yaml"), read("batch-scheduler/crds/*")); diff != "" {
		t.Errorf("definitions (-config +chart):\n%s", diff)
	}
}

// TestTheChartIsClean is "helm lint --strict".
func TestTheChartIsClean(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"", everything} {
		for _, message := range lint.RunAll(dir, parse(t, values), namespace).Messages {
			if message.Severity > support.InfoSev {
				t.Error(message)
			}
		}
	}
}

// everything switches on all that there is.
const everything = `
admission: {enabled: true}
serviceMonitor: {enabled: true, interval: 10s, labels: {release: prometheus}}
image: {tag: v1.2.3, pullSecrets: [registry]}
extraArgs: [--gang-grace=5m]
nodeSelector: {node-role.kubernetes.io/control-plane: ""}
tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}]
resources: {requests: {cpu: 1}, limits: {memory: 2Gi}}
defaultQueue: {weight: 3, capability: {cpu: 100}, guarantee: {nvidia.com/gpu: "2"}, reclaimable: false}
`

// TestTheNamespaceIsThatOfTheRelease also holds for what is named after it.
func TestTheNamespaceIsThatOfTheRelease(t *testing.T) {
	t.Parallel()
	release := render(t, "elsewhere", everything)
	for name, text := range byName(t, release.Objects) {
		if strings.Contains(text, namespace) {
			t.Errorf("%s names the namespace %s:\n%s", name, namespace, text)
		}
	}
	if !strings.Contains(release.Notes, "--namespace elsewhere\n") {
		t.Errorf("the notes do not say where to look:\n%s", release.Notes)
	}
}

// TestValues shows what each value is for, by what it changes in the objects.
func TestValues(t *testing.T) {
	t.Parallel()
	before := byName(t, render(t, namespace, "").Objects)
	for values, want := range map[string]string{
		"image: {repository: example.com/b, tag: v1, pullPolicy: Always}": `
			- Deployment: image: ghcr.io/batch-scheduler/batch-scheduler:latest
			- Deployment: imagePullPolicy: IfNotPresent
			+ Deployment: image: example.com/b:v1
			+ Deployment: imagePullPolicy: Always`,
		"image: {pullSecrets: [registry]}": `
			+ Deployment: imagePullSecrets:
			+ Deployment: - name: registry`,
		"replicas: 3": `
			- Deployment: replicas: 2
			+ Deployment: replicas: 3`,
		"replicas: 1": `
			- Deployment: replicas: 2
			+ Deployment: replicas: 1
			- PodDisruptionBudget`,
		"policy: 'actions: allocate'": `
			- ConfigMap: actions: "allocate, backfill"
			+ ConfigMap: actions: allocate`,
		"defaultQueue: {weight: 3, capability: {cpu: 100}, guarantee: {cpu: 10}, reclaimable: false}": `
			- Queue: weight: 1
			+ Queue: capability:
			+ Queue: cpu: 10
			+ Queue: cpu: 100
			+ Queue: guarantee:
			+ Queue: reclaimable: false
			+ Queue: weight: 3`,
		"verbosity: 4":                              "- Deployment: - --v=2\n+ Deployment: - --v=4",
		"extraArgs: [--gang-grace=5m]":              "+ Deployment: - --gang-grace=5m",
		"resources: {limits: {cpu: 2}}":             "+ Deployment: cpu: 2\n+ Deployment: limits:",
		"priorityClassName: mine":                   "- Deployment: priorityClassName: batch-scheduler\n+ Deployment: priorityClassName: mine\n- PriorityClass",
		"nodeSelector: {pool: system}":              "+ Deployment: nodeSelector:\n+ Deployment: pool: system",
		"tolerations: [{key: k, operator: Exists}]": "+ Deployment: - key: k\n+ Deployment: operator: Exists\n+ Deployment: tolerations:",
		"serviceMonitor: {enabled: true}":           "+ Service\n+ ServiceMonitor",
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			got := changes(before, byName(t, render(t, namespace, values).Objects))
			if values == "policy: 'actions: allocate'" { // the rest of the old one is gone too
				got = slices.DeleteFunc(got, func(line string) bool { return !strings.Contains(line, "actions") })
			}
			wanted := slices.Sorted(trimmed(want))
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrometheusFindsTheMetrics(t *testing.T) {
	t.Parallel()
	objects := map[string]*unstructured.Unstructured{}
	for _, object := range render(t, namespace, everything).Objects {
		objects[object.GetKind()] = object
	}
	selected := func(by map[string]any, what map[string]string) bool {
		for name, value := range by {
			if what[name] != value {
				return false
			}
		}
		return len(by) > 0
	}
	monitor, service, deployment := objects["ServiceMonitor"], objects["Service"], objects["Deployment"]
	if labels, _, _ := unstructured.NestedMap(monitor.Object, "spec", "selector", "matchLabels"); !selected(labels, service.GetLabels()) {
		t.Error("the ServiceMonitor does not select the Service")
	}
	pods, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "template", "metadata", "labels")
	if labels, _, _ := unstructured.NestedMap(service.Object, "spec", "selector"); !selected(labels, pods) {
		t.Error("the Service does not select the pods")
	}
	at := func(object *unstructured.Unstructured, list, field string, path ...string) string {
		items, _, _ := unstructured.NestedSlice(object.Object, append(path, list)...)
		if len(items) != 1 {
			t.Fatalf("%s has %d %s", object.GetKind(), len(items), list)
		}
		return items[0].(map[string]any)[field].(string)
	}
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	container := &unstructured.Unstructured{Object: containers[0].(map[string]any)}
	if monitored, served := at(monitor, "endpoints", "port", "spec"), at(service, "ports", "name", "spec"); monitored != served {
		t.Errorf("the ServiceMonitor asks port %s of the Service, which has %s", monitored, served)
	}
	if target, served := at(service, "ports", "targetPort", "spec"), at(container, "ports", "name"); target != served {
		t.Errorf("the Service leads to port %s of the pods, which have %s", target, served)
	}
	if got := monitor.GetLabels()["release"]; got != "prometheus" {
		t.Errorf("the ServiceMonitor has the label release=%q", got)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"replica: 3":                               "at '': additional properties 'replica' not allowed",
		"replicas: two":                            "at '/replicas': got string, want integer",
		"replicas: -1":                             "at '/replicas': minimum: got -1, want 0",
		"image: {name: x}":                         "at '/image': additional properties 'name' not allowed",
		"image: {tag: 1.2}":                        "at '/image/tag': got number, want string",
		"image: {tag: 'a b'}":                      "at '/image/tag': 'a b' does not match pattern",
		"image: {pullPolicy: Sometimes}":           "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'",
		"policy: {actions: allocate}":              "at '/policy': got object, want string",
		"policy: ''":                               "at '/policy': minLength: got 0, want 1",
		"defaultQueue: {weight: 0}":                "at '/defaultQueue/weight': minimum: got 0, want 1",
		"verbosity: 11":                            "at '/verbosity': maximum: got 11, want 10",
		"extraArgs: [gang-grace=5m]":               "at '/extraArgs/0': 'gang-grace=5m' does not match pattern",
		"resources: {request: {cpu: 1}}":           "at '/resources': additional properties 'request' not allowed",
		"tolerations: [{key: a, operator: Exist}]": "at '/tolerations/0/operator': value must be one of",
		"nodeSelector: {gpu: true}":                "at '/nodeSelector/gpu': got boolean, want string",
		"admission: {enabled: 'yes'}":              "at '/admission/enabled': got string, want boolean",
		"serviceMonitor: {interval: 30}":           "at '/serviceMonitor/interval': got number, want string",
		"priorityClassName: [a]":                   "at '/priorityClassName': got array, want string",
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			_, err := chart.Render(dir, namespace, parse(t, values))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want one that says %s", err, want)
			}
		})
	}
}

func render(t *testing.T, namespace, values string) *chart.Release {
	t.Helper()
	release, err := chart.Render(dir, namespace, parse(t, values))
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func parse(t *testing.T, values string) map[string]any {
	t.Helper()
	parsed := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// byName returns the objects as texts, by kind and name.
func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, object := range objects {
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.JSONToYAML(data)
		if err != nil {
			t.Fatal(err)
		}
		name := object.GetKind() + " " + object.GetName()
		if texts[name] != "" {
			t.Errorf("there are two of %s", name)
		}
		texts[name] = string(text)
	}
	return texts
}

// changes tells in which lines objects differ, and which are new or gone, in order.
func changes(before, after map[string]string) []string {
	var found []string
	compare := func(sign string, these, others map[string]string) {
		for name, text := range these {
			kind, _, _ := strings.Cut(name, " ")
			other, both := others[name]
			if !both {
				found = append(found, sign+" "+kind)
				continue
			}
			others := slices.Collect(trimmed(other))
			for line := range trimmed(text) {
				if !slices.Contains(others, line) {
					found = append(found, sign+" "+kind+": "+line)
				}
			}
		}
	}
	compare("-", before, after)
	compare("+", after, before)
	slices.Sort(found)
	return found
}

// trimmed yields the lines of a text that are not empty, without their indentation.
func trimmed(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !yield(line) {
				return
			}
		}
	}
}
