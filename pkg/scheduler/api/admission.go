// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// nodeMatcher is the node selector and the required node affinity of a pod. Nearly all of them are about
// labels alone; those are parsed here, because upstream's matcher also builds fields of the node for each
// call, which would be most of the cost of the filters.
type nodeMatcher struct {
	upstream nodeaffinity.RequiredNodeAffinity
	byFields bool // ask upstream

	selector labels.Selector // nil selects all
	// named are the requirements that all have to be met: those of the selector, and those of the affinity if it
	// has no alternatives.
	named []requirement
	other *Unfit // for nodes that meet them
	// terms are alternatives, if there is an affinity. What cannot be parsed is left out: it matches no node.
	terms    []labels.Selector
	affinity bool
}

// requirement is about one label of a node; unmet is the refusal of nodes that do not meet it.
type requirement struct {
	labels.Requirement
	unmet *Unfit
}

// longestRequirement is up to how many bytes a requirement is reported in full.
const longestRequirement = 80

func requirements(kind string, selector labels.Selector) []requirement {
	all, _ := selector.Requirements()
	named := make([]requirement, len(all))
	for i, r := range all {
		text := r.String()
		if len(text) > longestRequirement {
			text = r.Key()
		}
		named[i] = requirement{r, &Unfit{Reason: NodeSelector, Detail: kind + " " + text}}
	}
	return named
}

func newNodeMatcher(pod *v1.Pod) nodeMatcher {
	m := nodeMatcher{upstream: nodeaffinity.GetRequiredNodeAffinity(pod), other: &Unfit{Reason: NodeSelector, Detail: "node affinity"}}
	if len(pod.Spec.NodeSelector) > 0 {
		m.selector = labels.SelectorFromSet(pod.Spec.NodeSelector)
		m.named = requirements("node selector", m.selector)
	}
	required := requiredTerms(pod)
	if required == nil {
		return m
	}
	m.affinity = true
	for i := range required.NodeSelectorTerms {
		term := &required.NodeSelectorTerms[i]
		m.byFields = m.byFields || len(term.MatchFields) > 0
		if selector := labelSelector(term.MatchExpressions); selector != nil {
			m.terms = append(m.terms, selector)
		}
	}
	if len(required.NodeSelectorTerms) == 1 && len(m.terms) == 1 {
		m.named = append(m.named, requirements("node affinity", m.terms[0])...)
	}
	return m
}

func requiredTerms(pod *v1.Pod) *v1.NodeSelector {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

func labelOperator(operator v1.NodeSelectorOperator) selection.Operator {
	switch operator {
	case v1.NodeSelectorOpIn:
		return selection.In
	case v1.NodeSelectorOpNotIn:
		return selection.NotIn
	case v1.NodeSelectorOpExists:
		return selection.Exists
	case v1.NodeSelectorOpDoesNotExist:
		return selection.DoesNotExist
	case v1.NodeSelectorOpGt:
		return selection.GreaterThan
	case v1.NodeSelectorOpLt:
		return selection.LessThan
	}
	return "" // which no requirement can be made of
}

// labelSelector returns nil for a term that matches no node: an empty one, and one that is malformed.
func labelSelector(expressions []v1.NodeSelectorRequirement) labels.Selector {
	if len(expressions) == 0 {
		return nil
	}
	selector := labels.NewSelector()
	for i := range expressions {
		e := &expressions[i]
		requirement, err := labels.NewRequirement(e.Key, labelOperator(e.Operator), e.Values)
		if err != nil {
			return nil
		}
		selector = selector.Add(*requirement)
	}
	return selector
}

// Admits reports whether a node meets the node selector and the required node affinity of the signature.
func (s *Signature) Admits(node *v1.Node) bool {
	m := &s.nodes
	if m.byFields {
		matches, _ := m.upstream.Match(node) // as in kube-scheduler, other terms than those with errors count
		return matches
	}
	if m.selector != nil && !m.selector.Matches(labels.Set(node.Labels)) {
		return false
	}
	if !m.affinity {
		return true
	}
	for _, term := range m.terms {
		if term.Matches(labels.Set(node.Labels)) {
			return true
		}
	}
	return false
}

// UnmetSelector details why Admits is false for a node, which the filter does not, because it runs more often: the
// first mandatory requirement that the node does not meet, if there is one.
func (s *Signature) UnmetSelector(node *v1.Node) *Unfit {
	for i := range s.nodes.named {
		if r := &s.nodes.named[i]; !r.Matches(labels.Set(node.Labels)) {
			return r.unmet
		}
	}
	return s.nodes.other
}
