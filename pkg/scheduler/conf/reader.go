package conf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reader walks the nodes of one document, builds the configuration, and collects what is wrong
// instead of stopping at it.
type reader struct {
	source   string
	catalog  Catalog
	top      int                    // the line at which the document starts
	lines    map[string]int         // where every field and list element stands, by its path
	pluginAt map[string]*field.Path // where each plugin was named first
	problems []Problem
	warnings []Warning
}

func newReader(source string, catalog Catalog, top int) *reader {
	return &reader{
		source:   source,
		catalog:  catalog,
		top:      top,
		lines:    map[string]int{},
		pluginAt: map[string]*field.Path{},
	}
}

// configuration reads the whole document. The result is good only if there are no problems.
func (r *reader) configuration(root *yaml.Node) *Configuration {
	given := r.fields(root, nil, "apiVersion", "kind", "actions", "tiers", "starvationAfter")
	r.constant(given["apiVersion"], field.NewPath("apiVersion"), APIVersion)
	r.constant(given["kind"], field.NewPath("kind"), Kind)

	c := &Configuration{}
	named := r.actionNames(given["actions"], field.NewPath("actions"))
	c.Actions = r.actions(named)
	c.Tiers = r.tiers(given["tiers"], field.NewPath("tiers"))
	c.StarvationAfter = r.duration(given["starvationAfter"], field.NewPath("starvationAfter"), DefaultStarvationAfter)

	r.adviseOnActions(named, c)
	r.adviseOnTiers(c)
	return c
}

// constant checks a field that may be absent but has only one good value.
func (r *reader) constant(n *yaml.Node, path *field.Path, want string) {
	if n == nil {
		return
	}
	if text, ok := r.text(n, path); ok && text != want {
		r.refuse(field.Invalid(path, text, fmt.Sprintf("must be %q or absent", want)))
	}
}

// duration reads a length of time that is not negative; def if the file does not have it.
func (r *reader) duration(n *yaml.Node, path *field.Path, def time.Duration) time.Duration {
	if n == nil {
		return def
	}
	text, ok := r.text(n, path)
	if !ok {
		return def
	}
	d, err := time.ParseDuration(strings.TrimSpace(text))
	switch {
	case err != nil:
		r.refuse(field.Invalid(path, text, `must be a duration with its unit, such as "5m" or "90s", or 0 for never`))
	case d < 0:
		r.refuse(field.Invalid(path, text, "must not be negative; 0 stands for never"))
	}
	return d
}

// action is an action as the file names it.
type action struct {
	name string
	path *field.Path
}

// actionNames reads the actions, which are either one text with commas or a list.
func (r *reader) actionNames(n *yaml.Node, path *field.Path) []action {
	var named []action
	switch {
	case n == nil, n.Kind == yaml.ScalarNode && strings.TrimSpace(n.Value) == "", n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		r.refuse(field.Required(path, `name at least one action, such as "allocate, backfill"`))
	case n.Kind == yaml.ScalarNode:
		for name := range strings.SplitSeq(n.Value, ",") {
			named = append(named, action{strings.TrimSpace(name), path})
		}
	case n.Kind == yaml.SequenceNode:
		for i, item := range r.items(n, path) {
			if name, ok := r.text(item, path.Index(i)); ok {
				named = append(named, action{strings.TrimSpace(name), path.Index(i)})
			}
		}
	default:
		r.refuse(field.Invalid(path, field.OmitValueType{}, `must be a text such as "allocate, backfill" or a list, not `+kindOf(n)))
	}
	return named
}

// actions returns those of the named actions that can be executed.
func (r *reader) actions(named []action) []string {
	var built []string
	seen := map[string]bool{}
	for _, a := range named {
		switch {
		case a.name == "":
			r.refuse(field.Required(a.path, "an action without a name; is there a comma too many?"))
		case seen[a.name]:
			r.refuse(field.Duplicate(a.path, a.name))
		case slices.Contains(r.catalog.Actions, a.name):
			built = append(built, a.name)
		default:
			r.refuse(field.Invalid(a.path, a.name, "no such action; "+suggest(a.name, "actions", r.catalog.actionNames())))
		}
		seen[a.name] = true
	}
	return built
}

func (r *reader) tiers(n *yaml.Node, path *field.Path) []Tier {
	var tiers []Tier
	for i, item := range r.items(n, path) {
		tiers = append(tiers, Tier{Plugins: r.plugins(item, path.Index(i))})
	}
	return tiers
}

// plugins reads the plugins of one tier.
func (r *reader) plugins(tier *yaml.Node, path *field.Path) []Plugin {
	var plugins []Plugin
	given := r.fields(tier, path, "plugins")
	path = path.Child("plugins")
	for i, item := range r.items(given["plugins"], path) {
		plugins = append(plugins, r.plugin(item, path.Index(i)))
	}
	return plugins
}

func (r *reader) plugin(n *yaml.Node, path *field.Path) Plugin {
	known := []string{"name", "arguments"}
	for _, pt := range Points() {
		known = append(known, pt.Switch())
	}
	given := r.fields(n, path, known...)

	var p Plugin
	for _, pt := range Points() {
		if !r.enabled(given[pt.Switch()], path.Child(pt.Switch())) {
			p.Disabled = append(p.Disabled, pt)
		}
	}
	p.Arguments = r.arguments(given["arguments"], path.Child("arguments"))
	if given["name"] == nil {
		if n.Kind == yaml.MappingNode {
			r.refuse(field.Required(path.Child("name"), "every plugin needs its name"))
		}
		return p
	}
	name, ok := r.text(given["name"], path.Child("name"))
	if ok && r.knownPlugin(name, path.Child("name")) {
		r.refuse(r.catalog.check(name, p.Arguments, path.Child("arguments"))...)
	}
	p.Name = name
	return p
}

// knownPlugin tells whether the catalog has the plugin, and refuses one that was named before.
func (r *reader) knownPlugin(name string, path *field.Path) bool {
	if _, known := r.catalog.Plugins[name]; !known {
		r.refuse(field.Invalid(path, name, "no such plugin; "+suggest(name, "plugins", r.catalog.pluginNames())))
		return false
	}
	if first, again := r.pluginAt[name]; again {
		err := field.Duplicate(path, name)
		err.Detail = "named before at " + first.String()
		r.refuse(err)
		return true
	}
	r.pluginAt[name] = path
	return true
}

// enabled reads the switch of an extension point; one that is absent is on.
func (r *reader) enabled(n *yaml.Node, path *field.Path) bool {
	if n == nil {
		return true
	}
	on := true
	if text, ok := r.text(n, path); ok && n.Decode(&on) != nil {
		r.refuse(field.Invalid(path, text, "must be true or false, without quotes"))
	}
	return on
}

// arguments reads scalars of any kind as their text.
func (r *reader) arguments(n *yaml.Node, path *field.Path) Arguments {
	if n == nil {
		return nil
	}
	args := Arguments{}
	for _, e := range r.entries(n, path, path.Key) {
		if isNull(e.value) {
			r.refuse(field.Required(e.path, "give a value or remove the argument"))
		} else if text, ok := r.text(e.value, e.path); ok {
			args[e.key] = text
		}
	}
	return args
}

// sorted returns the problems in the order of their lines; those of one line stay as found.
func (r *reader) sorted() []Problem {
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return r.problems
}
