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
}

// SetBudget adds or updates a PodDisruptionBudget.
func (c *Cluster) SetBudget(b *policyv1.PodDisruptionBudget) {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Everything() // unreadable: nobody knows whom it protects
	}
	of := c.budgets[b.Namespace]
	if of == nil {
		of = map[string]budget{}
		c.budgets[b.Namespace] = of
	}
	of[b.Name] = budget{selector: selector, allowed: b.Status.DisruptionsAllowed}
	c.generation++
}

// DeleteBudget forgets a PodDisruptionBudget.
func (c *Cluster) DeleteBudget(namespace, name string) {
	if of := c.budgets[namespace]; of != nil {
		delete(of, name)
		c.generation++
	}
}

// BudgetsAllow tells whether evicting the unit stays within all PodDisruptionBudgets, those
// evictions counted that the API server has not shown yet. A pod that two budgets select is
// never evicted: the API server would refuse it.
func (c *Cluster) BudgetsAllow(u Unit) bool {
	needs := map[string]int32{}
	for _, t := range u.Tasks {
		of := c.budgets[t.Pod.Namespace]
		selected := 0
		for name, b := range of {
			if b.selector.Matches(labels.Set(t.Pod.Labels)) {
				selected++
				needs[name]++
			}
		}
		if selected > 1 {
			return false
		}
	}
	for name, n := range needs {
		b := c.budgets[u.Job.Namespace][name]
		if n+c.unseen(u.Job.Namespace, b) > b.allowed {
			return false
		}
	}
	return true
}

// unseen counts pods under a budget that are to be evicted and whose deletion is not shown yet: the
// budget's status does not count them.
func (c *Cluster) unseen(namespace string, b budget) int32 {
	n := int32(0)
	for _, t := range c.Tasks {
		if t.Status == Releasing && t.Pod.DeletionTimestamp == nil && t.Pod.Namespace == namespace && b.selector.Matches(labels.Set(t.Pod.Labels)) {
			n++
		}
	}
	return n
}
