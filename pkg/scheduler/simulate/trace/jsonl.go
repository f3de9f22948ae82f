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

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// record is one line of the format jsonl. Exactly one field beside T is set.
type record struct {
	T      *float64      `json:"t"`
	Submit *submission   `json:"submit,omitempty"`
	Cancel string        `json:"cancel,omitempty"`
	Node   *nodeChanged  `json:"node,omitempty"`
	Queue  *queueChanged `json:"queue,omitempty"`
	Pod    *podOfOthers  `json:"pod,omitempty"`
	End    bool          `json:"end,omitempty"`
	Note   string        `json:"note,omitempty"` // what the conversion from another format left out
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
	Expected float64             `json:"expected,omitempty"`
	Selector map[string][]string `json:"selector,omitempty"`
	Roles    []Role              `json:"roles,omitempty"`
	Topology *Constraint         `json:"topology,omitempty"`

	Age         float64         `json:"age,omitempty"` // seconds
	Unended     bool            `json:"unended,omitempty"`
	Nodes       []string        `json:"nodes,omitempty"`
	Tolerations []v1.Toleration `json:"tolerations,omitempty"`
}

type nodeChanged struct {
	Name        string            `json:"name"`
	State       NodeState         `json:"state"`
	Allocatable v1.ResourceList   `json:"allocatable,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Taints      []v1.Taint        `json:"taints,omitempty"`
}

type queueChanged struct {
	Name string              `json:"name"`
	Spec *v1alpha1.QueueSpec `json:"spec,omitempty"` // if missing, the queue is deleted
}

type podOfOthers struct {
	Name     string          `json:"name"`
	Node     string          `json:"node"`
	Request  v1.ResourceList `json:"request"`
	Duration *float64        `json:"duration"` // seconds
	Unended  bool            `json:"unended,omitempty"`
}

// readJSONL reads one object per line.
func readJSONL(l *lines, _ Options) (*Trace, error) {
	t := &Trace{}
	names := map[string]int{} // of jobs, with their lines
	for {
		line, ok := l.next()
		if !ok {
			noteUnended(t)
			return t, l.err()
		}
		r, at, err := l.record(line)
		if err != nil {
			return nil, err
		}
		switch {
		case r.Submit != nil:
			err = l.addJob(t, names, r.Submit, at)
		case r.Node != nil:
			err = l.addNode(t, r.Node, at)
		case r.Queue != nil:
			err = l.addQueue(t, r.Queue, at)
		case r.Pod != nil:
			err = l.addPod(t, r.Pod, at)
		case r.End:
			t.Record.End = max(t.Record.End, at)
		case r.Note != "":
			t.Notes = append(t.Notes, r.Note)
		default:
			if _, known := names[r.Cancel]; !known {
				return nil, l.errorf("cancel: no line before this one submits a job %q", r.Cancel)
			}
			t.Cancels = append(t.Cancels, Cancel{at, r.Cancel})
		}
		if err != nil {
			return nil, err
		}
	}
}

// noteUnended notes how many jobs have an unknown run time, unless a conversion has noted it.
func noteUnended(t *Trace) {
	n := 0
	for i := range t.Jobs {
		if t.Jobs[i].Unended {
			n++
		}
	}
	note := fmt.Sprintf("%d of %d jobs had not ended when the record did", n, len(t.Jobs))
	if n > 0 && !slices.Contains(t.Notes, note) {
		t.Notes = append(t.Notes, note)
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
	for _, set := range []bool{r.Submit != nil, r.Cancel != "", r.Node != nil, r.Queue != nil, r.Pod != nil, r.End, r.Note != ""} {
		if set {
			kinds++
		}
	}
	switch {
	case r.T == nil:
		return nil, 0, l.errorf("t: the time in seconds is required")
	case kinds != 1:
		return nil, 0, l.errorf("must have exactly one of submit, cancel, node, queue, pod, end and note beside t, not %d", kinds)
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
	for _, t := range []reflect.Type{
		reflect.TypeFor[record](), reflect.TypeFor[submission](), reflect.TypeFor[Role](), reflect.TypeFor[Constraint](),
		reflect.TypeFor[nodeChanged](), reflect.TypeFor[queueChanged](), reflect.TypeFor[v1alpha1.QueueSpec](), reflect.TypeFor[podOfOthers](),
	} {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

func (l *lines) addJob(t *Trace, names map[string]int, s *submission, at time.Duration) error {
	if before, twice := names[s.Name]; twice {
		return l.errorf("submit.name: %q is the name of the job of line %d", s.Name, before)
	}
	names[s.Name] = l.number
	job, err := l.submission(s)
	job.Submit = at
	t.Jobs = append(t.Jobs, job)
	return err
}

func (l *lines) submission(s *submission) (Job, error) {
	job := Job{
		ID: s.Name, Queue: s.Queue, User: s.User, Priority: s.Priority, Min: s.Min, Replicas: s.Replicas, Request: s.Request,
		Selector: s.Selector, Roles: s.Roles, Topology: s.Topology, Unended: s.Unended, Nodes: s.Nodes, Tolerations: s.Tolerations,
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
	if bad := s.Topology.check(); bad != nil {
		err = cmp.Or(err, l.errorf("submit.topology: %w", bad))
	}
	if len(job.Nodes) > job.Pods() {
		err = cmp.Or(err, l.errorf("submit.nodes: %d pods cannot run on %d nodes", job.Pods(), len(job.Nodes)))
	}
	var errs [4]error
	job.Run, errs[0] = l.seconds("submit.duration", *s.Duration)
	job.Limit, errs[1] = l.seconds("submit.limit", s.Limit)
	job.Age, errs[2] = l.seconds("submit.age", s.Age)
	job.Expected, errs[3] = l.seconds("submit.expected", s.Expected)
	return job, cmp.Or(append(errs[:], err)...)
}

func (l *lines) checkRequest(field string, request v1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(request)) {
		if q := request[name]; q.Sign() < 0 {
			return l.errorf("%s: %s must not be negative, but is %s", field, name, q.String())
		}
	}
	return nil
}

func (l *lines) addNode(t *Trace, n *nodeChanged, at time.Duration) error {
	if n.Name == "" || n.State != NodeUp && n.State != NodeDown && n.State != NodeCordon {
		return l.errorf(`node: must have a name and the state "up", "down" or "cordon", not %q`, n.State)
	}
	if n.Allocatable == nil && len(n.Labels)+len(n.Taints) > 0 {
		return l.errorf("node.allocatable: a node with labels or taints needs it")
	}
	t.Nodes = append(t.Nodes, NodeEvent{at, n.Name, n.State, n.Allocatable, n.Labels, n.Taints})
	return l.checkRequest("node.allocatable", n.Allocatable)
}

func (l *lines) addQueue(t *Trace, q *queueChanged, at time.Duration) error {
	if q.Name == "" {
		return l.errorf("queue.name is required")
	}
	t.Record.Queues = append(t.Record.Queues, QueueEvent{at, q.Name, q.Spec})
	return nil
}

func (l *lines) addPod(t *Trace, p *podOfOthers, at time.Duration) error {
	if p.Name == "" || p.Node == "" || p.Duration == nil {
		return l.errorf("pod: name, node and duration are required")
	}
	run, err := l.seconds("pod.duration", *p.Duration)
	t.Record.Pods = append(t.Record.Pods, Pod{at, p.Name, p.Node, run, p.Unended, p.Request})
	return cmp.Or(l.checkRequest("pod.request", p.Request), err)
}
