package conf

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// This file holds what the reader needs to know about YAML nodes of any meaning.

// entry is one key of a mapping and what it stands for.
type entry struct {
	key   string
	path  *field.Path
	value *yaml.Node
}

// entries returns what a mapping holds, in its order. Keys given again and keys that are not a
// plain text are refused and left out. The path of each entry is made from its key by at.
func (r *reader) entries(n *yaml.Node, path *field.Path, at func(key string) *field.Path) []entry {
	if n.Kind != yaml.MappingNode {
		r.refuse(field.Invalid(path, field.OmitValueType{}, "must be a mapping of keys to values, not "+kindOf(n)))
		return nil
	}
	var entries []entry
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			r.refuse(field.Invalid(path, field.OmitValueType{}, "a key must be a plain text, not "+kindOf(key)))
			continue
		}
		e := entry{key.Value, at(key.Value), value}
		r.lines[e.path.String()] = key.Line
		if seen[e.key] {
			r.refuse(field.Forbidden(e.path, "given twice"))
			continue
		}
		seen[e.key] = true
		entries = append(entries, e)
	}
	return entries
}

// fields returns the known fields of a mapping by their names. A field without a value counts as
// absent; an unknown one is refused.
func (r *reader) fields(n *yaml.Node, path *field.Path, known ...string) map[string]*yaml.Node {
	index := map[string]bool{}
	for _, name := range known {
		index[name] = true
	}
	given := map[string]*yaml.Node{}
	for _, e := range r.entries(n, path, func(key string) *field.Path { return path.Child(key) }) {
		point, old := strings.CutPrefix(e.key, "disable")
		switch {
		case index[e.key] && isNull(e.value):
		case index[e.key]:
			given[e.key] = e.value
		case old && index["enable"+point]:
			r.refuse(field.Forbidden(e.path, fmt.Sprintf(`no such field; write "enable%s: false" to switch it off`, point)))
		default:
			r.refuse(field.Forbidden(e.path, "no such field; "+suggest(e.key, "fields", known)))
		}
	}
	return given
}

// items returns the elements of a list; none if the node is absent.
func (r *reader) items(n *yaml.Node, path *field.Path) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.refuse(field.Invalid(path, field.OmitValueType{}, "must be a list, not "+kindOf(n)))
		return nil
	}
	for i, item := range n.Content {
		r.lines[path.Index(i).String()] = item.Line
	}
	return n.Content
}

// text returns the text of a scalar of any type.
func (r *reader) text(n *yaml.Node, path *field.Path) (string, bool) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		r.refuse(field.Invalid(path, field.OmitValueType{}, "must be a text, a number or a boolean, not "+kindOf(n)))
		return "", false
	}
	return n.Value, true
}

// isNull tells whether a value was left out or is null.
func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// kindOf names what a node is, for messages that say what it should be instead.
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "a YAML alias; write the value out"
	case isNull(n):
		return "null"
	default:
		return fmt.Sprintf("the single value %q", n.Value)
	}
}

// refuse notes problems.
func (r *reader) refuse(errs ...*field.Error) {
	for _, err := range errs {
		path := err.Field
		if path == noPath {
			path = ""
		}
		r.problems = append(r.problems, Problem{Line: r.line(path), Path: path, Text: err.ErrorBody()})
	}
}

func (r *reader) warn(path *field.Path, text string) {
	r.warnings = append(r.warnings, Warning{Source: r.source, Line: r.line(path.String()), Path: path.String(), Text: text})
}

// line returns where a field stands or, if the file does not have it, where the innermost field
// around it stands.
func (r *reader) line(path string) int {
	for path != "" {
		if line, found := r.lines[path]; found {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return r.top
}

// noPath is how the field package writes the path of the document itself.
const noPath = "<nil>"
