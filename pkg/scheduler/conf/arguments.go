package conf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Arguments of one plugin as the file spells them. Numbers and booleans of the file are kept as
// their text, so that `weight: 2` and `weight: "2"` are the same.
type Arguments map[string]string

// Decoder returns a reader of typed arguments. The path is that of the arguments in the file and
// may be nil where no file is involved.
func (a Arguments) Decoder(path *field.Path) *Decoder {
	return &Decoder{args: a, path: path}
}

// Decoder reads arguments one by one, remembers which were asked for, and reports at the end what it could not
// use. A plugin reads all its arguments through one Decoder, and says of each what it means, for the reference
// (docs/configuration.md):
//
//	weight := d.Int("nodeaffinity.weight", 1, 0, 100, "prefers nodes by preferred node affinity")
//
// It is for one goroutine.
type Decoder struct {
	args  Arguments
	path  *field.Path
	asked []Argument
	errs  field.ErrorList
}

// Argument is what a plugin says about one of its arguments.
type Argument struct {
	Key     string
	Default string
	Values  string // those that are accepted, in words
	About   string // what it means
}

// Int returns the whole number given for the key, or def if the key is absent, is not a whole
// number in decimal notation, or lies outside of min..max.
func (d *Decoder) Int(key string, def, min, max int64, about string) int64 {
	values := fmt.Sprintf("a whole number from %d to %d", min, max)
	text, given := d.text(Argument{key, strconv.FormatInt(def, 10), values, about})
	if !given {
		return def
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < min || n > max {
		d.refuse(key, text, "must be "+values)
		return def
	}
	return n
}

// Bool returns true or false as given for the key, or def if the key is absent or neither.
func (d *Decoder) Bool(key string, def bool, about string) bool {
	text, given := d.text(Argument{key, strconv.FormatBool(def), "true or false", about})
	if !given {
		return def
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		d.refuse(key, text, "must be true or false")
		return def
	}
	return b
}

// String returns the text given for the key, or def if the key is absent. If any values are listed
// as allowed, def is also returned in place of a text that is not one of them.
func (d *Decoder) String(key, def, about string, allowed ...string) string {
	values := "any text"
	if len(allowed) > 0 {
		values = strings.Join(allowed, ", ")
	}
	text, given := d.text(Argument{key, def, values, about})
	if !given {
		return def
	}
	if len(allowed) > 0 && !slices.Contains(allowed, text) {
		d.refuse(key, text, "no such value; "+suggest(text, "values", allowed))
		return def
	}
	return text
}

// Done returns what was wrong: first the arguments that could not be used, in the order in which
// they were asked for, then those that nobody asked for, by name. Nil means that all is well.
func (d *Decoder) Done() field.ErrorList {
	errs := slices.Clone(d.errs)
	var known []string
	for _, a := range d.asked {
		known = append(known, a.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(d.args)) {
		if !slices.Contains(known, key) {
			errs = append(errs, field.Forbidden(d.path.Key(key), "no such argument; "+suggest(key, "arguments", known)))
		}
	}
	return errs
}

// Asked returns the arguments that were asked for, in that order.
func (d *Decoder) Asked() []Argument { return slices.Clone(d.asked) }

// text looks an argument up and notes that it is known.
func (d *Decoder) text(a Argument) (text string, given bool) {
	d.asked = append(d.asked, a)
	text, given = d.args[a.Key]
	return text, given
}

func (d *Decoder) refuse(key, text, why string) {
	d.errs = append(d.errs, field.Invalid(d.path.Key(key), text, why))
}
