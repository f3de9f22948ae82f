// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
)

// adviseOnActions warns about actions that never evict anything, because no plugin votes for evictions.
func (r *report) adviseOnActions(object *v1alpha1.SchedulerConfiguration, c *Configuration, catalog Catalog) {
	point := map[string]Point{"preempt": Preemptable, "reclaim": Reclaimable}
	for i, name := range object.Actions {
		pt, evicts := point[name]
		if !evicts || len(catalog.Permitting(c, pt)) > 0 {
			continue
		}
		help := "no known plugin does"
		if able := catalog.able(pt); len(able) > 0 {
			help = fmt.Sprintf("add %s with enable%s on", strings.Join(able, " or "), pt)
		}
		r.warn(field.NewPath("actions").Index(i), fmt.Sprintf("%s will never evict anything: no plugin permits it; %s", name, help))
	}
}

// able returns the plugins that may vote for evictions, by name.
func (c Catalog) able(pt Point) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Plugins)), func(name string) bool { return !c.mayPermit(name, pt) })
}

// adviseOnTiers warns about tiers that have no effect, and about plugins without which a policy is probably a mistake.
func (r *report) adviseOnTiers(c *Configuration, catalog Catalog) {
	path := field.NewPath("tiers")
	if len(c.Tiers) == 0 {
		r.warn(path, "no tiers: no plugin is active")
	}
	for _, name := range slices.Sorted(maps.Keys(catalog.Plugins)) {
		if without := catalog.Plugins[name].Without; without != "" && !c.names(name) {
			r.warn(path, fmt.Sprintf("plugin %s is missing: %s", name, without))
		}
	}
	for i, tier := range c.Tiers {
		if len(tier.Plugins) == 0 {
			r.warn(path.Index(i), "a tier without plugins has no effect")
		}
	}
}

// names reports whether a tier names the plugin.
func (c *Configuration) names(plugin string) bool {
	return slices.ContainsFunc(c.Tiers, func(t Tier) bool {
		return slices.ContainsFunc(t.Plugins, func(p Plugin) bool { return p.Name == plugin })
	})
}
