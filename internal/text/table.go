// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is text in columns. A row may have a note: lines below it, indented and wrapped.
type Table struct {
	Titles []string
	Right  []bool // right-aligned columns
	Least  []int  // minimum widths of columns; nil for none
	Rows   []Row
}

// Row has a cell for each title.
type Row struct {
	Cells []string
	Note  string
}

const (
	gap    = 2 // spaces between columns
	indent = 4 // spaces before notes
)

// Widths returns the widths of the columns, at least t.Least and those of least, which may be nil.
func (t Table) Widths(least []int) []int {
	widths := make([]int, len(t.Titles))
	copy(widths, least)
	for i, title := range t.Titles {
		widths[i] = max(widths[i], utf8.RuneCountInString(title))
		if i < len(t.Least) {
			widths[i] = max(widths[i], t.Least[i])
		}
		for _, r := range t.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r.Cells[i]))
		}
	}
	return widths
}

// Head returns the line with the titles.
func (t Table) Head(widths []int) string { return t.line(t.Titles, widths) }

// Body returns the rows. Cells are never shortened. Notes are wrapped at width and limited to noteLines lines each:
// negative is unlimited, 0 omits notes.
func (t Table) Body(widths []int, width, noteLines int) []string {
	var lines []string
	for _, r := range t.Rows {
		lines = append(lines, t.line(r.Cells, widths))
		if r.Note == "" || noteLines == 0 {
			continue
		}
		note := Wrap(r.Note, width-indent)
		if noteLines > 0 && len(note) > noteLines {
			note = note[:noteLines]
			note[noteLines-1] = Cut(note[noteLines-1]+" …", width-indent)
		}
		for _, text := range note {
			lines = append(lines, strings.Repeat(" ", indent)+text)
		}
	}
	return lines
}

// Lines returns titles and rows.
func (t Table) Lines(width, noteLines int) []string {
	widths := t.Widths(nil)
	return slices.Insert(t.Body(widths, width, noteLines), 0, t.Head(widths))
}

func (t Table) line(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		if t.Right[i] {
			b.WriteString(padding + cell)
		} else {
			b.WriteString(cell + padding)
		}
	}
	return strings.TrimRight(b.String(), " ")
}
