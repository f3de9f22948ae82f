// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func drawAffinity(t *rapid.T, p *v1.Pod) {
	a := &v1.Affinity{}
	if seldom(t, "node affinity") {
		a.NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{}}
		for range one(t, "terms", 1, 1, 2) {
			terms := &a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			*terms = append(*terms, drawNodeTerm(t))
		}
	}
	if !often(t, "pod affinity") {
		a.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: drawPodTerms(t)}
	}
	if !often(t, "pod anti-affinity") {
		a.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: drawPodTerms(t)}
	}
	if a.NodeAffinity != nil || a.PodAffinity != nil || a.PodAntiAffinity != nil {
		p.Spec.Affinity = a
	}
}

// drawNodeTerm draws terms that the API server accepts; an empty term matches no node.
func drawNodeTerm(t *rapid.T) v1.NodeSelectorTerm {
	var term v1.NodeSelectorTerm
	for range one(t, "expressions", 0, 1, 1, 2) {
		term.MatchExpressions = append(term.MatchExpressions, drawRequirement(t))
	}
	if seldom(t, "match by name") {
		term.MatchFields = []v1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: one(t, "operator", v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn), Values: []string{one(t, "name", "n0", "n1", "n9")},
		}}
	}
	return term
}

func drawRequirement(t *rapid.T) v1.NodeSelectorRequirement {
	switch operator := one(t, "operator", v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn, v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist,
		v1.NodeSelectorOpGt, v1.NodeSelectorOpLt); operator {
	case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
		return v1.NodeSelectorRequirement{Key: level, Operator: operator, Values: []string{one(t, "level", "1", "3")}}
	case v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist:
		return v1.NodeSelectorRequirement{Key: one(t, "key", rack, v1.LabelTopologyZone), Operator: operator}
	default:
		return v1.NodeSelectorRequirement{Key: v1.LabelTopologyZone, Operator: operator, Values: []string{one(t, "zone", "a", "b")}}
	}
}

func drawTopology(t *rapid.T) string {
	return one(t, "topology", v1.LabelHostname, v1.LabelTopologyZone, rack)
}

func drawPodTerms(t *rapid.T) []v1.PodAffinityTerm {
	var terms []v1.PodAffinityTerm
	for range one(t, "terms", 1, 1, 2) {
		term := v1.PodAffinityTerm{TopologyKey: drawTopology(t), LabelSelector: drawSelector(t)}
		if seldom(t, "names namespaces") {
			term.Namespaces = []string{one(t, "namespace", "one", "two")}
		}
		if seldom(t, "selects namespaces") {
			term.NamespaceSelector = &metav1.LabelSelector{}
			if often(t, "by label") {
				term.NamespaceSelector.MatchLabels = map[string]string{"team": one(t, "team", "one", "two", "three")}
			}
		}
		terms = append(terms, term)
	}
	return terms
}

// drawSelector draws selectors of no pods (nil), of all pods, and of some pods.
func drawSelector(t *rapid.T) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	switch one(t, "selector", "app", "app", "app", "expression", "both", "all", "none") {
	case "none":
		return nil
	case "app":
		s.MatchLabels = map[string]string{"app": one(t, "app", "x", "y")}
	case "expression":
		s.MatchExpressions = []metav1.LabelSelectorRequirement{drawExpression(t)}
	case "both":
		s.MatchLabels = map[string]string{"app": one(t, "app", "x", "y")}
		s.MatchExpressions = []metav1.LabelSelectorRequirement{drawExpression(t)}
	}
	return s
}

func drawExpression(t *rapid.T) metav1.LabelSelectorRequirement {
	r := metav1.LabelSelectorRequirement{Key: "tier", Operator: one(t, "operator",
		metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}
	if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
		r.Values = []string{one(t, "tier", "front", "back")}
	}
	return r
}

func drawSpread(t *rapid.T, i int) v1.TopologySpreadConstraint {
	c := v1.TopologySpreadConstraint{
		MaxSkew:           one[int32](t, "skew", 1, 1, 2),
		TopologyKey:       []string{v1.LabelTopologyZone, v1.LabelHostname}[i],
		WhenUnsatisfiable: one(t, "when unsatisfiable", v1.DoNotSchedule, v1.DoNotSchedule, v1.DoNotSchedule, v1.ScheduleAnyway),
		LabelSelector:     drawSelector(t),
	}
	if c.WhenUnsatisfiable == v1.DoNotSchedule && seldom(t, "least domains") {
		domains := one[int32](t, "domains", 1, 2, 3)
		c.MinDomains = &domains
	}
	policies := []v1.NodeInclusionPolicy{v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore}
	if seldom(t, "affinity policy") {
		policy := one(t, "policy", policies...)
		c.NodeAffinityPolicy = &policy
	}
	if seldom(t, "taints policy") {
		policy := one(t, "policy", policies...)
		c.NodeTaintsPolicy = &policy
	}
	if c.LabelSelector != nil && seldom(t, "label keys") {
		c.MatchLabelKeys = []string{one(t, "key", "index", "tier")}
	}
	return c
}
