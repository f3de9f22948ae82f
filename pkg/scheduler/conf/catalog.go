// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
)

// Catalog is what a configuration may name. The framework builds it from the registered plugins and actions, those of
// third parties included.
type Catalog struct {
	// Actions that can be executed.
	Actions []string

	// Plugins by name.
	Plugins map[string]PluginInfo

	// Advice is what to do about actions and plugins of other schedulers, which a migrated file may name.
	Advice Advice
}

// Advice says, by name, what replaces the actions and plugins of another scheduler, or that nothing does.
type Advice struct{ Actions, Plugins map[string]string }

// PluginInfo is what a plugin declares about itself.
type PluginInfo struct {
	// Arguments reads all arguments that the plugin knows; nil: it takes none.
	Arguments ArgumentCheck

	// NeverPermits lists those of the extension points Preemptable and Reclaimable at which the plugin never votes for
	// an eviction, whether it votes against evictions there or not at all.
	NeverPermits []Point

	// Without is what happens if no tier names the plugin, for a warning; empty: nothing that needs one.
	Without string
}

// ArgumentCheck reads all arguments that a plugin knows from a Decoder.
type ArgumentCheck func(*Decoder)

// Permitting returns the enabled plugins of a configuration that may vote for evictions at Preemptable or Reclaimable,
// in the order of the configuration.
func (c Catalog) Permitting(configuration *Configuration, pt Point) []string {
	var names []string
	for _, tier := range configuration.Tiers {
		for _, p := range tier.Plugins {
			if p.Enabled(pt) && c.mayPermit(p.Name, pt) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

func (c Catalog) mayPermit(plugin string, pt Point) bool {
	return !slices.Contains(c.Plugins[plugin].NeverPermits, pt)
}

// ArgumentsOf returns the arguments that a plugin of the catalog knows.
func (c Catalog) ArgumentsOf(plugin string) []Argument {
	d := Arguments(nil).Decoder(nil)
	c.read(plugin, d)
	return d.Known()
}

func (c Catalog) read(plugin string, d *Decoder) {
	if check := c.Plugins[plugin].Arguments; check != nil {
		check(d)
	}
}

// validate reports the actions, plugins and arguments that the catalog does not have. What the object itself shows,
// such as a missing or a duplicate name, is left to package validation.
func (c Catalog) validate(object *v1alpha1.SchedulerConfiguration) field.ErrorList {
	var errs field.ErrorList
	for i, name := range object.Actions {
		if name != "" && !slices.Contains(object.Actions[:i], name) && !slices.Contains(c.Actions, name) {
			errs = append(errs, field.Invalid(field.NewPath("actions").Index(i), name, "no such action; "+advise(name, "actions", c.Advice.Actions, c.Actions)))
		}
	}
	for i, tier := range object.Tiers {
		for j, plugin := range tier.Plugins {
			errs = append(errs, c.validatePlugin(&plugin, field.NewPath("tiers").Index(i).Child("plugins").Index(j))...)
		}
	}
	return errs
}

func (c Catalog) validatePlugin(plugin *v1alpha1.Plugin, path *field.Path) field.ErrorList {
	if plugin.Name == "" {
		return nil
	}
	if _, known := c.Plugins[plugin.Name]; !known {
		names := slices.Collect(maps.Keys(c.Plugins))
		return field.ErrorList{field.Invalid(path.Child("name"), plugin.Name, "no such plugin; "+advise(plugin.Name, "plugins", c.Advice.Plugins, names))}
	}
	d := Arguments(plugin.Arguments).Decoder(path.Child("arguments"))
	c.read(plugin.Name, d)
	return d.Done()
}

// advise returns the advice about a name that is not known, else what suggest returns.
func advise(name, kind string, advice map[string]string, known []string) string {
	if text, found := advice[name]; found {
		return text
	}
	return suggest(name, kind, known)
}
