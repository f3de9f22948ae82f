package conf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

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

// Decoder reads arguments one by one, remembers which keys were asked for, and reports at the end
// what it could not use. A plugin reads all its arguments through one Decoder and then calls Done:
//
//	d := args.Decoder(path)
//	weight := d.Int("nodeaffinity.weight", 1, 0, 1000)
//	return d.Done()
//
// It is for one goroutine.
type Decoder struct {
	args  Arguments
	path  *field.Path
	asked []string
	errs  field.ErrorList
}

// Int returns the whole number given for the key, or def if the key is absent, is not a whole
// number in decimal notation, or lies outside of min..max.
func (d *Decoder) Int(key string, def, min, max int64) int64 {
	text, given := d.text(key)
	if !given {
		return def
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < min || n > max {
		d.refuse(key, text, fmt.Sprintf("must be a whole number from %d to %d", min, max))
		return def
	}
	return n
}

// Bool returns true or false as given for the key, or def if the key is absent or neither.
func (d *Decoder) Bool(key string, def bool) bool {
	text, given := d.text(key)
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
func (d *Decoder) String(key, def string, allowed ...string) string {
	text, given := d.text(key)
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
	for _, key := range slices.Sorted(maps.Keys(d.args)) {
		if !slices.Contains(d.asked, key) {
			errs = append(errs, field.Forbidden(d.path.Key(key), "no such argument; "+suggest(key, "arguments", d.asked)))
		}
	}
	return errs
}

// text looks an argument up and notes that it is known.
func (d *Decoder) text(key string) (text string, given bool) {
	d.asked = append(d.asked, key)
	text, given = d.args[key]
	return text, given
}

func (d *Decoder) refuse(key, text, why string) {
	d.errs = append(d.errs, field.Invalid(d.path.Key(key), text, why))
}
