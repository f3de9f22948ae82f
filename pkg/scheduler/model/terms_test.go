// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

func TestClassesDifferByWhatSelectsThem(t *testing.T) {
	everything, nothing := &metav1.LabelSelector{}, (*metav1.LabelSelector)(nil)
	app := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": value}}
	}
	repels := func(name string, term v1.PodAffinityTerm) *v1.Pod {
		term.TopologyKey = v1.LabelHostname
		pod := labelled("default", name, nil)
		pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term},
		}}
		return pod
	}
	tests := map[string]struct {
		given []*v1.Pod
		want  map[string]bool // by namespace, whether a pod with label app=a is selected
	}{
		"no term selects anything": {
			want: map[string]bool{"default": false, "other": false},
		},
		"a label selects within the own namespace": {
			given: []*v1.Pod{repels("a", v1.PodAffinityTerm{LabelSelector: app("a")})},
			want:  map[string]bool{"default": true, "other": false},
		},
		"a selector of all pods is not mistaken for one of none": {
			given: []*v1.Pod{
				repels("none", v1.PodAffinityTerm{LabelSelector: nothing}),
				repels("all", v1.PodAffinityTerm{LabelSelector: everything}),
			},
			want: map[string]bool{"default": true, "other": false},
		},
		"a selector of all namespaces is not mistaken for none": {
			given: []*v1.Pod{
				repels("none", v1.PodAffinityTerm{LabelSelector: app("a"), Namespaces: []string{"default"}}),
				repels("all", v1.PodAffinityTerm{LabelSelector: app("a"), Namespaces: []string{"default"}, NamespaceSelector: everything}),
			},
			want: map[string]bool{"default": true, "other": true},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := model.NewCluster(model.Options{})
			for _, pod := range tt.given {
				c.Events().SetPod(pod)
			}
			for namespace, want := range tt.want {
				pod := labelled(namespace, "asked", map[string]string{"app": "a"})
				c.Events().SetPod(pod)
				if got := c.ClassOf(c.Tasks()[api.TaskID(pod.UID)]).Selected; got != want {
					t.Errorf("in namespace %s: selected is %v, want %v", namespace, got, want)
				}
			}
		})
	}
}

func TestUpstreamFiltersCheckInvalidSelectors(t *testing.T) {
	pod := labelled("default", "broken", nil)
	pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}},
	}}
	c := model.NewCluster(model.Options{})
	c.Events().SetPod(pod)
	if !c.ClassOf(c.Tasks()[api.TaskID(pod.UID)]).AffectedByPods() {
		t.Error("the class is not affected by other pods, so no filter would reject the pod")
	}
}

func TestSignaturesDifferByTheLabelsOfSpreadConstraints(t *testing.T) {
	c := model.NewCluster(model.Options{})
	signature := func(name, revision string) *api.Signature {
		pod := labelled("default", name, map[string]string{"revision": revision, "index": name})
		pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
			TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{"revision"},
		}}
		c.Events().SetPod(pod)
		return c.Tasks()[api.TaskID(pod.UID)].Signature
	}
	if signature("a", "1") != signature("b", "1") {
		t.Error("pods of one revision have different signatures")
	}
	if signature("a", "1") == signature("c", "2") {
		t.Error("pods of two revisions share a signature")
	}
}

func labelled(namespace, name string, labels map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Labels: labels,
	}}
}
