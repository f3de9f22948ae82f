package api

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// budget is a PodDisruptionBudget.
type budget struct {
	selector labels.Selector
	allowed  int32 // status.disruptionsAllowed
	// unconfirmed counts its pods that are to be evicted and whose deletion the API server has not
	// shown yet: allowed does not know of them.
	unconfirmed int32
}

// SetBudget adds or updates a PodDisruptionBudget.
func (c *Cluster) SetBudget(b *policyv1.PodDisruptionBudget) {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Everything() // unreadable: nobody knows whom it protects
	}
	of := c.budgets[b.Namespace]
	if of == nil {
		of = map[string]*budget{}
		c.budgets[b.Namespace] = of
	}
	now := &budget{selector: selector, allowed: b.Status.DisruptionsAllowed}
	for t := range c.unconfirmed {
		if t.Pod.Namespace == b.Namespace && now.selects(t) {
			now.unconfirmed++
		}
	}
	c.allowEvictions(b.Namespace, of[b.Name])
	c.allowEvictions(b.Namespace, now)
	of[b.Name] = now
	c.generation++
}

// allowEvictions lets pods of a budget be evicted again that it has kept from it.
func (c *Cluster) allowEvictions(namespace string, b *budget) {
	for t := range c.evictionBlocked {
		if b != nil && t.Pod.Namespace == namespace && b.selects(t) {
			c.SetEvictionBlocked(t.ID, false)
		}
	}
}

// DeleteBudget forgets a PodDisruptionBudget.
func (c *Cluster) DeleteBudget(namespace, name string) {
	if of := c.budgets[namespace]; of != nil {
		c.allowEvictions(namespace, of[name])
		delete(of, name)
		c.generation++
	}
}

// BudgetsAllow tells whether evicting the unit stays within all PodDisruptionBudgets, those
// evictions counted that the API server has not shown yet. A pod that two budgets select is
// never evicted: the API server would refuse it.
func (c *Cluster) BudgetsAllow(u Unit) bool {
	if len(c.budgets[u.Job.Namespace]) == 0 {
		return true
	}
	needs := map[string]int32{}
	for _, t := range u.Tasks {
		of := c.budgets[t.Pod.Namespace]
		selected := 0
		for name, b := range of {
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
		if b := c.budgets[u.Job.Namespace][name]; n+b.unconfirmed > b.allowed {
			return false
		}
	}
	return true
}

func (b *budget) selects(t *TaskInfo) bool { return b.selector.Matches(labels.Set(t.Pod.Labels)) }

// countUnconfirmed lets the budgets of t count an eviction of it that the API server has not shown yet
// (sign +1), or no longer (sign −1).
func (c *Cluster) countUnconfirmed(t *TaskInfo, sign int32) {
	if t.Status != Releasing || t.Pod.DeletionTimestamp != nil {
		return
	}
	if sign > 0 {
		c.unconfirmed[t] = struct{}{}
	} else {
		delete(c.unconfirmed, t)
	}
	for _, b := range c.budgets[t.Pod.Namespace] {
		if b.selects(t) {
			b.unconfirmed += sign
		}
	}
}
