// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"
)

// Pod signatures admit the nodes that upstream's matcher admits, malformed terms included.
func TestAdmitsAgainstUpstream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := &v1.Pod{Spec: v1.PodSpec{NodeSelector: drawLabels(t, "selector")}}
		if rapid.IntRange(0, 3).Draw(t, "affinity") > 0 {
			pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
				NodeSelectorTerms: rapid.SliceOfN(rapid.Custom(drawTerm), 0, 3).Draw(t, "terms"),
			}}}
		}
		signature := &Signature{nodes: newNodeMatcher(pod)}
		upstream := nodeaffinity.GetRequiredNodeAffinity(pod)
		for range 4 {
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), Labels: drawLabels(t, "labels"),
			}}
			want, _ := upstream.Match(node)
			if got := signature.Admits(node); got != want {
				t.Fatalf("node %v: admitted %t, and upstream says %t", node.ObjectMeta, got, want)
			}
		}
	})
}

func drawLabels(t *rapid.T, name string) map[string]string {
	if rapid.Bool().Draw(t, name+" empty") {
		return nil
	}
	return rapid.MapOfN(rapid.SampledFrom([]string{"disk", "rack"}), rapid.SampledFrom([]string{"", "1", "2", "ssd"}), 0, 2).Draw(t, name)
}

func drawTerm(t *rapid.T) v1.NodeSelectorTerm {
	var term v1.NodeSelectorTerm
	for range rapid.IntRange(0, 2).Draw(t, "expressions") {
		term.MatchExpressions = append(term.MatchExpressions, v1.NodeSelectorRequirement{
			Key:      rapid.SampledFrom([]string{"disk", "rack", "no key"}).Draw(t, "key"),
			Operator: rapid.SampledFrom([]v1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like"}).Draw(t, "operator"),
			Values:   rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "ssd"}), 0, 2).Draw(t, "values"),
		})
	}
	if rapid.IntRange(0, 3).Draw(t, "fields") == 0 {
		term.MatchFields = []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"a"}}}
	}
	return term
}

// A question about labels allocates nothing.
func TestAdmitsAllocatesNothing(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Affinity: &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "disk", Operator: "In", Values: []string{"ssd", "hdd"}}}}},
	}}}}}
	signature := &Signature{nodes: newNodeMatcher(pod)}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"disk": "hdd"}}}
	if got := testing.AllocsPerRun(100, func() { signature.Admits(node) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
