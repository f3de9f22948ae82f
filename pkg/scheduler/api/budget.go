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
	// unseen counts its pods that are to be evicted and whose deletion the API server has not
	// shown yet: allowed does not know of them.
	unseen int32
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
	for t := range c.unseen {
		if t.Pod.Namespace == b.Namespace && now.protects(t) {
			now.unseen++
		}
	}
	c.unprotect(b.Namespace, of[b.Name])
	c.unprotect(b.Namespace, now)
	of[b.Name] = now
	c.generation++
}

// unprotect lets pods of a budget be evicted again that it has kept from it.
func (c *Cluster) unprotect(namespace string, b *budget) {
	for t := range c.protected {
		if b != nil && t.Pod.Namespace == namespace && b.protects(t) {
			c.Protect(t.ID, false)
		}
	}
}

// DeleteBudget forgets a PodDisruptionBudget.
func (c *Cluster) DeleteBudget(namespace, name string) {
	if of := c.budgets[namespace]; of != nil {
		c.unprotect(namespace, of[name])
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
			if b.protects(t) {
				selected++
				needs[name]++
			}
		}
		if selected > 1 {
			return false
		}
	}
	for name, n := range needs {
		if b := c.budgets[u.Job.Namespace][name]; n+b.unseen > b.allowed {
			return false
		}
	}
	return true
}

func (b *budget) protects(t *TaskInfo) bool { return b.selector.Matches(labels.Set(t.Pod.Labels)) }

// foresee lets the budgets of t count an eviction of it that the API server has not shown yet
// (sign +1), or no longer (sign −1).
func (c *Cluster) foresee(t *TaskInfo, sign int32) {
	if t.Status != Releasing || t.Pod.DeletionTimestamp != nil {
		return
	}
	if sign > 0 {
		c.unseen[t] = struct{}{}
	} else {
		delete(c.unseen, t)
	}
	for _, b := range c.budgets[t.Pod.Namespace] {
		if b.protects(t) {
			b.unseen += sign
		}
	}
}
