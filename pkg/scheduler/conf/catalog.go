package conf

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Catalog is what a configuration may name. The wiring builds it from the registered plugins and
// actions, third-party ones included.
type Catalog struct {
	// Actions that can be executed.
	Actions []string

	// Plugins by name, each with the check of its arguments. A nil check means that the plugin
	// takes no arguments.
	Plugins map[string]ArgumentCheck
}

// ArgumentCheck reports every argument that a plugin does not know or cannot use, nil if there is
// none. The path is that of the arguments in the file. It must neither keep nor change the map.
type ArgumentCheck func(Arguments, *field.Path) field.ErrorList

// check applies the argument check of a plugin of the catalog.
func (c Catalog) check(plugin string, args Arguments, path *field.Path) field.ErrorList {
	if check := c.Plugins[plugin]; check != nil {
		return check(args, path)
	}
	return args.Decoder(path).Done()
}

// actionNames returns all known actions, sorted.
func (c Catalog) actionNames() []string {
	return slices.Sorted(slices.Values(c.Actions))
}

// pluginNames returns all known plugins, sorted.
func (c Catalog) pluginNames() []string {
	return slices.Sorted(maps.Keys(c.Plugins))
}
