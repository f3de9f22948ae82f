// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// record is one line of the format jsonl. Exactly one field beside T is set.
type record struct {
	T      *float64     `json:"t"`
	Submit *submission  `json:"submit,omitempty"`
	Cancel string       `json:"cancel,omitempty"`
	Node   *nodeChanged `json:"node,omitempty"`
	Note   string       `json:"note,omitempty"` // what the conversion from another format left out
}

// submission is the job of a line.
type submission struct {
	Name     string              `json:"name"`
	Queue    string              `json:"queue,omitempty"`
	User     string              `json:"user,omitempty"`
	Priority int32               `json:"priority,omitempty"`
	Min      int                 `json:"min,omitempty"`      // 1 if missing
	Replicas int                 `json:"replicas,omitempty"` // min if missing
	Request  v1.ResourceList     `json:"request"`
	Duration *float64            `json:"duration"`        // seconds
	Limit    float64             `json:"limit,omitempty"` // seconds; 0: none
	Selector map[string][]string `json:"selector,omitempty"`
	Roles    []Role              `json:"roles,omitempty"`
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
		case r.Note != "":
			t.Notes = append(t.Notes, r.Note)
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
	for _, set := range []bool{r.Submit != nil, r.Cancel != "", r.Node != nil, r.Note != ""} {
		if set {
			kinds++
		}
	}
	switch {
	case r.T == nil:
		return nil, 0, l.errorf("t: the time in seconds is required")
	case kinds != 1:
		return nil, 0, l.errorf("must have exactly one of submit, cancel, node and note beside t, not %d", kinds)
	}
	at, err := l.seconds("t", *r.T)
	return r, at, err
}

// plain returns an error of encoding/json without its name, and with a suggestion if it is about an unknown field.
func plain(err error) error {
	text := strings.TrimPrefix(err.Error(), "json: ")
	if quoted, unknown := strings.CutPrefix(text, "unknown field "); unknown {
		if best, ok := api.Closest(strings.Trim(quoted, `"`), fields()); ok {
			text += fmt.Sprintf("; did you mean %q?", best)
		}
	}
	return errors.New(text)
}

// fields returns the names of all fields of a line.
func fields() (names []string) {
	for _, t := range []reflect.Type{reflect.TypeFor[record](), reflect.TypeFor[submission](), reflect.TypeFor[nodeChanged](), reflect.TypeFor[Role]()} {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

func (l *lines) submission(s *submission) (Job, error) {
	job := Job{
		ID: s.Name, Queue: s.Queue, User: s.User, Priority: s.Priority, Min: s.Min, Replicas: s.Replicas, Request: s.Request,
		Selector: s.Selector, Roles: s.Roles,
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
	err := l.checkRequest("submit.request", s.Request)
	for i := range s.Roles {
		if s.Roles[i].Pods < 1 || s.Roles[i].Pods > math.MaxInt32 {
			return job, l.errorf("submit.roles[%d].pods must be at least 1, but is %d", i, s.Roles[i].Pods)
		}
		err = cmp.Or(err, l.checkRequest(fmt.Sprintf("submit.roles[%d].request", i), s.Roles[i].Request))
	}
	if err != nil {
		return job, err
	}
	if job.Run, err = l.seconds("submit.duration", *s.Duration); err != nil {
		return job, err
	}
	job.Limit, err = l.seconds("submit.limit", s.Limit)
	return job, err
}

func (l *lines) checkRequest(field string, request v1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(request)) {
		if q := request[name]; q.Sign() < 0 {
			return l.errorf("%s: %s must not be negative, but is %s", field, name, q.String())
		}
	}
	return nil
}

// WriteJSONL writes a trace in the format jsonl, by time. A replay of what it writes has the same results.
func (t *Trace) WriteJSONL(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, note := range t.Notes {
		if err := encoder.Encode(record{T: secondsOf(0), Note: note}); err != nil {
			return fmt.Errorf("writing a trace: %w", err)
		}
	}
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
		Name: j.ID, Queue: j.Queue, User: j.User, Priority: j.Priority, Min: j.Min, Replicas: j.Replicas, Request: j.Request,
		Duration: secondsOf(j.Run), Limit: j.Limit.Seconds(), Selector: j.Selector, Roles: j.Roles,
	}}
}

func secondsOf(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}
