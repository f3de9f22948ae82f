// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// decoder fills Go values from YAML nodes by the json tags of their types. It is strict, as sigs.k8s.io/yaml is in its
// strict mode: it rejects unknown fields, duplicate keys, aliases and values of another type. Unlike that package it
// continues after an error, so that the report has all of them, and it records the line of every field.
//
// It supports what the configuration API consists of: structs, pointers, lists, maps from string to string, strings,
// booleans, integers and durations. A list type with UnmarshalText also accepts a string.
type decoder struct {
	report *report
}

// decode sets v, which is addressable, and reports whether the node has the type of v.
func (d *decoder) decode(n *yaml.Node, path *field.Path, v reflect.Value) bool {
	switch {
	case v.Kind() == reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		if !d.decode(n, path, target.Elem()) {
			return false
		}
		v.Set(target)
		return true
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[metav1.Duration]():
		return d.object(n, path, v)
	case v.Kind() == reflect.Map:
		return d.dictionary(n, path, v)
	case v.Kind() == reflect.Slice:
		return d.list(n, path, v)
	default:
		return d.scalar(n, path, v)
	}
}

// object decodes a struct. A field without a value counts as absent.
func (d *decoder) object(n *yaml.Node, path *field.Path, v reflect.Value) bool {
	known := map[string]reflect.Value{}
	addFields(known, v)
	return d.entries(n, path, path.Child, func(key string, value *yaml.Node, at *field.Path) {
		target, ok := known[key]
		switch {
		case !ok:
			d.report.reject(field.Forbidden(at, "no such field; "+suggestField(key, known)))
		case !isNull(value):
			d.decode(value, at, target)
		}
	})
}

// addFields adds the fields of a struct by their names in the file, those of inlined structs included.
func addFields(known map[string]reflect.Value, v reflect.Value) {
	for f, value := range v.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if options == "inline" {
			addFields(known, value)
		} else {
			known[name] = value
		}
	}
}

// suggestField also translates the switches of other schedulers, which disable instead of enable.
func suggestField(key string, known map[string]reflect.Value) string {
	var names []string
	for name := range known {
		names = append(names, name)
	}
	if point, old := strings.CutPrefix(key, "disable"); old && known["enable"+point].IsValid() {
		return fmt.Sprintf(`write "enable%s: false" to switch it off`, point)
	}
	return suggest(key, "fields", names)
}

// dictionary decodes a map from string to string.
func (d *decoder) dictionary(n *yaml.Node, path *field.Path, v reflect.Value) bool {
	v.Set(reflect.MakeMap(v.Type()))
	return d.entries(n, path, func(key string, _ ...string) *field.Path { return path.Key(key) },
		func(key string, value *yaml.Node, at *field.Path) {
			if isNull(value) {
				d.report.unusable(field.Required(at, "give a value or remove the key"))
				return
			}
			element := reflect.New(v.Type().Elem()).Elem()
			if d.decode(value, at, element) {
				v.SetMapIndex(reflect.ValueOf(key), element)
			}
		})
}

// entries calls visit for every key of a mapping, in the order of the file, with the path that child returns. It
// rejects duplicate keys and keys that are not strings.
func (d *decoder) entries(
	n *yaml.Node, path *field.Path, child func(string, ...string) *field.Path, visit func(string, *yaml.Node, *field.Path),
) bool {
	if n.Kind != yaml.MappingNode {
		d.report.unusable(field.Invalid(path, field.OmitValueType{}, "must be a mapping of keys to values, not "+kindOf(n)))
		return false
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.report.reject(field.Invalid(path, field.OmitValueType{}, "a key must be a plain string, not "+kindOf(key)))
			continue
		}
		at := child(key.Value)
		if seen[key.Value] {
			d.report.rejectAt(key.Line, field.Forbidden(at, "given twice"))
			continue
		}
		seen[key.Value] = true
		d.report.found(at, key.Line, value)
		visit(key.Value, value, at)
	}
	return true
}

// list decodes a slice. An element that has another type than the elements of the slice stays zero.
func (d *decoder) list(n *yaml.Node, path *field.Path, v reflect.Value) bool {
	wanted := "must be a list"
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.Kind == yaml.ScalarNode {
			return u.UnmarshalText([]byte(n.Value)) == nil
		}
		wanted = `must be a list, or a string with commas such as "a, b"`
	}
	if n.Kind != yaml.SequenceNode {
		d.report.unusable(field.Invalid(path, field.OmitValueType{}, wanted+", not "+kindOf(n)))
		return false
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.report.found(path.Index(i), item.Line, item)
		d.decode(item, path.Index(i), v.Index(i))
	}
	return true
}

// scalar decodes a string, a boolean or a duration. Every scalar is also a string. In this API, a duration of 0 stands
// for never.
func (d *decoder) scalar(n *yaml.Node, path *field.Path, v reflect.Value) bool {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		d.report.unusable(field.Invalid(path, field.OmitValueType{}, "must be a string, a number or a boolean, not "+kindOf(n)))
		return false
	}
	var err error
	var wanted string
	switch target := v.Addr().Interface().(type) {
	case *string:
		*target = n.Value
	case *bool:
		value, ok := parseBool(n.Value)
		if *target = value; !ok {
			d.report.unusable(field.Invalid(path, n.Value, notBool))
		}
		return ok
	case *int32:
		var value int64
		value, err = strconv.ParseInt(n.Value, 10, 32)
		*target = int32(value)
		wanted = "must be an integer"
	case *metav1.Duration:
		target.Duration, err = time.ParseDuration(strings.TrimSpace(n.Value))
		wanted = `must be a duration with its unit, such as "5m" or "90s", or 0 for never`
	default:
		panic(fmt.Sprintf("the decoder does not support the type %T of %s", target, path))
	}
	if err != nil {
		d.report.unusable(field.Invalid(path, n.Value, wanted))
	}
	return err == nil
}

// isNull reports whether a value was omitted or is null.
func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// kindOf names the type of a node, for messages.
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
