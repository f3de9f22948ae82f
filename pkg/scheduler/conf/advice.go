package conf

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// This file holds the warnings: what a valid configuration can never do.

// evictor is an action that evicts only what some plugin permits.
type evictor struct {
	action  string
	point   Point    // at which victims are voted on
	permits []string // those of our own plugins that ever vote for an eviction there
}

func evictors() []evictor {
	return []evictor{
		{"preempt", Preemptable, []string{"priority", "drf"}},
		{"reclaim", Reclaimable, []string{"proportion"}},
	}
}

// ownPlugins are those whose votes are known here. Any other may permit evictions.
func ownPlugins() []string {
	return []string{"conformance", "drf", "gang", "nodeorder", "predicates", "priority", "proportion"}
}

// adviseOnActions warns about actions that can never act, and when none is left to act.
func (r *reader) adviseOnActions(named []action, c *Configuration) {
	for _, a := range named {
		for _, e := range evictors() {
			if a.name == e.action && !e.canAct(c) {
				r.warn(a.path, fmt.Sprintf("%s will never evict anything: no plugin permits it; add %s with %s on",
					e.action, strings.Join(e.permits, " or "), e.point.switchName()))
			}
		}
	}
	if len(named) > 0 && len(c.Actions) == 0 && len(r.problems) == 0 {
		r.warn(field.NewPath("actions"), "none of the actions is built yet: nothing will be scheduled")
	}
}

// canAct tells whether some plugin may vote for an eviction.
func (e evictor) canAct(c *Configuration) bool {
	for _, tier := range c.Tiers {
		for _, p := range tier.Plugins {
			votes := slices.Contains(e.permits, p.Name) || !slices.Contains(ownPlugins(), p.Name)
			if votes && p.Enabled(e.point) {
				return true
			}
		}
	}
	return false
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
