// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// filter runs the checks that depend on a signature and a node object only. Each *api.Unfit is built once and shared.
type filter struct {
	// comparison reports whether tolerations may use the operators Lt and Gt.
	comparison bool
	pressures  []pressure
	log        logr.Logger

	notReady, cordoned, selector *api.Unfit
	taints                       map[taintKey]*api.Unfit
}

type pressure struct {
	kind  v1.NodeConditionType
	unfit *api.Unfit
}

type taintKey struct {
	key, value string
	effect     v1.TaintEffect
}

func newFilter(a Arguments, comparison bool) *filter {
	f := &filter{
		comparison: comparison,
		notReady:   &api.Unfit{Reason: api.NodeNotReady, Plugin: Name},
		cordoned:   &api.Unfit{Reason: api.NodeUnschedulable, Plugin: Name},
		selector:   &api.Unfit{Reason: api.NodeSelector, Plugin: Name},
		taints:     map[taintKey]*api.Unfit{},
	}
	for _, kind := range a.pressures() {
		f.pressures = append(f.pressures, pressure{kind, &api.Unfit{Reason: api.NodePressure, Detail: string(kind), Plugin: Name}})
	}
	return f
}

// unfit returns why no task with the signature fits on the node, or nil. The most specific reason comes first: a
// cordoned node is reported as cordoned although it is tainted as well.
func (f *filter) unfit(s *api.Signature, n *api.NodeInfo) *api.Unfit {
	tolerations := s.Exemplar.Tolerations
	if !n.Ready() && !f.tolerates(tolerations, noSchedule(lifecycleTaint(n.Node))) {
		return f.notReady
	}
	if n.Node.Spec.Unschedulable && !f.tolerates(tolerations, noSchedule(v1.TaintNodeUnschedulable)) {
		return f.cordoned
	}
	for i := range f.pressures {
		if n.UnderPressure(f.pressures[i].kind) {
			return f.pressures[i].unfit
		}
	}
	for i := range n.Node.Spec.Taints {
		taint := &n.Node.Spec.Taints[i]
		if repels(taint) && !f.tolerates(tolerations, taint) {
			return f.taint(taint)
		}
	}
	if !s.Admits(n.Node) {
		return f.selector
	}
	return nil
}

// lifecycleTaint returns the taint that the node lifecycle controller adds to a node that is not ready: one key for
// nodes that report it, another for nodes that stopped reporting.
func lifecycleTaint(node *v1.Node) string {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == v1.NodeReady && c.Status == v1.ConditionUnknown {
			return v1.TaintNodeUnreachable
		}
	}
	return v1.TaintNodeNotReady
}

func noSchedule(key string) *v1.Taint {
	return &v1.Taint{Key: key, Effect: v1.TaintEffectNoSchedule}
}

func repels(taint *v1.Taint) bool {
	return taint.Effect == v1.TaintEffectNoSchedule || taint.Effect == v1.TaintEffectNoExecute
}

func (f *filter) tolerates(tolerations []v1.Toleration, taint *v1.Taint) bool {
	return corev1helpers.TolerationsTolerateTaint(f.log, tolerations, taint, f.comparison)
}

// taint returns the shared result for a taint; there are as many as there are different taints in a session. They are
// not kept longer: cluster autoscalers write timestamps into taints.
func (f *filter) taint(taint *v1.Taint) *api.Unfit {
	key := taintKey{taint.Key, taint.Value, taint.Effect}
	unfit := f.taints[key]
	if unfit == nil {
		unfit = &api.Unfit{Reason: api.Taint, Detail: taint.ToString(), Plugin: Name}
		f.taints[key] = unfit
	}
	return unfit
}
