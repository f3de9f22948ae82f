// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Budget is what the model keeps of a PodDisruptionBudget.
type Budget struct {
	Selector labels.Selector
	Allowed  int32 // status.disruptionsAllowed
	// Unconfirmed counts its pods whose eviction was decided and whose deletion the API server has not
	// shown yet: Allowed does not include them.
	Unconfirmed int32
}

func (b *Budget) selects(t *api.TaskInfo) bool { return b.Selector.Matches(labels.Set(t.Pod.Labels)) }

// budgetTable holds the PodDisruptionBudgets, and the decided evictions that the API server has not shown yet.
type budgetTable struct {
	budgets     map[string]map[string]*Budget // by namespace and name
	unconfirmed map[*api.TaskInfo]struct{}
}

func newBudgetTable() budgetTable {
	return budgetTable{budgets: map[string]map[string]*Budget{}, unconfirmed: map[*api.TaskInfo]struct{}{}}
}

// get returns nil for an unknown budget.
func (bt *budgetTable) get(namespace, name string) *Budget { return bt.budgets[namespace][name] }

// set adds or replaces a budget, and returns it.
func (bt *budgetTable) set(object *policyv1.PodDisruptionBudget) *Budget {
	selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
	if err != nil {
		selector = labels.Everything() // unreadable: it may protect any pod
	}
	b := &Budget{Selector: selector, Allowed: object.Status.DisruptionsAllowed}
	for t := range bt.unconfirmed {
		if t.Pod.Namespace == object.Namespace && b.selects(t) {
			b.Unconfirmed++
		}
	}
	of := bt.budgets[object.Namespace]
	if of == nil {
		of = map[string]*Budget{}
		bt.budgets[object.Namespace] = of
	}
	of[object.Name] = b
	return b
}

func (bt *budgetTable) remove(namespace, name string) { delete(bt.budgets[namespace], name) }

// BudgetOf returns the name of the PodDisruptionBudget that selects a pod; empty if none does. Of several it is the first
// by name.
func BudgetOf(c *Cluster, t *api.TaskInfo) string {
	first := ""
	for name, b := range c.budgets.budgets[t.Pod.Namespace] {
		if b.selects(t) && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

func (bt *budgetTable) allow(u api.Unit) bool {
	if len(bt.budgets[u.Job.Namespace]) == 0 {
		return true
	}
	needs := map[string]int32{}
	for _, t := range u.Tasks {
		selected := 0
		for name, b := range bt.budgets[t.Pod.Namespace] {
			if b.selects(t) {
				selected++
				needs[name]++
			}
		}
		if selected > 1 {
			return false
		}
	}
	for name, n := range needs {
		if b := bt.budgets[u.Job.Namespace][name]; n+b.Unconfirmed > b.Allowed {
			return false
		}
	}
	return true
}

// countUnconfirmed lets the budgets of t count an eviction of it that the API server has not shown yet
// (sign +1), or no longer (sign −1).
func (bt *budgetTable) countUnconfirmed(t *api.TaskInfo, sign int32) {
	if t.Status != api.Releasing || t.Pod.DeletionTimestamp != nil {
		return
	}
	if sign > 0 {
		bt.unconfirmed[t] = struct{}{}
	} else {
		delete(bt.unconfirmed, t)
	}
	for _, b := range bt.budgets[t.Pod.Namespace] {
		if b.selects(t) {
			b.Unconfirmed += sign
		}
	}
}
