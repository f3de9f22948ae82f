// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Bars use the rest of the line, within these bounds.
const shortest, longest = 6, 24

// Top returns a row for each queue and resource, by name, with a bar of what is allocated. If the names are too long for
// one line, each queue has a heading above its rows instead.
func Top(queues []v1alpha1.Queue) []string {
	queues = slices.Clone(queues)
	slices.SortFunc(queues, func(a, b v1alpha1.Queue) int { return cmp.Compare(a.Name, b.Name) })
	if lines, fits := rows(queues, false); fits {
		return lines
	}
	lines, _ := rows(queues, true)
	return lines
}

// rows returns the lines of all queues, and reports whether they are short enough for bars.
func rows(queues []v1alpha1.Queue, headings bool) (lines []string, fits bool) {
	t := text.Table{
		Titles: []string{"QUEUE", "WEIGHT", "RESOURCE", "GUAR", "DESERVED", "ALLOC", "CAP", "SHARE"},
		Right:  []bool{false, true, false, true, true, true, true, true},
	}
	own, margin := 0, "" // the number of columns that a heading replaces, and the indentation below headings
	if headings {
		own, margin = 2, "  "
		t.Titles, t.Right = t.Titles[own:], t.Right[own:]
	}
	var bars []levels
	above := map[int]string{}
	for i := range queues {
		q := &queues[i]
		if headings {
			above[len(bars)] = fmt.Sprintf("%s, weight %d", q.Name, q.Spec.Weight)
		}
		names := resourcesOf(q)
		if len(names) == 0 {
			names = append(names, "") // a queue without resources has a row too
		}
		for _, name := range names {
			l := levelsOf(q, name)
			cells := []string{
				q.Name, strconv.Itoa(int(q.Spec.Weight)), dash(string(name)), amount(q.Spec.Guarantee, name),
				amount(q.Status.Deserved, name), amount(q.Status.Allocated, name), amount(q.Spec.Capability, name), l.share(),
			}
			t.Rows = append(t.Rows, text.Row{Cells: cells[own:]})
			bars = append(bars, l)
		}
	}
	widths := t.Widths(nil)
	used := len(margin)
	for _, width := range widths {
		used += width + len("  ")
	}
	lines = append(lines, margin+t.Head(widths))
	for i, line := range t.Body(widths, Width, 0) {
		if heading, first := above[i]; first {
			lines = append(lines, heading)
		}
		line = fmt.Sprintf("%-*s%s", used, margin+line, bars[i].bar(min(max(Width-used, shortest), longest)))
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines, used+shortest <= Width
}

// levels are amounts of one resource, in any unit. A negative limit is none.
type levels struct{ allocated, deserved, limit float64 }

func levelsOf(q *v1alpha1.Queue, name corev1.ResourceName) levels {
	value := func(list corev1.ResourceList) float64 {
		quantity := list[name]
		return quantity.AsApproximateFloat64()
	}
	l := levels{value(q.Status.Allocated), value(q.Status.Deserved), -1}
	if _, capped := q.Spec.Capability[name]; capped {
		l.limit = value(q.Spec.Capability)
	}
	return l
}

// share is what is allocated of what is deserved.
func (l levels) share() string {
	switch {
	case l.deserved > 0:
		return fmt.Sprintf("%.0f%%", 100*l.allocated/l.deserved)
	case l.allocated > 0:
		return "over"
	}
	return "-"
}

// bar draws the levels, the highest of which fills it; empty if all are zero.
func (l levels) bar(length int) string {
	full := max(l.allocated, l.deserved, l.limit)
	if full <= 0 {
		return ""
	}
	end := func(level float64) int { return int(level/full*float64(length) + 0.5) }
	var b strings.Builder
	for i := range length {
		switch {
		case i < end(min(l.allocated, l.deserved)):
			b.WriteByte('=')
		case i < end(l.allocated):
			b.WriteByte('+')
		case i < end(l.deserved):
			b.WriteByte('-')
		default:
			b.WriteByte('.')
		}
	}
	return b.String()
}
