// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

const (
	// width is the terminal width for which texts are wrapped.
	width = 80
	// maxRows limits the rows of a table in text output; JSON has all rows.
	maxRows = 20
)

// WriteText writes a result for a terminal.
func (r *Result) WriteText(w io.Writer) error {
	p := &page{w: w}
	p.summary(r)
	p.totals(r)
	p.queues(r)
	p.started(r)
	p.evicted("Evicted", r.Evicted)
	p.waiting(r)
	return p.err
}

// WriteText writes the differences first, then a summary of both results.
func (c *Comparison) WriteText(w io.Writer) error {
	p := &page{w: w}
	p.line("First:  %s", c.First.Summary())
	p.line("Second: %s", c.Second.Summary())
	for _, warning := range c.Second.Warnings {
		if slices.Contains(c.First.Warnings, warning) {
			p.wrap("Warning: "+warning, "")
		}
	}
	p.warningsOf("first", c.First, c.Second)
	p.warningsOf("second", c.Second, c.First)
	if c.Differences.None() {
		p.line("\nNo differences: the same PodGroups run, the same pods are evicted, and queues\nhold the same resources.")
		return p.err
	}
	d := c.Differences
	p.table("Pods started", []string{"PODGROUP", "QUEUE", ">FIRST", ">SECOND"}, len(d.Starts), func(i int) []string {
		s := d.Starts[i]
		return []string{s.Group, s.Queue, strconv.Itoa(s.First), strconv.Itoa(s.Second)}
	})
	p.table("Allocated by queues at the end", []string{"QUEUE", "RESOURCE", ">FIRST", ">SECOND"}, len(d.Shares), func(i int) []string {
		s := d.Shares[i]
		return []string{s.Queue, string(s.Resource), text.Amount(s.First), text.Amount(s.Second)}
	})
	p.evicted("Evicted only under the first", d.EvictedByFirst)
	p.evicted("Evicted only under the second", d.EvictedBySecond)
	return p.err
}

// PodsWaiting returns the number of pending pods.
func (r *Result) PodsWaiting() int {
	n := 0
	for _, w := range r.Waiting {
		n += w.Pods
	}
	return n
}

// Summary returns a result on one line.
func (r *Result) Summary() string {
	return fmt.Sprintf("%s: %s, %d bound, %d evicted, %d pending", r.Configuration,
		text.Count(r.Cycles, "cycle", "cycles"), len(r.Bound), len(r.Evicted), r.PodsWaiting())
}

// page writes lines until the first error.
type page struct {
	w   io.Writer
	err error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// wrap writes a text in indented lines that fit the terminal.
func (p *page) wrap(words, indent string) {
	for _, line := range text.Wrap(words, width-len(indent)) {
		p.line("%s%s", indent, line)
	}
}

// table writes rows below a title; it writes nothing without rows. Titles of numeric columns begin with ">".
func (p *page) table(title string, header []string, rows int, row func(i int) []string) {
	if rows == 0 {
		return
	}
	p.line("\n%s", title)
	var t text.Table
	for _, column := range header {
		name, number := strings.CutPrefix(column, ">")
		t.Titles, t.Right = append(t.Titles, name), append(t.Right, number)
	}
	for i := range min(rows, maxRows) {
		t.Rows = append(t.Rows, text.Row{Cells: row(i)})
	}
	for _, line := range t.Lines(width, 0) {
		p.line("%s", line)
	}
	p.more(rows)
}

func (p *page) more(rows int) {
	if rows > maxRows {
		p.line("... and %d more; --output json has all", rows-maxRows)
	}
}

func (p *page) summary(r *Result) {
	p.line("%s", r.Summary())
	for _, warning := range r.Warnings {
		p.wrap("Warning: "+warning, "")
	}
}

// warningsOf writes the warnings that the other result does not have.
func (p *page) warningsOf(which string, r, other *Result) {
	for _, warning := range r.Warnings {
		if !slices.Contains(other.Warnings, warning) {
			p.wrap(fmt.Sprintf("Warning (%s): %s", which, warning), "")
		}
	}
}

func (p *page) totals(r *Result) {
	p.table(fmt.Sprintf("Used on %s", text.Count(r.Nodes, "node", "nodes")), []string{"RESOURCE", ">BEFORE", ">AFTER", ">CAPACITY"}, len(r.Totals), func(i int) []string {
		t := r.Totals[i]
		return []string{string(t.Resource), text.Amount(t.UsedBefore), text.Amount(t.UsedAfter), text.Amount(t.Capacity)}
	})
}

func (p *page) queues(r *Result) {
	rows := r.shares()
	p.table("Queues", []string{"QUEUE", ">WEIGHT", "RESOURCE", ">BEFORE", ">AFTER", ">DESERVED", ">REQUESTED", ">CAPABILITY"}, len(rows), func(i int) []string {
		s := rows[i]
		weight, name := strconv.FormatInt(s.queue.Weight, 10), s.queue.Name
		if i > 0 && rows[i-1].queue == s.queue {
			weight, name = "", ""
		}
		limit := "-"
		if q, capped := s.queue.Capability[s.resource]; capped {
			limit = text.Amount(q)
		}
		of := func(list v1.ResourceList) string { return text.Amount(list[s.resource]) }
		return []string{name, weight, string(s.resource), of(s.queue.AllocatedBefore), of(s.queue.AllocatedAfter), of(s.queue.Deserved), of(s.queue.Requested), limit}
	})
}

// share is one resource of a queue.
type share struct {
	queue    *Queue
	resource v1.ResourceName
}

func (r *Result) shares() []share {
	var list []share
	for i := range r.Queues {
		q := &r.Queues[i]
		names := named(q.AllocatedBefore, q.AllocatedAfter, q.Requested, q.Deserved)
		if len(names) == 0 {
			names = []v1.ResourceName{v1.ResourceCPU}
		}
		for _, name := range names {
			list = append(list, share{q, name})
		}
	}
	return list
}

func (p *page) started(r *Result) {
	list := r.Started()
	p.table("Started", []string{"PODGROUP", "QUEUE", ">PODS", "NODES"}, len(list), func(i int) []string {
		s := list[i]
		return []string{s.Group, s.Queue, strconv.Itoa(s.Pods), someOf(s.Nodes, 3)}
	})
}

// someOf joins the first names.
func someOf(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s +%d", strings.Join(names[:most], " "), len(names)-most)
}

func (p *page) evicted(title string, list []Eviction) {
	p.table(title, []string{"POD", "QUEUE", "FOR", "CAUSE", "RECREATED"}, len(list), func(i int) []string {
		e := list[i]
		return []string{e.Pod, e.Queue, e.For, e.Cause, e.recreated()}
	})
}

// recreated is a word about whether a controller creates the pod again.
func (e *Eviction) recreated() string {
	switch {
	case e.JobFails != "":
		return "Job fails"
	case e.ComesBack:
		return "yes"
	}
	return "no"
}

// plugins returns the plugins in brackets; empty if there are none.
func (w *Waiting) plugins() string {
	if len(w.Plugins) == 0 {
		return ""
	}
	return " [" + strings.Join(w.Plugins, ", ") + "]"
}

// runTime words the run time and the start of a group; empty if it declares none.
func (w *Waiting) runTime() string {
	words := ""
	if w.LimitSeconds > 0 {
		words += ", run time limit " + api.FormatRun(time.Duration(w.LimitSeconds)*time.Second)
	}
	if w.ExpectedSeconds > 0 {
		words += ", expected " + api.FormatRun(time.Duration(w.ExpectedSeconds)*time.Second)
	}
	if w.EstimatedStart != nil {
		words += ", starts at about " + w.EstimatedStart.UTC().Format(time.RFC3339)
	}
	return words
}

// waiting writes messages below their groups because they are long.
func (p *page) waiting(r *Result) {
	if len(r.Waiting) == 0 {
		return
	}
	p.line("\nPending")
	for _, w := range r.Waiting[:min(len(r.Waiting), maxRows)] {
		p.line("%s (queue %s, %s%s): %s%s", w.Group, w.Queue, text.Count(w.Pods, "pod", "pods"), w.runTime(), w.Reason, w.plugins())
		p.wrap(w.Message, "  ")
	}
	p.more(len(r.Waiting))
}
