// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
)

//go:embed report.html
var reportHTML string

// maxHTMLRows limits the rows of a table on a page; JSON has all rows.
const maxHTMLRows = 100

// report is the content of the page: one result, or two and their differences.
type report struct {
	Results     []*Result
	Differences *Differences
}

// WriteHTML writes a page without external files.
func (r *Result) WriteHTML(w io.Writer) error { return report{Results: []*Result{r}}.write(w) }

// WriteHTML writes a page with the differences first, and then both results side by side.
func (c *Comparison) WriteHTML(w io.Writer) error {
	return report{Results: []*Result{c.First, c.Second}, Differences: &c.Differences}.write(w)
}

func (r report) write(w io.Writer) error {
	page, err := template.New("report").Funcs(template.FuncMap{
		"amount":    text.Amount,
		"bars":      (*Result).bars,
		"count":     text.Count,
		"evictions": func(list []Eviction) rows[Eviction] { return firstOf(list) },
		"starts":    func(list []Start) rows[Start] { return firstOf(list) },
		"started":   func(r *Result) rows[Started] { return firstOf(r.Started()) },
		"someOf":    someOf,
		"waits":     func(list []Waiting) rows[Waiting] { return firstOf(list) },
	}).Parse(reportHTML)
	if err != nil {
		return fmt.Errorf("the template of the report: %w", err)
	}
	return page.Execute(w, r)
}

// rows are the shown rows of a table and the number of omitted ones.
type rows[T any] struct {
	Rows []T
	More int
}

func firstOf[T any](list []T) rows[T] {
	shown := min(len(list), maxHTMLRows)
	return rows[T]{list[:shown], len(list) - shown}
}

// bar is the allocation of a queue of one resource, as a fraction of the capacity of all nodes, scaled to barWidth.
type bar struct {
	Queue            string // empty if it equals that of the previous bar
	Weight           int64
	Resource         v1.ResourceName
	Before, After    float64
	Deserved, Capped float64 // negative: not drawn
	Title            string

	TextAfter, TextDeserved, TextAsked string
}

// barWidth is the length of the bar of a queue that holds everything.
const barWidth = 320

func (r *Result) bars() []bar {
	whole := map[v1.ResourceName]float64{}
	for _, t := range r.Totals {
		whole[t.Resource] = t.Capacity.AsApproximateFloat64()
	}
	var list []bar
	shares := r.shares()
	for i, s := range shares {
		length := func(amounts v1.ResourceList) float64 {
			quantity, there := amounts[s.resource]
			if !there || whole[s.resource] == 0 {
				return 0
			}
			return min(barWidth*quantity.AsApproximateFloat64()/whole[s.resource], barWidth)
		}
		word := func(amounts v1.ResourceList) string { return text.Amount(amounts[s.resource]) }
		b := bar{
			Queue: s.queue.Name, Weight: s.queue.Weight, Resource: s.resource,
			Before: length(s.queue.AllocatedBefore), After: length(s.queue.AllocatedAfter), Deserved: length(s.queue.Deserved), Capped: -1,
			TextAfter: word(s.queue.AllocatedAfter), TextDeserved: word(s.queue.Deserved), TextAsked: word(s.queue.Requested),
		}
		b.Title = fmt.Sprintf("%s, %s: %s before, %s after, deserves %s, asks for %s", b.Queue, b.Resource, word(s.queue.AllocatedBefore), b.TextAfter, b.TextDeserved, b.TextAsked)
		if _, capped := s.queue.Capability[s.resource]; capped {
			b.Capped = length(s.queue.Capability)
			b.Title += ", at most " + word(s.queue.Capability)
		}
		if i > 0 && shares[i-1].queue == s.queue {
			b.Queue = ""
		}
		list = append(list, b)
	}
	return list
}
