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

// ArgumentCheck asks a Decoder for all arguments that a plugin knows.
type ArgumentCheck func(*Decoder)

// check reports every argument that a plugin of the catalog does not know or cannot use, nil if there is none. The
// path is that of the arguments in the file.
func (c Catalog) check(plugin string, args Arguments, path *field.Path) field.ErrorList {
	d := args.Decoder(path)
	c.ask(plugin, d)
	return d.Done()
}

// ArgumentsOf lists what a plugin of the catalog knows.
func (c Catalog) ArgumentsOf(plugin string) []Argument {
	d := Arguments(nil).Decoder(nil)
	c.ask(plugin, d)
	return d.Asked()
}

func (c Catalog) ask(plugin string, d *Decoder) {
	if check := c.Plugins[plugin]; check != nil {
		check(d)
	}
}

// actionNames returns all known actions, sorted.
func (c Catalog) actionNames() []string {
	return slices.Sorted(slices.Values(c.Actions))
}

// pluginNames returns all known plugins, sorted.
func (c Catalog) pluginNames() []string {
	return slices.Sorted(maps.Keys(c.Plugins))
}
