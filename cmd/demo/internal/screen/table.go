package screen

import (
	"strings"
	"unicode/utf8"
)

// table is text in columns. A row may carry notes: lines below it, indented and wrapped.
type table struct {
	titles []string
	right  []bool // columns of numbers
	rows   []row
}

type row struct {
	cells []string
	note  string
}

const (
	gap    = 2 // spaces between columns
	indent = 4 // spaces before notes
)

// lines returns the table with no line wider than width. Notes take at most noteLines lines
// each; 0 leaves them out.
func (t table) lines(width, noteLines int) []string {
	widths := make([]int, len(t.titles))
	for i, title := range t.titles {
		widths[i] = utf8.RuneCountInString(title)
		for _, r := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r.cells[i]))
		}
	}
	lines := []string{t.line(t.titles, widths, width)}
	for _, r := range t.rows {
		lines = append(lines, t.line(r.cells, widths, width))
		if r.note == "" || noteLines == 0 {
			continue
		}
		note := wrap(r.note, width-indent)
		if len(note) > noteLines {
			note = note[:noteLines]
			note[noteLines-1] = cut(note[noteLines-1]+" …", width-indent)
		}
		for _, text := range note {
			lines = append(lines, strings.Repeat(" ", indent)+text)
		}
	}
	return lines
}

func (t table) line(cells []string, widths []int, width int) string {
	var b strings.Builder
	for i, cell := range cells {
		padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		if t.right[i] {
			b.WriteString(padding + cell)
		} else {
			b.WriteString(cell + padding)
		}
	}
	return cut(strings.TrimRight(b.String(), " "), width)
}

// cut shortens a line to width runes.
func cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	runes := []rune(line)
	return strings.TrimRight(string(runes[:max(0, width-1)]), " ") + "…"
}

// wrap breaks a text between words into lines of at most width runes; a longer word has a line
// of its own.
func wrap(text string, width int) []string {
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
