package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

func TestInspection(t *testing.T) {
	type findings struct{ Partial, Over int }
	on := func(node string, gang, member int) corev1.Pod {
		p := *newPod(gang, member)
		p.Spec.NodeName = node
		return p
	}
	nodes := []corev1.Node{newNode("a", "2", "10"), newNode("b", "8", "2")}
	for name, test := range map[string]struct {
		given []corev1.Pod
		want  findings
	}{
		"whole gangs within the room":      {[]corev1.Pod{on("a", 0, 0), on("a", 0, 1), on("b", 1, 0), on("b", 1, 1)}, findings{}},
		"a gang that waits is not partial": {[]corev1.Pod{on("", 0, 0), on("", 0, 1)}, findings{}},
		"half a gang":                      {[]corev1.Pod{on("a", 0, 0), on("", 0, 1)}, findings{Partial: 1}},
		"more cpu than there is":           {[]corev1.Pod{on("a", 0, 0), on("a", 0, 1), on("a", 1, 0), on("b", 1, 1)}, findings{Over: 1}},
		"more pods than there may be":      {[]corev1.Pod{on("b", 0, 0), on("b", 0, 1), on("b", 1, 0), on("a", 1, 1)}, findings{Over: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := findings{partialGangs(test.given, 2), overcommitted(nodes, test.given)}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func newNode(name, cpu, pods string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse(pods),
		}},
	}
}

func TestProblem(t *testing.T) {
	for name, test := range map[string]struct {
		given result
		want  string
	}{
		"a partial gang":       {result{Pods: 4, Bound: 4, PartialGangs: 1}, "1 gangs are bound in part"},
		"an overcommitted one": {result{Pods: 4, Bound: 4, OvercommittedNodes: 2}, "2 nodes hold more than they have"},
		"a rejected pod":       {result{Pods: 4, Bound: 4, RejectedPods: 1}, "1 pods were rejected by their nodes"},
		"not in time":          {result{Pods: 4, Bound: 3}, "only 3 of 4 pods were bound in time"},
		"fast enough":          {result{Pods: 4, Bound: 4, PodsPerSecond: 600}, ""},
		"too slow":             {result{Pods: 4, Bound: 4, PodsPerSecond: 599}, "599 pods were bound per second, which is less than 600"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.given.problem(600); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFigureOfTheRate(t *testing.T) {
	bound := 600.0
	whole, partial := result{Pods: 4, Bound: 4, PodsPerSecond: 700}, result{Pods: 4, Bound: 4, PodsPerSecond: 700, PartialGangs: 1}
	for name, test := range map[string]struct {
		given   result
		atLeast float64
		want    figures.Figure
	}{
		"fast enough":         {whole, 600, figures.Figure{Name: "drain", Value: 700, Unit: "pods/s", Bound: &bound, OK: true}},
		"any rate will do":    {whole, 0, figures.Figure{Name: "drain", Value: 700, Unit: "pods/s", OK: true}},
		"fast, but not right": {partial, 600, figures.Figure{Name: "drain", Value: 700, Unit: "pods/s", Bound: &bound}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.given.figure(test.atLeast)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongFlags(t *testing.T) {
	for name, test := range map[string]struct{ given, want string }{
		"no gangs":       {"-gangs 0", "-nodes, -gangs and -size must be at least 1"},
		"an argument":    {"500", `unexpected argument "500"`},
		"a rate below 0": {"-at-least -1", "-at-least must not be negative"},
		"a typing slip":  {"-gang 3", "flag provided but not defined: -gang"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), strings.Fields(test.given), &stdout, &stderr)
			if code != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("code %d, output %q, errors %q; want code 1 and %q", code, stdout.String(), stderr.String(), test.want)
			}
		})
	}
}
