// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"regexp"
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// references are the attributes and capacities of a device that an expression can read.
//
// To evaluate an expression takes microseconds, and a cluster has tens of thousands of devices. Most of them differ in
// attributes that the expression does not read, such as the UUID. For example,
//
//	device.attributes["gpu.example.com"].model == "A"
//
// is evaluated once for each model. Only expressions that name all that they read are understood: each use of device is one
// of those below, or device.driver, or device.allowMultipleAllocations. Others are evaluated for each device.
//
//	device.attributes["domain"].name   and the same with capacity
//	"name" in device.attributes["domain"]
type references struct{ attributes, capacities []reference }

type reference struct{ domain, name string }

const (
	literal = `(?:"([^"\\]*)"|'([^'\\]*)')`
	source  = `\bdevice\.(attributes|capacity)\[` + literal + `\]`
)

var (
	selected   = regexp.MustCompile(source + `\.([A-Za-z_][A-Za-z0-9_]*)\b\s*(\(?)`)
	contained  = regexp.MustCompile(literal + `\s+in\s+` + source)
	plainField = regexp.MustCompile(`\bdevice\.(driver|allowMultipleAllocations)\b`)
	anyDevice  = regexp.MustCompile(`\bdevice\b`)
)

// referencesOf returns what an expression can read; false if it is not understood.
func referencesOf(expression string) (references, bool) {
	var r references
	understood := true
	rest := selected.ReplaceAllStringFunc(expression, func(text string) string {
		m := selected.FindStringSubmatch(text)
		r.add(m[1], m[2]+m[3], m[4])
		understood = understood && m[5] == "" // else it calls a function of the map
		return " "
	})
	rest = contained.ReplaceAllStringFunc(rest, func(text string) string {
		m := contained.FindStringSubmatch(text)
		r.add(m[3], m[4]+m[5], m[1]+m[2])
		return " "
	})
	rest = plainField.ReplaceAllString(rest, " ")
	return r, understood && !anyDevice.MatchString(rest)
}

func (r *references) add(kind, domain, name string) {
	list := &r.attributes
	if kind == "capacity" {
		list = &r.capacities
	}
	if ref := (reference{domain, name}); !slices.Contains(*list, ref) {
		*list = append(*list, ref)
	}
}

// names returns the names that can stand for a reference to a device of a driver.
func (r reference) names(driver string) []resourcev1.QualifiedName {
	full := resourcev1.QualifiedName(r.domain + "/" + r.name)
	if r.domain == driver {
		return []resourcev1.QualifiedName{full, resourcev1.QualifiedName(r.name)}
	}
	return []resourcev1.QualifiedName{full}
}

// key is equal for devices for which an expression has the same result. It is empty if the device has an attribute of an
// unknown kind, for which no expression can be evaluated.
func (r *references) key(driver string, device *resourcev1.Device) string {
	for _, a := range device.Attributes {
		if a.StringValue == nil && a.IntValue == nil && a.BoolValue == nil && a.VersionValue == nil {
			return ""
		}
	}
	key := append([]byte(driver), '\x00')
	key = strconv.AppendBool(key, ptr.Deref(device.AllowMultipleAllocations, false))
	for _, ref := range r.attributes {
		for _, name := range ref.names(driver) {
			if a, ok := device.Attributes[name]; ok {
				key = appendAttribute(append(key, '+'), &a)
			} else {
				key = append(key, '-')
			}
		}
	}
	for _, ref := range r.capacities {
		for _, name := range ref.names(driver) {
			if c, ok := device.Capacity[name]; ok {
				key = strconv.AppendQuote(append(key, '+'), c.Value.String()) // of a copy: String writes
			} else {
				key = append(key, '-')
			}
		}
	}
	return string(key)
}

func appendAttribute(key []byte, a *resourcev1.DeviceAttribute) []byte {
	switch {
	case a.StringValue != nil:
		return strconv.AppendQuote(append(key, 's'), *a.StringValue)
	case a.IntValue != nil:
		return strconv.AppendInt(append(key, 'i'), *a.IntValue, 10)
	case a.BoolValue != nil:
		return strconv.AppendBool(append(key, 'b'), *a.BoolValue)
	}
	return strconv.AppendQuote(append(key, 'v'), *a.VersionValue)
}
