// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package report draws the results of replays as a page for a browser: one file without scripts, fonts or pictures from
// elsewhere, for light and dark displays of any width.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/results"
)

//go:embed report.html
var reportHTML string

// mostDetailed is how many runs a page shows with curves. The tables have all of them.
const mostDetailed = 6

// mostRows limits the rows of a table. The result files have all of them.
const mostRows = 50

// Page is the content of a page. Runs has at least one element, the others may be empty.
type Page struct {
	Workload    string
	Version     string // empty if it is not known
	Nodes       int
	Runs        []*results.Run // with records
	Comparisons []*results.Comparison
	Sweep       *results.Sweep
	Replicas    []*results.Replicas
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	page, err := template.New("report").Funcs(template.FuncMap{
		"count":   text.Count,
		"hours":   results.Hours,
		"percent": func(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) },
		"sign":    results.Signed,
		"span":    results.Span,
	}).Parse(reportHTML)
	if err != nil {
		return fmt.Errorf("the template of the report: %w", err)
	}
	return page.Execute(w, p)
}

// First returns the summary of the first run.
func (p *Page) First() *replay.Summary { return &p.Runs[0].Summary }

// Notes returns what was left out of the trace.
func (p *Page) Notes() []string { return p.First().Notes }

// row is a row of the table of measures.
type row struct {
	Name  string
	Cells []string
}

// Measures returns the rows of the table of measures, with a cell for each run.
func (p *Page) Measures() (rows []row) {
	for _, m := range results.Measures(p.First()) {
		r := row{Name: m.Name}
		for _, run := range p.Runs {
			r.Cells = append(r.Cells, m.Word(m.Of(&run.Summary)))
		}
		rows = append(rows, r)
	}
	return rows
}

// Spreads returns the rows of the table of replicas, with a cell for each policy.
func (p *Page) Spreads() (rows []row) {
	for _, m := range results.Measures(p.First()) {
		r := row{Name: m.Name}
		for _, replicas := range p.Replicas {
			r.Cells = append(r.Cells, replicas.Spread(m).Word(m))
		}
		rows = append(rows, r)
	}
	return rows
}

// SweepRows returns the rows of the table of a sweep, with a cell for each measure.
func (p *Page) SweepRows() (rows []row) {
	for _, point := range p.Sweep.Points {
		r := row{Name: point.Value}
		for _, m := range results.Measures(p.First()) {
			r.Cells = append(r.Cells, m.Word(m.Of(point.Summary)))
		}
		rows = append(rows, r)
	}
	return rows
}

// MeasureNames returns the titles of the columns of SweepRows.
func (p *Page) MeasureNames() (names []string) {
	for _, m := range results.Measures(p.First()) {
		names = append(names, m.Name)
	}
	return names
}

// sizeRow is a size class under all runs.
type sizeRow struct {
	Size  string
	Jobs  int
	Cells []sizeCell
}

type sizeCell struct {
	Class        replay.SizeClass
	Color        int
	Bar          float64 // the p95 of the wait, from 0 to 100
	Name, NotYet string
}

// Sizes returns the waits by size class.
func (p *Page) Sizes() (rows []sizeRow) {
	longest := 0.0
	for _, run := range p.detailed() {
		for _, c := range run.Summary.Sizes {
			longest = max(longest, c.Wait.P95)
		}
	}
	for i, c := range p.First().Sizes {
		r := sizeRow{Size: results.Size(c), Jobs: c.Jobs}
		for k, run := range p.detailed() {
			if i >= len(run.Summary.Sizes) {
				continue
			}
			cell := sizeCell{Class: run.Summary.Sizes[i], Color: k, Name: run.Name}
			if longest > 0 {
				cell.Bar = 100 * cell.Class.Wait.P95 / longest
			}
			if pending := cell.Class.Jobs - cell.Class.Started; pending > 0 {
				cell.NotYet = fmt.Sprintf("%d never started", pending)
			}
			r.Cells = append(r.Cells, cell)
		}
		rows = append(rows, r)
	}
	return rows
}

// detailed returns the runs that are drawn.
func (p *Page) detailed() []*results.Run { return p.Runs[:min(len(p.Runs), mostDetailed)] }

// Omitted returns how many runs are in the tables only.
func (p *Page) Omitted() int { return len(p.Runs) - len(p.detailed()) }

// queueTable is the table of the queues of a run.
type queueTable struct {
	Name  string
	Jain  float64
	Chart *chart // what they hold over time; nil if there is nothing to draw
	Rows  []replay.QueueSummary
	More  int
}

// Queues returns the queues of each run.
func (p *Page) Queues() (tables []queueTable) {
	for _, run := range p.detailed() {
		list := slices.Clone(run.Summary.Queues)
		shown := min(len(list), mostRows)
		tables = append(tables, queueTable{Name: run.Name, Jain: run.Summary.Jain, Chart: shareChart(run), Rows: list[:shown], More: len(list) - shown})
	}
	return tables
}

// Charts returns the curves of the runs.
func (p *Page) Charts() []*chart {
	runs := p.detailed()
	charts := []*chart{utilisationChart(runs), waitingChart(runs)}
	for i := range p.First().Levels {
		charts = append(charts, freeDomainsChart(runs, i))
	}
	return slices.DeleteFunc(charts, func(c *chart) bool { return c == nil })
}

// parts are the widths of a bar with three parts, in percent.
type parts struct{ Better, Same, Worse float64 }

// Parts returns how many of the jobs of a comparison are better, as before, and worse off.
func (p *Page) Parts(c *results.Comparison) parts {
	all := float64(max(c.Jobs, 1))
	return parts{100 * float64(c.Better) / all, 100 * float64(c.Same) / all, 100 * float64(c.Worse) / all}
}
