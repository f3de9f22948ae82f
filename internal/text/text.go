// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package text formats output for terminals: tables, wrapped lines, amounts of resources.
package text

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Count formats a number with the singular or plural of a noun.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Cut shortens a line to width runes and marks the cut.
func Cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	runes := []rune(line)
	return strings.TrimRight(string(runes[:max(0, width-1)]), " ") + "…"
}

// Wrap breaks a text between words into lines of at most width runes; a longer word is on a line of its own.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Amount formats a quantity with at most one decimal.
func Amount(q resource.Quantity) string {
	value := q.AsApproximateFloat64()
	unit := ""
	if q.Format == resource.BinarySI {
		for _, next := range []string{"Ki", "Mi", "Gi", "Ti"} {
			if value < 1024 {
				break
			}
			value, unit = value/1024, next
		}
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0") + unit
}

// Resources returns the names in a list in the order of output: cpu, memory and other resources that Kubernetes
// defines, then extended resources; each by name.
func Resources(list corev1.ResourceList) []corev1.ResourceName {
	names := slices.Sorted(maps.Keys(list))
	slices.SortStableFunc(names, func(a, b corev1.ResourceName) int {
		return strings.Count(string(a), "/") - strings.Count(string(b), "/")
	})
	return names
}
