// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package record writes a trace of a live cluster, which a simulation can replay: its nodes and queues, and the jobs of the
// scheduler with what they requested and how long they ran. It keeps nothing else of the objects that it reads.
//
// A job is written when it has ended, so the lines of a record are in the order of ends. What has not ended when the record
// does is written then.
package record

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// Linger is for how long a job without pods may get others, such as those that replace evicted ones, before it counts as
// ended.
const Linger = 5 * time.Minute

// Options configure a recorder.
type Options struct {
	SchedulerNames []string         // whose pods are the jobs of the record
	Sources        api.GroupSources // whose PodGroups are read
	Key            []byte           // hashes names; none if it is empty
	Began          time.Time        // the time 0 of the record
}

// Recorder turns events into the lines of a trace. Times are since the beginning of the record and do not decrease. What is
// there at the beginning comes at 0, and groups come before their pods then. It is not safe for concurrent use.
type Recorder struct {
	Options
	out   *trace.Writer
	names namer
	err   error // the first of out

	classes map[string]*schedulingv1.PriorityClass
	groups  groups
	nodes   map[string]trace.NodeEvent // as written
	queues  map[string]v1alpha1.QueueSpec
	pods    map[types.UID]*pod // those that have not ended
	others  map[types.UID]*trace.Pod
	jobs    map[string]*job      // by key
	evicted map[types.UID][]*job // single pods that wait for another one of their controller
	used    map[string]int       // how many jobs have a name
	lost    map[string]int       // jobs with properties that the record does not have
	counts  Counts
}

// Counts are what was recorded so far.
type Counts struct {
	Nodes, Queues int // that exist
	Jobs, Ended   int // that were submitted, and that have ended
	Pods          int // of other schedulers
}

// New returns a recorder that writes to a file.
func New(to io.Writer, o Options) *Recorder {
	return &Recorder{
		Options: o, out: trace.NewWriter(to), names: namer{o.Key},
		classes: map[string]*schedulingv1.PriorityClass{}, groups: newGroups(), nodes: map[string]trace.NodeEvent{},
		queues: map[string]v1alpha1.QueueSpec{}, pods: map[types.UID]*pod{}, others: map[types.UID]*trace.Pod{}, jobs: map[string]*job{},
		evicted: map[types.UID][]*job{}, used: map[string]int{}, lost: map[string]int{},
	}
}

// Counts returns what was recorded so far.
func (r *Recorder) Counts() Counts {
	c := r.counts
	c.Nodes, c.Queues = len(r.nodes), len(r.queues)
	return c
}

// Err returns the first error of the file.
func (r *Recorder) Err() error { return r.err }

func (r *Recorder) write(err error) {
	if r.err == nil {
		r.err = err
	}
}

// SetPriorityClass adds or changes a priority class.
func (r *Recorder) SetPriorityClass(c *schedulingv1.PriorityClass, _ time.Duration) {
	r.classes[c.Name] = c
}

// DeletePriorityClass deletes a priority class.
func (r *Recorder) DeletePriorityClass(c *schedulingv1.PriorityClass, _ time.Duration) {
	delete(r.classes, c.Name)
}

// SetNode writes a node if it is new, or if something of it has changed that a record has.
func (r *Recorder) SetNode(n *v1.Node, at time.Duration) {
	e := trace.NodeEvent{
		Node: r.names.name(n.Name), State: trace.NodeUp, Labels: r.names.labels(n.Labels),
		Allocatable: n.Status.Allocatable.DeepCopy(),
		Taints:      r.names.taints(slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t v1.Taint) bool { return ofState(t.Key) })),
	}
	if e.Allocatable == nil {
		e.Allocatable = v1.ResourceList{}
	}
	api.ClampQuantities(e.Allocatable)
	if n.Spec.Unschedulable || !ready(n) {
		e.State = trace.NodeCordon
	}
	before, known := r.nodes[n.Name]
	if known && equality.Semantic.DeepEqual(before, e) {
		return
	}
	r.nodes[n.Name] = e
	e.At = at
	r.write(r.out.Node(e))
}

func ready(n *v1.Node) bool {
	return !slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status != v1.ConditionTrue
	})
}

// DeleteNode writes that a node does not exist any more.
func (r *Recorder) DeleteNode(n *v1.Node, at time.Duration) {
	delete(r.nodes, n.Name)
	r.write(r.out.Node(trace.NodeEvent{At: at, Node: r.names.name(n.Name), State: trace.NodeDown}))
}

// SetQueue writes a queue if it is new or its spec has changed.
func (r *Recorder) SetQueue(q *v1alpha1.Queue, at time.Duration) {
	if before, known := r.queues[q.Name]; known && equality.Semantic.DeepEqual(before, q.Spec) {
		return
	}
	r.queues[q.Name] = q.Spec
	r.write(r.out.Queue(trace.QueueEvent{At: at, Queue: r.names.name(q.Name), Spec: &q.Spec}))
}

// DeleteQueue writes that a queue does not exist any more.
func (r *Recorder) DeleteQueue(q *v1alpha1.Queue, at time.Duration) {
	delete(r.queues, q.Name)
	r.write(r.out.Queue(trace.QueueEvent{At: at, Queue: r.names.name(q.Name)}))
}

// SetGroup adds or changes a PodGroup of any source.
func (r *Recorder) SetGroup(g *api.Group, at time.Duration) {
	r.groups.byKey[g.Key()], r.groups.byUID[g.UID] = g, g
	if j := r.jobs[string(g.Key().JobID())]; j != nil {
		r.look(j, at)
	}
}

// DeleteGroup deletes a PodGroup. Its job ends when its pods have.
func (r *Recorder) DeleteGroup(g *api.Group, at time.Duration) {
	if now := r.groups.byKey[g.Key()]; now != nil && now.UID == g.UID {
		delete(r.groups.byKey, g.Key())
	}
	delete(r.groups.byUID, g.UID)
	if j := r.jobs[string(g.Key().JobID())]; j != nil && len(j.pods) == 0 {
		r.writeJob(j, at)
	}
}

// setOther follows a pod of another scheduler: it is written when it ends.
func (r *Recorder) setOther(p *v1.Pod, at time.Duration) {
	known := r.others[p.UID]
	switch {
	case known != nil && hasEnded(p):
		r.endOther(p.UID, at, false)
	case known == nil && p.Spec.NodeName != "" && !hasEnded(p):
		request := resource.PodRequests(p, resource.PodResourcesOptions{})
		api.ClampQuantities(request)
		r.others[p.UID] = &trace.Pod{At: at, Name: r.names.name(p.Namespace + "/" + p.Name), Node: r.names.name(p.Spec.NodeName), Request: request}
		r.counts.Pods++
	}
}

func (r *Recorder) endOther(uid types.UID, at time.Duration, unended bool) {
	p := r.others[uid]
	if p == nil {
		return
	}
	delete(r.others, uid)
	p.Run, p.Unended = at-p.At, unended
	r.write(r.out.Pod(*p))
}

// End writes what has not ended yet, and the end of the record.
func (r *Recorder) End(at time.Duration) {
	for _, key := range slices.Sorted(maps.Keys(r.jobs)) {
		r.writeJob(r.jobs[key], at)
	}
	for _, uid := range slices.Sorted(maps.Keys(r.others)) {
		r.endOther(uid, at, true)
	}
	r.write(r.out.End(at))
}

// Notes returns what the record does not have, sorted.
func (r *Recorder) Notes() []string {
	var notes []string
	for what, n := range r.lost {
		notes = append(notes, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(notes)
	return notes
}
