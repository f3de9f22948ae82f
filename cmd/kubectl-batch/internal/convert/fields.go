// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// reader reads the fields of an object. It keeps the first error; after it, all fields read as unset.
type reader struct {
	content map[string]any
	objects map[string]*fields // by path, so that each is the same in all calls
	err     error
}

// fields are the fields of an object within the object. It remembers which of them were read.
type fields struct {
	r      *reader
	path   string
	values map[string]any
	read   map[string]bool
}

func newReader(content map[string]any) *reader {
	return &reader{content: content, objects: map[string]*fields{}}
}

// in returns the fields at the top level of an object, such as spec.
func (r *reader) in(name string) *fields {
	return (&fields{r: r, values: r.content, read: map[string]bool{}}).in(name)
}

// in returns the fields of an object; none if it is not set.
func (f *fields) in(name string) *fields {
	path := f.at(name)
	if known, ok := f.r.objects[path]; ok {
		return known
	}
	below := &fields{r: f.r, path: path, read: map[string]bool{}}
	below.values, _ = get[map[string]any](f, name, "an object")
	f.r.objects[path] = below
	return below
}

// at returns the path of a field.
func (f *fields) at(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

// set returns the paths of the fields that are set, in order.
func (f *fields) set() []string {
	var paths []string
	for _, name := range sorted(f.values) {
		if f.values[name] != nil {
			paths = append(paths, f.at(name))
		}
	}
	return paths
}

// unread returns the paths of the fields of the spec that are set, but were not read, in order.
func (r *reader) unread() []string {
	var paths []string
	for _, path := range sorted(r.objects) {
		f := r.objects[path]
		for _, name := range sorted(f.values) {
			if strings.HasPrefix(path, "spec") && f.values[name] != nil && !f.read[name] {
				paths = append(paths, f.at(name))
			}
		}
	}
	return paths
}

// has reports whether a field is set to something else than an empty value.
func (f *fields) has(name string) bool {
	f.read[name] = true
	switch value := f.values[name].(type) {
	case nil:
		return false
	case string:
		return value != ""
	case map[string]any:
		return len(value) > 0
	case []any:
		return len(value) > 0
	}
	return true
}

func (f *fields) fail(name, format string, args ...any) {
	if f.r.err == nil {
		f.r.err = fmt.Errorf("%s: %s", f.at(name), fmt.Sprintf(format, args...))
	}
}

// get returns the value of a field, and whether it is set.
func get[T any](f *fields, name, what string) (T, bool) {
	f.read[name] = true
	var none T
	raw, ok := f.values[name]
	if !ok || raw == nil || f.r.err != nil {
		return none, false
	}
	value, ok := raw.(T)
	if !ok {
		f.fail(name, "%s is not %s", quote(raw), what)
	}
	return value, ok
}

// quote prints a value for an error, shortened.
func quote(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprint(value)
}

func (f *fields) text(name string) string {
	value, _ := get[string](f, name, "a string")
	return value
}

// boolean returns unset if the field is not set.
func (f *fields) boolean(name string, unset bool) bool {
	if value, ok := get[bool](f, name, "true or false"); ok {
		return value
	}
	return unset
}

// number returns 0 if the field is not set.
func (f *fields) number(name string) (float64, bool) { return get[float64](f, name, "a number") }

// whole returns unset if the field is not set.
func (f *fields) whole(name string, unset, least, most int32) int32 {
	value, ok := f.number(name)
	switch {
	case !ok:
		return unset
	case value != math.Trunc(value):
		f.fail(name, "%s is not a whole number", decimal(value))
	case value < float64(least) || value > float64(most):
		f.fail(name, "%s is not in %d to %d", decimal(value), least, most)
	default:
		return int32(value)
	}
	return unset
}

// duration returns 0 if the field is not set.
func (f *fields) duration(name string) time.Duration {
	text := f.text(name)
	if text == "" {
		return 0
	}
	value, err := time.ParseDuration(text)
	if err != nil {
		f.fail(name, "%q is not a duration, such as 90s", text)
	}
	return value
}

// resources returns a list of resources. A Queue can hold only resources that pods can request; others are lost.
func (f *fields) resources(name string, q *queue) corev1.ResourceList {
	amounts := f.in(name)
	list := corev1.ResourceList{}
	for _, key := range sorted(amounts.values) {
		amount, ok := amounts.quantity(key)
		switch {
		case !ok:
		case !requestable(key):
			q.lose(amounts.at(key), "pods cannot request this resource")
		default:
			list[corev1.ResourceName(key)] = amount
		}
	}
	return list
}

// requestable reports whether the API server accepts the name of a resource in a Queue.
func requestable(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	}
	return strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) || strings.Contains(name, "/")
}

// quantity returns an amount, which is a string or a number.
func (f *fields) quantity(name string) (resource.Quantity, bool) {
	f.read[name] = true
	raw := f.values[name]
	if number, ok := raw.(float64); ok {
		raw = decimal(number)
	}
	text, ok := raw.(string)
	amount, err := resource.ParseQuantity(text)
	switch {
	case !ok || err != nil:
		f.fail(name, "%s is not a quantity, such as 4, 500m or 64Gi", quote(raw))
	case amount.Sign() < 0:
		f.fail(name, "%s is negative", text)
	default:
		return amount, true
	}
	return resource.Quantity{}, false
}

func decimal(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
