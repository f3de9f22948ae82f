// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// filters are filters and predicates by labels of nodes. They count how often they are called.
type filters struct {
	filtered, predicated int
}

// Filter refuses nodes with another value of the label disk than the node selector requires, and those with one of the
// labels broken and tainted.
func (f *filters) Filter(s *api.Signature, n *api.NodeInfo) *api.Unfit {
	f.filtered++
	if n.Node.Labels["broken"] != "" {
		return &api.Unfit{Reason: api.NodeUnschedulable}
	}
	if value := n.Node.Labels["tainted"]; value != "" {
		return &api.Unfit{Reason: api.Taint, Detail: value}
	}
	if want := s.Exemplar.NodeSelector["disk"]; want != "" && n.Node.Labels["disk"] != want {
		return &api.Unfit{Reason: api.NodeSelector}
	}
	return nil
}

// Feasible reports whether Filter returns nil.
func (f *filters) Feasible(s *api.Signature, n *api.NodeInfo) bool { return f.Filter(s, n) == nil }

// Predicate refuses tasks with host ports on nodes that run one with host ports. The answer is the same for all tasks with
// one signature, as Filters requires: also for a task that runs on the node.
func (f *filters) Predicate(t *api.TaskInfo, n *api.NodeInfo, _ api.When) *api.Unfit {
	f.predicated++
	for _, other := range n.Tasks {
		if len(t.Signature.Ports) > 0 && len(other.Signature.Ports) > 0 {
			return &api.Unfit{Reason: api.HostPortTaken}
		}
	}
	return nil
}

// open opens an index for a session with new filters.
func open(x *Index, c *model.Cluster) *filters {
	c.Events().Recompute()
	f := &filters{}
	x.Open(f)
	return f
}

func labelled(key, value string) func(*v1.Node) {
	return func(n *v1.Node) { n.Labels[key] = value }
}

func cordoned(n *v1.Node) { n.Spec.Unschedulable = true }

func notReady(n *v1.Node) {
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown}}
}

func foreign(p *v1.Pod) { p.Spec.SchedulerName = "other" }

func selecting(disk string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": disk} }
}

func beingDeleted(p *v1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }

// gpu is a resource that only some nodes have.
const gpu = "example.com/gpu"

func gpus(count int64) func(*v1.Node) {
	return func(n *v1.Node) { n.Status.Allocatable[gpu] = *resource.NewQuantity(count, resource.DecimalSI) }
}

func requestsGPUs(count int64) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests[gpu] = *resource.NewQuantity(count, resource.DecimalSI)
	}
}

// together requires pods to be in one domain.
func together(topologyKey string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Labels = maps.Clone(p.Labels)
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels["app"] = "together"
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{TopologyKey: topologyKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "together"}}},
		}}}
	}
}
