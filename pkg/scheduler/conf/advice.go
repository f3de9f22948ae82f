package conf

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// This file holds what a valid configuration can and can never do.

// Permitting lists the plugins that may vote for evictions at Preemptable or Reclaimable, in the
// order of the configuration. Of the plugins that come with the scheduler it is known which only
// ever protect pods there; all others are listed.
func (c *Configuration) Permitting(pt Point) []string {
	var names []string
	for _, tier := range c.Tiers {
		for _, p := range tier.Plugins {
			if p.Enabled(pt) && !onlyProtects(p.Name, pt) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

func onlyProtects(plugin string, pt Point) bool {
	switch plugin {
	case "conformance", "gang", "nodeorder", "predicates":
		return true
	case "drf", "priority":
		return pt != Preemptable
	case "proportion":
		return pt != Reclaimable
	default:
		return false
	}
}

// adviseOnActions warns about actions that can never act.
func (r *reader) adviseOnActions(named []action, c *Configuration) {
	for _, a := range named {
		switch {
		case a.name == "preempt" && len(c.Permitting(Preemptable)) == 0:
			r.warn(a.path, "preempt will never evict anything: no plugin permits it; add priority or drf with enablePreemptable on")
		case a.name == "reclaim" && len(c.Permitting(Reclaimable)) == 0:
			r.warn(a.path, "reclaim will never evict anything: no plugin permits it; add proportion with enableReclaimable on")
		}
	}
}

// adviseOnTiers warns about tiers in which nobody has a say.
func (r *reader) adviseOnTiers(c *Configuration) {
	path := field.NewPath("tiers")
	if len(c.Tiers) == 0 {
		r.warn(path, "no tiers: without plugins gangs are not kept whole and pods may land on nodes that cannot run them")
	}
	for i, tier := range c.Tiers {
		if len(tier.Plugins) == 0 {
			r.warn(path.Index(i), "a tier without plugins has no effect")
		}
	}
}
