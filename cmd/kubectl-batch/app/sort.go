// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// sortObjects sorts objects by a field, and those with the same value stay in their order. The field is a JSONPath, with
// braces or without, as in "kubectl get --sort-by", whose code would compile all of kubectl. It is an error if there are
// objects and none has the field.
func sortObjects[T any, P interface {
	*T
	runtime.Object
}](objects []T, field string) error {
	path := jsonpath.New("sort-by").AllowMissingKeys(true)
	if err := path.Parse(braced(field)); err != nil {
		return err
	}
	type keyed struct {
		key    sortKey
		object T
	}
	list := make([]keyed, len(objects))
	found := len(objects) == 0
	for i := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(asDocument(P(&objects[i])))
		if err != nil {
			return err
		}
		results, err := path.FindResults(content)
		if err != nil {
			return err
		}
		list[i].object = objects[i]
		if len(results) > 0 && len(results[0]) > 0 {
			list[i].key = sortKeyOf(results[0][0].Interface())
			found = true
		}
	}
	if !found {
		return errors.New("no object has this field")
	}
	slices.SortStableFunc(list, func(a, b keyed) int { return a.key.compare(b.key) })
	for i := range list {
		objects[i] = list[i].object
	}
	return nil
}

// braced returns a JSONPath template for a field: {.spec.weight} for .spec.weight and spec.weight.
func braced(field string) string {
	if strings.HasPrefix(field, "{") {
		return field
	}
	return "{." + strings.TrimPrefix(field, ".") + "}"
}

// sortKey is a value of a field. Missing values sort first, then numbers and quantities, then texts.
type sortKey struct {
	rank   int // 0 missing, 1 number, 2 text
	number float64
	text   string
}

func sortKeyOf(value any) sortKey {
	switch value := value.(type) {
	case int64:
		return sortKey{rank: 1, number: float64(value)}
	case float64:
		return sortKey{rank: 1, number: value}
	case bool:
		if value {
			return sortKey{rank: 1, number: 1}
		}
		return sortKey{rank: 1}
	case string:
		if quantity, err := resource.ParseQuantity(value); err == nil {
			return sortKey{rank: 1, number: quantity.AsApproximateFloat64()}
		}
		return sortKey{rank: 2, text: value}
	}
	return sortKey{}
}

func (a sortKey) compare(b sortKey) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.number, b.number), strings.Compare(a.text, b.text))
}
