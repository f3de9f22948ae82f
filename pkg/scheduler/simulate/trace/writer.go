// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// Writer writes a trace in the format jsonl. Lines may be in any order, but for a cancellation, which comes after its job.
type Writer struct{ encoder *json.Encoder }

// NewWriter returns a writer. Each line is one call of Write.
func NewWriter(w io.Writer) *Writer {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return &Writer{encoder}
}

// Job writes the submission of a job.
func (w *Writer) Job(j *Job) error { return w.line(j.Submit, submitted(j)) }

// Cancel writes the cancellation of a job.
func (w *Writer) Cancel(c Cancel) error { return w.line(c.At, record{Cancel: c.Job}) }

// Node writes a change of a node.
func (w *Writer) Node(e NodeEvent) error {
	return w.line(e.At, record{Node: &nodeChanged{e.Node, e.State, e.Allocatable, e.Labels, e.Taints}})
}

// Queue writes a change of a queue.
func (w *Writer) Queue(e QueueEvent) error {
	return w.line(e.At, record{Queue: &queueChanged{e.Queue, e.Spec}})
}

// Pod writes a pod of another scheduler.
func (w *Writer) Pod(p Pod) error {
	return w.line(p.At, record{Pod: &podOfOthers{p.Name, p.Node, p.Request, secondsOf(p.Run), p.Unended}})
}

// End writes the end of a record.
func (w *Writer) End(at time.Duration) error { return w.line(at, record{End: true}) }

func (w *Writer) line(at time.Duration, r record) error {
	r.T = secondsOf(at)
	if err := w.encoder.Encode(r); err != nil {
		return fmt.Errorf("writing a trace: %w", err)
	}
	return nil
}

// WriteJSONL writes a trace in the format jsonl, by time. A replay of what it writes has the same results.
func (t *Trace) WriteJSONL(to io.Writer) error {
	type line struct {
		at    time.Duration
		write func() error
	}
	var all []line
	w := NewWriter(to)
	for _, note := range t.Notes {
		all = append(all, line{0, func() error { return w.line(0, record{Note: note}) }})
	}
	for i := range t.Jobs {
		all = append(all, line{t.Jobs[i].Submit, func() error { return w.Job(&t.Jobs[i]) }})
	}
	for _, c := range t.Cancels {
		all = append(all, line{c.At, func() error { return w.Cancel(c) }})
	}
	for _, e := range t.Nodes {
		all = append(all, line{e.At, func() error { return w.Node(e) }})
	}
	for _, e := range t.Record.Queues {
		all = append(all, line{e.At, func() error { return w.Queue(e) }})
	}
	for _, p := range t.Record.Pods {
		all = append(all, line{p.At, func() error { return w.Pod(p) }})
	}
	if t.Record.End > 0 {
		all = append(all, line{t.Record.End, func() error { return w.End(t.Record.End) }})
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	for _, l := range all {
		if err := l.write(); err != nil {
			return err
		}
	}
	return nil
}

func submitted(j *Job) record {
	return record{Submit: &submission{
		Name: j.ID, Queue: j.Queue, User: j.User, Priority: j.Priority, Min: j.Min, Replicas: j.Replicas, Request: j.Request,
		Duration: secondsOf(j.Run), Limit: j.Limit.Seconds(), Expected: j.Expected.Seconds(), Selector: j.Selector, Roles: j.Roles,
		Topology: j.Topology,
		Age:      j.Age.Seconds(), Unended: j.Unended, Nodes: j.Nodes, Tolerations: j.Tolerations,
	}}
}

func secondsOf(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}
