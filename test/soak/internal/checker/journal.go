// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// remembered is the maximum number of lines in the journal, and shown of lines with a violation.
	remembered = 50_000
	shown      = 40
	// everything is the key of lines that concern every object.
	everything = "*"
)

// journal is the history of changes, with the objects that each line concerns.
type journal struct {
	lines []line
}

type line struct {
	at   time.Time
	text string
	keys []string
}

func (j *journal) add(at time.Time, text string, keys ...string) {
	if len(j.lines) >= 2*remembered {
		j.lines = slices.Clone(j.lines[remembered:])
	}
	j.lines = append(j.lines, line{at, text, keys})
}

// about returns the last lines that concern any of the objects.
func (j *journal) about(keys []string) []string {
	var found []string
	for _, l := range slices.Backward(j.lines) {
		if len(found) == shown {
			break
		}
		if slices.ContainsFunc(l.keys, func(k string) bool { return k == everything || slices.Contains(keys, k) }) {
			found = append(found, l.String())
		}
	}
	slices.Reverse(found)
	return found
}

func (l line) String() string { return l.at.UTC().Format("15:04:05.000 ") + l.text }

// String returns the history, one change per line.
func (j *journal) String() string {
	var b strings.Builder
	for _, l := range j.lines {
		fmt.Fprintln(&b, l)
	}
	return b.String()
}

// amounts formats a list in the order of names.
func amounts(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		parts = append(parts, q.String()+" "+string(name))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " + ")
}

func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resourceQuantity) bool { return x.Cmp(y) == 0 })
}
