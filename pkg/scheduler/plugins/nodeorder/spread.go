// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeorder

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func prefersSpread(q *scoreState) bool {
	constraints := q.signature.Exemplar.TopologySpreadConstraints
	for i := range constraints {
		if constraints[i].WhenUnsatisfiable == v1.ScheduleAnyway {
			return true
		}
	}
	return false
}

// constraint is a topology spread constraint whose whenUnsatisfiable is ScheduleAnyway.
type constraint struct {
	key        string
	selector   labels.Selector
	signature  *api.Signature
	keys       []string // of all constraints: a node without one of them does not count
	byAffinity bool     // only nodes that the node affinity of the signature admits count
	byTaints   bool     // only nodes whose taints the signature tolerates count
	comparison bool
	domains    domains
}

// softConstraints parses the constraints of a signature. A constraint that cannot be parsed selects no pods.
// matchLabelKeys is ignored because the API server merges these keys into the selector.
func softConstraints(s *api.Signature, comparison bool) []constraint {
	var constraints []constraint
	var keys []string
	for i := range s.Exemplar.TopologySpreadConstraints {
		if c := &s.Exemplar.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == v1.ScheduleAnyway {
			keys = append(keys, c.TopologyKey)
		}
	}
	for i := range s.Exemplar.TopologySpreadConstraints {
		c := &s.Exemplar.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != v1.ScheduleAnyway {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil {
			selector = labels.Nothing()
		}
		constraints = append(constraints, constraint{
			key: c.TopologyKey, selector: selector, signature: s, keys: keys, comparison: comparison,
			byAffinity: c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor,
			byTaints:   c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor,
		})
	}
	return constraints
}

// contribution returns the number of pods on a node that the constraint selects. As in kube-scheduler, terminating pods do not count,
// and an empty selector selects no pods.
func (c *constraint) contribution(n *api.NodeInfo) contribution {
	if n == nil || !c.counts(n.Node) {
		return contribution{}
	}
	result := contribution{present: true, domain: n.Node.Labels[c.key]}
	if c.selector.Empty() {
		return result
	}
	for _, task := range n.Tasks {
		if task.Status != api.Releasing && task.Pod.Namespace == c.signature.Namespace && c.selector.Matches(labels.Set(task.Pod.Labels)) {
			result.pods++
		}
	}
	return result
}

// counts reports whether a node is one of those over which the constraint spreads.
func (c *constraint) counts(node *v1.Node) bool {
	for _, key := range c.keys {
		if _, present := node.Labels[key]; !present {
			return false
		}
	}
	if c.byAffinity {
		if !c.signature.Admits(node) {
			return false
		}
	}
	if c.byTaints {
		_, repelled := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, c.signature.Exemplar.Tolerations,
			func(t *v1.Taint) bool { return t.Effect != v1.TaintEffectPreferNoSchedule }, c.comparison)
		return !repelled
	}
	return true
}

// topologySpread returns the mean over the constraints of 1/(1+surplus), where the surplus is the number of pods in
// the node's domain beyond those in the domain with the fewest. A node without the topology label of any of the
// constraints scores zero.
func topologySpread(q *scoreState, n *api.NodeInfo) api.Score {
	q.neighbours.sync()
	var sum api.Score
	for i := range q.neighbours.spread {
		c := &q.neighbours.spread[i]
		value, present := n.Node.Labels[c.key]
		if !present {
			return 0
		}
		surplus := max(c.domains.pods(value)-c.domains.fewest(), 0)
		sum += api.OneScore / (1 + api.Score(surplus))
	}
	return sum / api.Score(len(q.neighbours.spread))
}
