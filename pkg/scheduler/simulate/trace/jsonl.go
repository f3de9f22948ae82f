// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// record is one line of the format jsonl. Exactly one field beside T is set.
type record struct {
	T      *float64     `json:"t"`
	Submit *submission  `json:"submit,omitempty"`
	Cancel string       `json:"cancel,omitempty"`
	Node   *nodeChanged `json:"node,omitempty"`
}

// submission is the job of a line.
type submission struct {
	Name     string              `json:"name"`
	Queue    string              `json:"queue,omitempty"`
	Priority int32               `json:"priority,omitempty"`
	Min      int                 `json:"min,omitempty"`      // 1 if missing
	Replicas int                 `json:"replicas,omitempty"` // min if missing
	Request  v1.ResourceList     `json:"request"`
	Duration *float64            `json:"duration"`        // seconds
	Limit    float64             `json:"limit,omitempty"` // seconds; 0: none
	Selector map[string][]string `json:"selector,omitempty"`
}

type nodeChanged struct {
	Name  string    `json:"name"`
	State NodeState `json:"state"`
}

// readJSONL reads one object per line.
func readJSONL(l *lines, _ Options) (*Trace, error) {
	t := &Trace{}
	names := map[string]int{}
	for {
		line, ok := l.next()
		if !ok {
			return t, l.err()
		}
		r, at, err := l.record(line)
		if err != nil {
			return nil, err
		}
		switch {
		case r.Submit != nil:
			if before, twice := names[r.Submit.Name]; twice {
				return nil, l.errorf("submit.name: %q is the name of the job of line %d", r.Submit.Name, before)
			}
			names[r.Submit.Name] = l.number
			job, err := l.submission(r.Submit)
			if err != nil {
				return nil, err
			}
			job.Submit = at
			t.Jobs = append(t.Jobs, job)
		case r.Node != nil:
			if r.Node.Name == "" || r.Node.State != NodeUp && r.Node.State != NodeDown && r.Node.State != NodeCordon {
				return nil, l.errorf(`node: must have a name and the state "up", "down" or "cordon", not %q`, r.Node.State)
			}
			t.Nodes = append(t.Nodes, NodeEvent{at, r.Node.Name, r.Node.State})
		default:
			if _, known := names[r.Cancel]; !known {
				return nil, l.errorf("cancel: no line before this one submits a job %q", r.Cancel)
			}
			t.Cancels = append(t.Cancels, Cancel{at, r.Cancel})
		}
	}
}

// record decodes a line.
func (l *lines) record(line string) (*record, time.Duration, error) {
	r := &record{}
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(r); err != nil {
		return nil, 0, l.errorf("%w", plain(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, 0, l.errorf("more than one object in the line")
	}
	kinds := 0
	for _, set := range []bool{r.Submit != nil, r.Cancel != "", r.Node != nil} {
		if set {
			kinds++
		}
	}
	switch {
	case r.T == nil:
		return nil, 0, l.errorf("t: the time in seconds is required")
	case kinds != 1:
		return nil, 0, l.errorf("must have exactly one of submit, cancel and node beside t, not %d", kinds)
	}
	at, err := l.seconds("t", *r.T)
	return r, at, err
}

// plain returns an error of encoding/json without its name.
func plain(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

func (l *lines) submission(s *submission) (Job, error) {
	job := Job{
		ID: s.Name, Queue: s.Queue, Priority: s.Priority, Min: s.Min, Replicas: s.Replicas, Request: s.Request, Selector: s.Selector,
	}
	if job.Min == 0 {
		job.Min = 1
	}
	if job.Replicas == 0 {
		job.Replicas = job.Min
	}
	switch {
	case s.Name == "":
		return job, l.errorf("submit.name is required")
	case s.Duration == nil:
		return job, l.errorf("submit.duration: the run time in seconds is required")
	case job.Min < 1 || job.Replicas < job.Min || job.Replicas > math.MaxInt32:
		return job, l.errorf("submit: min must be at least 1, and replicas at least min; they are %d and %d", job.Min, job.Replicas)
	}
	for name, q := range s.Request {
		if q.Sign() < 0 {
			return job, l.errorf("submit.request: %s must not be negative, but is %s", name, q.String())
		}
	}
	var err error
	if job.Run, err = l.seconds("submit.duration", *s.Duration); err != nil {
		return job, err
	}
	job.Limit, err = l.seconds("submit.limit", s.Limit)
	return job, err
}

// WriteJSONL writes a trace in the format jsonl, by time.
func (t *Trace) WriteJSONL(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	jobs, cancels, nodes := t.Jobs, t.Cancels, t.Nodes
	for len(jobs)+len(cancels)+len(nodes) > 0 {
		r := record{}
		switch {
		case len(jobs) > 0 && (len(cancels) == 0 || jobs[0].Submit <= cancels[0].At) && (len(nodes) == 0 || jobs[0].Submit <= nodes[0].At):
			r = submitted(jobs[0])
			jobs = jobs[1:]
		case len(cancels) > 0 && (len(nodes) == 0 || cancels[0].At <= nodes[0].At):
			r.T, r.Cancel = secondsOf(cancels[0].At), cancels[0].Job
			cancels = cancels[1:]
		default:
			r.T, r.Node = secondsOf(nodes[0].At), &nodeChanged{nodes[0].Node, nodes[0].State}
			nodes = nodes[1:]
		}
		if err := encoder.Encode(r); err != nil {
			return fmt.Errorf("writing a trace: %w", err)
		}
	}
	return nil
}

func submitted(j Job) record {
	return record{T: secondsOf(j.Submit), Submit: &submission{
		Name: j.ID, Queue: j.Queue, Priority: j.Priority, Min: j.Min, Replicas: j.Replicas, Request: j.Request,
		Duration: secondsOf(j.Run), Limit: j.Limit.Seconds(), Selector: j.Selector,
	}}
}

func secondsOf(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}
