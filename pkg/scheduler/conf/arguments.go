// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Arguments are the arguments of one plugin, as v1alpha1.Arguments.
type Arguments map[string]string

// Decoder returns a reader of typed arguments. The path is that of the arguments in the file; nil: there is no file.
func (a Arguments) Decoder(path *field.Path) *Decoder {
	return &Decoder{args: a, path: path}
}

// Decoder reads arguments one by one, records which keys are known, and reports the invalid and the unknown ones at the
// end. A plugin reads all its arguments through one Decoder and describes each of them for the reference
// (docs/configuration.md):
//
//	weight := d.Int("nodeaffinity.weight", 1, 0, 100, "prefers nodes by preferred node affinity")
//
// It is for one goroutine.
type Decoder struct {
	args  Arguments
	path  *field.Path
	known []Argument
	errs  field.ErrorList
}

// Argument describes one argument of a plugin.
type Argument struct {
	Key     string
	Default string
	Values  string // the accepted values, in words
	About   string // the meaning
}

// Int returns the value of the key, or def if the key is absent, or if its value is not a whole number in decimal
// notation or not in min..max.
func (d *Decoder) Int(key string, def, min, max int64, about string) int64 {
	values := fmt.Sprintf("a whole number from %d to %d", min, max)
	text, given := d.text(Argument{key, strconv.FormatInt(def, 10), values, about})
	if !given {
		return def
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < min || n > max {
		d.reject(key, text, "must be "+values)
		return def
	}
	return n
}

// Bool returns the value of the key, or def if the key is absent or its value is not a boolean.
func (d *Decoder) Bool(key string, def bool, about string) bool {
	text, given := d.text(Argument{key, strconv.FormatBool(def), "true or false", about})
	if !given {
		return def
	}
	b, ok := parseBool(text)
	if !ok {
		d.reject(key, text, notBool)
		return def
	}
	return b
}

// notBool is what is wrong with a text that parseBool does not accept.
const notBool = "must be true or false"

// parseBool is the one rule for booleans, of switches and of arguments: the spellings of YAML 1.2, with or without
// quotes. What else some parsers accept (yes, no, on, off, 1, 0) is not accepted.
func parseBool(text string) (value, ok bool) {
	switch text {
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	}
	return false, false
}

// String returns the value of the key, or def if the key is absent. If values are listed as allowed, it also returns
// def if the value is not one of them.
func (d *Decoder) String(key, def, about string, allowed ...string) string {
	values := "any string"
	if len(allowed) > 0 {
		values = strings.Join(allowed, ", ")
	}
	text, given := d.text(Argument{key, def, values, about})
	if !given {
		return def
	}
	if len(allowed) > 0 && !slices.Contains(allowed, text) {
		d.reject(key, text, "no such value; "+suggest(text, "values", allowed))
		return def
	}
	return text
}

// Parse passes the value of the key to parse, if the key is present and its value is not def, and reports the error that it
// returns. The values are the accepted ones, in words.
func (d *Decoder) Parse(key, def, values, about string, parse func(text string) error) {
	text, given := d.text(Argument{key, def, values, about})
	if !given || text == def {
		return
	}
	if err := parse(text); err != nil {
		d.reject(key, text, err.Error())
	}
}

// Done returns the errors: first those of invalid arguments, in the order in which they were read, then those of
// unknown arguments, by key.
func (d *Decoder) Done() field.ErrorList {
	errs := slices.Clone(d.errs)
	var known []string
	for _, a := range d.known {
		known = append(known, a.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(d.args)) {
		if !slices.Contains(known, key) {
			errs = append(errs, field.Forbidden(d.path.Key(key), "no such argument; "+suggest(key, "arguments", known)))
		}
	}
	return errs
}

// Known returns the arguments that were read, in that order.
func (d *Decoder) Known() []Argument { return slices.Clone(d.known) }

// text looks an argument up and records that it is known.
func (d *Decoder) text(a Argument) (text string, given bool) {
	d.known = append(d.known, a)
	text, given = d.args[a.Key]
	return text, given
}

func (d *Decoder) reject(key, text, why string) {
	d.errs = append(d.errs, field.Invalid(d.path.Key(key), text, why))
}
