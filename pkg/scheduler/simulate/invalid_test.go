// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate"
)

const noNodes = `there are no nodes among the objects: add those of a cluster, for example what "kubectl get nodes -o yaml" prints`

// TestWrongInput checks that errors contain the location and the reason.
func TestWrongInput(t *testing.T) {
	for name, tc := range map[string]struct {
		file  string // all.yaml if empty
		given string
		want  string // DIR is a placeholder for the directory
	}{
		"no YAML":            {given: "a: b: c\n", want: "reading objects: DIR/all.yaml: yaml: mapping values are not allowed in this context"},
		"no JSON":            {file: "all.json", given: `{"a": }`, want: "reading objects: DIR/all.json: invalid character '}' looking for beginning of value"},
		"no kind":            {given: "a: b\n", want: "reading objects: DIR/all.yaml: no apiVersion or no kind"},
		"a misspelt field":   {given: node("n1", "1") + "---\n" + pod("p", "q", "1", "spec: nodename: n1"), want: `reading objects: DIR/all.yaml, document 2: strict decoding error: unknown field "spec.nodename"`},
		"in a list":          {given: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {nam: p}}\n", want: `reading objects: DIR/all.yaml, item 1: strict decoding error: unknown field "metadata.nam"`},
		"no name":            {given: "apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\n", want: "reading objects: DIR/all.yaml: a Pod without metadata.name"},
		"a duplicate":        {given: node("n1", "1") + "---\n" + node("n1", "1"), want: "reading objects: DIR/all.yaml, document 2: Node n1 is there twice, first in DIR/all.yaml, document 1"},
		"no nodes":           {given: pod("p", "q", "1"), want: noNodes},
		"only unknown kinds": {given: "apiVersion: example.com/v1\nkind: Car\nmetadata: {name: c}\n", want: noNodes},
		"no such file":       {file: "all.txt", given: "", want: "reading objects: there is no .yaml, .yml or .json file in DIR"},
	} {
		t.Run(name, func(t *testing.T) {
			d := t.TempDir()
			if tc.file == "" {
				tc.file = "all.yaml"
			}
			if err := os.WriteFile(filepath.Join(d, tc.file), []byte(tc.given), 0o600); err != nil {
				t.Fatal(err)
			}
			objects, err := simulate.FromDir(d, nil)
			if err == nil {
				_, err = simulate.NewSnapshot(objects, time.Time{})
			}
			if err == nil {
				t.Fatal("it was accepted")
			}
			if diff := cmp.Diff(tc.want, strings.ReplaceAll(err.Error(), d, "DIR")); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := simulate.FromDir("/none", nil); err == nil || !strings.Contains(err.Error(), "/none: no such file or directory") {
		t.Errorf("a directory that is missing: %v", err)
	}
}

// TestOverlay applies files to existing objects.
func TestOverlay(t *testing.T) {
	below, err := simulate.FromDir(dir(t, node("n1", "1"), queue("q", 1), pod("a", "q", "1"), pod("b", "q", "1", on("n1"))), nil)
	if err != nil {
		t.Fatal(err)
	}
	above, err := simulate.FromDir(dir(t, node("n1", "2")), nil)
	if err != nil {
		t.Fatal(err)
	}
	below.Overlay(above)
	s, err := simulate.NewSnapshot(below, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("1: bind default/a n1", format(run(t, s, ""))); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

func TestCompare(t *testing.T) {
	bound := func(pod, group string, cycle int) simulate.Binding {
		return simulate.Binding{Pod: pod, Group: group, Queue: "q", Node: "n", Cycle: cycle}
	}
	evicted := func(pod string, cycle int) simulate.Eviction { return simulate.Eviction{Pod: pod, Cycle: cycle} }
	holds := func(cpu string) []simulate.Queue {
		q := simulate.Queue{Name: "q"}
		if cpu != "" {
			q.AllocatedAfter = v1.ResourceList{"cpu": resource.MustParse(cpu)}
		}
		return []simulate.Queue{q}
	}
	for name, tc := range map[string]struct {
		first, second simulate.Result
		want          simulate.Differences
	}{
		"no difference, although another node is used": {
			first:  simulate.Result{Bound: []simulate.Binding{{Pod: "p", Group: "g", Node: "n1", Cycle: 1}}, Queues: holds("1")},
			second: simulate.Result{Bound: []simulate.Binding{{Pod: "p", Group: "g", Node: "n2", Cycle: 1}}, Queues: holds("1000m")},
		},
		"a group that starts only under one policy, and one that gets more pods": {
			first:  simulate.Result{Bound: []simulate.Binding{bound("a", "g", 1), bound("b", "h", 1)}},
			second: simulate.Result{Bound: []simulate.Binding{bound("b", "h", 1), bound("c", "h", 1)}},
			want:   simulate.Differences{Starts: []simulate.Start{{"g", "q", 1, 0}, {"h", "q", 1, 2}}},
		},
		"the greatest difference first": {
			second: simulate.Result{Bound: []simulate.Binding{bound("a", "g", 1), bound("b", "h", 1), bound("c", "h", 1)}},
			want:   simulate.Differences{Starts: []simulate.Start{{"h", "q", 0, 2}, {"g", "q", 0, 1}}},
		},
		"a pod that is bound and evicted again has not started": {
			first:  simulate.Result{Bound: []simulate.Binding{bound("a", "g", 1)}, Evicted: []simulate.Eviction{evicted("a", 2)}},
			second: simulate.Result{Bound: []simulate.Binding{bound("a", "g", 1), bound("a", "g", 3)}, Evicted: []simulate.Eviction{evicted("a", 2)}},
			want:   simulate.Differences{Starts: []simulate.Start{{"g", "q", 0, 1}}},
		},
		"evictions by one policy only": {
			first:  simulate.Result{Evicted: []simulate.Eviction{evicted("a", 1), evicted("b", 1)}},
			second: simulate.Result{Evicted: []simulate.Eviction{evicted("b", 3), evicted("c", 1)}},
			want:   simulate.Differences{EvictedByFirst: []simulate.Eviction{evicted("a", 1)}, EvictedBySecond: []simulate.Eviction{evicted("c", 1)}},
		},
		"shares": {
			first:  simulate.Result{Queues: holds("1")},
			second: simulate.Result{Queues: holds("")},
			want:   simulate.Differences{Shares: []simulate.Share{{"q", "cpu", resource.MustParse("1"), resource.Quantity{}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := simulate.Compare(&tc.first, &tc.second).Differences
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if got.None() != (name == "no difference, although another node is used") {
				t.Errorf("None is %t", got.None())
			}
		})
	}
}

// TestWarningsAreSorted checks that warnings are sorted by the names of their objects.
func TestWarningsAreSorted(t *testing.T) {
	documents := []string{node("n1", "1")}
	var want []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		documents = append(documents, pod(name, "q", "1", "spec: priorityClassName: none"))
		want = append(want, "pod default/"+name+": there is no priority class none; its priority counts as 0")
	}
	if diff := cmp.Diff(want, run(t, snapshot(t, dir(t, documents...)), "").Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
