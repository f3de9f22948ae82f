// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Term is a term of pod affinity or anti-affinity, or a topology spread constraint, of a signature. Labels of pods
// influence scheduling through terms only, so tasks of one signature differ only in which terms select them.
type Term struct {
	key               string
	namespaces        []string
	namespaceSelector labels.Selector // nil selects no namespace
	selector          labels.Selector
	requires          string
}

// termsOf reads the terms of a pod's spec. A selector that cannot be parsed selects nothing; its
// term is kept, so that upstream's plugins run and reject the pod.
func termsOf(pod *v1.Pod) []Term {
	var terms []Term
	add := func(kind string, selector *metav1.LabelSelector, namespaces []string, namespaceSelector *metav1.LabelSelector) {
		t := Term{selector: parseSelector(selector), namespaces: namespaces, requires: requiredLabel(selector)}
		if namespaceSelector != nil {
			t.namespaceSelector = parseSelector(namespaceSelector)
		} else if len(namespaces) == 0 {
			t.namespaces = []string{pod.Namespace}
		}
		t.key = kind + "|" + strings.Join(t.namespaces, ",") + "|" + selectorKey(t.namespaceSelector) + "|" + selectorKey(t.selector)
		terms = append(terms, t)
	}
	if a := pod.Spec.Affinity; a != nil {
		for _, t := range podTerms(a) {
			add("pod", t.LabelSelector, t.Namespaces, t.NamespaceSelector)
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		add("spread", pod.Spec.TopologySpreadConstraints[i].LabelSelector, nil, nil)
	}
	return terms
}

// selfAffinityKeyOf returns the topology key of the first required affinity term that selects the pod
// itself.
func selfAffinityKeyOf(pod *v1.Pod) string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return ""
	}
	for _, t := range pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		own := len(t.Namespaces) == 0 && t.NamespaceSelector == nil || slices.Contains(t.Namespaces, pod.Namespace)
		if err == nil && own && selector.Matches(labels.Set(pod.Labels)) {
			return t.TopologyKey
		}
	}
	return ""
}

func parseSelector(selector *metav1.LabelSelector) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing()
	}
	return parsed
}

// selectorKey writes a selector so that all and nothing, which both read as "", differ.
func selectorKey(selector labels.Selector) string {
	if selector == nil {
		return "nothing"
	}
	if _, selectable := selector.Requirements(); !selectable {
		return "nothing"
	}
	return "{" + selector.String() + "}"
}

func podTerms(a *v1.Affinity) []v1.PodAffinityTerm {
	var terms []v1.PodAffinityTerm
	weighted := func(preferred []v1.WeightedPodAffinityTerm) {
		for i := range preferred {
			terms = append(terms, preferred[i].PodAffinityTerm)
		}
	}
	if a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return terms
}

func requiredLabel(selector *metav1.LabelSelector) string {
	if selector == nil {
		return ""
	}
	best := ""
	for name, value := range selector.MatchLabels {
		if pair := name + "=" + value; best == "" || pair < best {
			best = pair
		}
	}
	return best
}

// Key is equal for equal terms, and only for those.
func (t *Term) Key() string { return t.key }

// RequiredLabel is a label that every selected pod has, as "key=value"; empty if there is none that could be looked up.
func (t *Term) RequiredLabel() string { return t.requires }

// Selects reports whether the term selects a pod of a namespace with these labels.
func (t *Term) Selects(pod *v1.Pod, namespaceLabels labels.Set) bool {
	if !slices.Contains(t.namespaces, pod.Namespace) &&
		(t.namespaceSelector == nil || !t.namespaceSelector.Matches(namespaceLabels)) {
		return false
	}
	return t.selector.Matches(labels.Set(pod.Labels))
}

// EquivalenceClass is a set of tasks that the scheduler need not distinguish: they have the same signature, the same
// terms of existing pods select them, and where that matters, the limits of their run times are equal. Tasks of a job that
// must be in one topology domain are distinguished from those of other jobs.
type EquivalenceClass struct {
	Signature *Signature
	// Selected reports whether any term of an existing pod selects the tasks of this class.
	Selected bool
	// Limit is that of the tasks, see TaskInfo.Limit, while some node becomes unavailable; else 0.
	Limit time.Duration
	// Level is JobInfo.TopologyLevel of the job of the tasks, and SubGroup is the smallest subgroup of them that requires a
	// level of its own; nil for most classes. All tasks of a class that has one of them are of one job.
	Level    *TopologyLevel
	SubGroup *SubGroup
	// Common is the class that those of all jobs with this level have in common; the class itself if it has no level, or has a
	// SubGroup. As long as no member has a node, the tasks of these jobs need not be distinguished.
	Common *EquivalenceClass
}

// ClassVersion is everything that equivalence classes depend on besides the pods in them.
type ClassVersion struct{ Terms, Namespaces uint64 }

// AffectedByPods reports whether other pods influence on which nodes tasks of this class may run, or the other
// way round, so that upstream's plugins have to filter nodes for it.
func (c *EquivalenceClass) AffectedByPods() bool { return c.Selected || len(c.Signature.Terms) > 0 }

// NodeLocal reports whether feasibility depends on the node alone: neither on pods of other nodes
// nor on objects that are not in the model.
func (c *EquivalenceClass) NodeLocal() bool {
	return c.Level == nil && c.SubGroup == nil && c.NodeLocalInDomain()
}

// NodeLocalInDomain reports whether feasibility depends on the node alone, and on the topology domains where members of the
// job are.
func (c *EquivalenceClass) NodeLocalInDomain() bool {
	return !c.AffectedByPods() && !c.Signature.HasExternalResources()
}

// NodeLocalUnpinned reports whether the class has a level, and feasibility depends on the node alone as long as no member of
// the job has a node.
func (c *EquivalenceClass) NodeLocalUnpinned() bool {
	return c.Level != nil && c.SubGroup == nil && c.NodeLocalInDomain()
}

// RequiredLevel returns the level of which all tasks of a gang must be in one domain, because its group or a pod affinity
// requires it; nil if there is none.
func (c *EquivalenceClass) RequiredLevel() *TopologyLevel {
	if key := c.Signature.SelfAffinityKey(); c.Level == nil && key != "" {
		return AffinityLevel(key)
	}
	return c.Level
}
