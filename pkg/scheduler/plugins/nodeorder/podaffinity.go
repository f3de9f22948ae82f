// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeorder

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func prefersPods(q *scoreState) bool {
	a := q.signature.Exemplar.Affinity
	return a != nil && (a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0)
}

// term is a preferred term of pod affinity or anti-affinity.
type term struct {
	fwk.WeightedAffinityTerm
	anti    bool
	domains domains
}

// preferredTerms parses the terms of a signature. A term that cannot be parsed selects no pods.
func preferredTerms(s *api.Signature) []term {
	var terms []term
	add := func(preferred []v1.WeightedPodAffinityTerm, anti bool) {
		owner := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace}}
		parsed, err := fwk.GetWeightedAffinityTerms(owner, preferred)
		if err != nil {
			return
		}
		for _, t := range parsed {
			terms = append(terms, term{WeightedAffinityTerm: t, anti: anti})
		}
	}
	if a := s.Exemplar.Affinity; a != nil {
		if a.PodAffinity != nil {
			add(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, false)
		}
		if a.PodAntiAffinity != nil {
			add(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, true)
		}
	}
	return terms
}

// contribution returns the number of pods on a node that the term selects. A node without the topology label belongs to no domain.
func (t *term) contribution(cluster api.ClusterView, n *api.NodeInfo) contribution {
	if n == nil {
		return contribution{}
	}
	value, present := n.Node.Labels[t.TopologyKey]
	if !present {
		return contribution{}
	}
	c := contribution{present: true, domain: value}
	for _, task := range n.Tasks {
		labels, _ := cluster.NamespaceLabels(task.Pod.Namespace)
		if t.Matches(task.Pod, labels) {
			c.pods++
		}
	}
	return c
}

// podAffinity returns the weight of the preferred terms that the node satisfies, as a fraction of the weight of all
// terms: an affinity term if the node's domain has a pod that the term selects, an anti-affinity term if it has none.
func podAffinity(q *scoreState, n *api.NodeInfo) api.Score {
	q.neighbours.sync()
	var satisfied, all int64
	for i := range q.neighbours.terms {
		t := &q.neighbours.terms[i]
		all += int64(t.Weight)
		value, present := n.Node.Labels[t.TopologyKey]
		if held := present && t.domains.pods(value) > 0; held != t.anti {
			satisfied += int64(t.Weight)
		}
	}
	if all == 0 {
		return 0
	}
	return api.ScoreOf(satisfied, all)
}
