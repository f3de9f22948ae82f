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

// Options configure a builder.
type Options struct {
	SchedulerNames []string         // whose pods are the jobs of the record
	Sources        api.GroupSources // whose PodGroups are read
	Key            []byte           // hashes names; none if it is empty
	Began          time.Time        // the time 0 of the record
}

// Builder turns events into the lines of a trace. Times are since the beginning of the record and do not decrease. What is
// there at the beginning comes at 0, and groups come before their pods then. It is not safe for concurrent use.
type Builder struct {
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

// New returns a builder that writes to a file.
func New(to io.Writer, o Options) *Builder {
	return &Builder{
		Options: o, out: trace.NewWriter(to), names: namer{o.Key},
		classes: map[string]*schedulingv1.PriorityClass{}, groups: newGroups(), nodes: map[string]trace.NodeEvent{},
		queues: map[string]v1alpha1.QueueSpec{}, pods: map[types.UID]*pod{}, others: map[types.UID]*trace.Pod{}, jobs: map[string]*job{},
		evicted: map[types.UID][]*job{}, used: map[string]int{}, lost: map[string]int{},
	}
}

// Counts returns what was recorded so far.
func (b *Builder) Counts() Counts {
	c := b.counts
	c.Nodes, c.Queues = len(b.nodes), len(b.queues)
	return c
}

// Err returns the first error of the file.
func (b *Builder) Err() error { return b.err }

func (b *Builder) write(err error) {
	if b.err == nil {
		b.err = err
	}
}

// SetPriorityClass adds or changes a priority class.
func (b *Builder) SetPriorityClass(c *schedulingv1.PriorityClass, _ time.Duration) {
	b.classes[c.Name] = c
}

// DeletePriorityClass deletes a priority class.
func (b *Builder) DeletePriorityClass(c *schedulingv1.PriorityClass, _ time.Duration) {
	delete(b.classes, c.Name)
}

// SetNode writes a node if it is new, or if something of it has changed that a record has.
func (b *Builder) SetNode(n *v1.Node, at time.Duration) {
	e := trace.NodeEvent{
		Node: b.names.name(n.Name), State: trace.NodeUp, Labels: b.names.labels(n.Labels),
		Allocatable: n.Status.Allocatable.DeepCopy(),
		Taints:      b.names.taints(slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t v1.Taint) bool { return ofState(t.Key) })),
	}
	if e.Allocatable == nil {
		e.Allocatable = v1.ResourceList{}
	}
	api.ClampQuantities(e.Allocatable)
	if n.Spec.Unschedulable || !ready(n) {
		e.State = trace.NodeCordon
	}
	before, known := b.nodes[n.Name]
	if known && equality.Semantic.DeepEqual(before, e) {
		return
	}
	b.nodes[n.Name] = e
	e.At = at
	b.write(b.out.Node(e))
}

func ready(n *v1.Node) bool {
	return !slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status != v1.ConditionTrue
	})
}

// DeleteNode writes that a node does not exist any more.
func (b *Builder) DeleteNode(n *v1.Node, at time.Duration) {
	delete(b.nodes, n.Name)
	b.write(b.out.Node(trace.NodeEvent{At: at, Node: b.names.name(n.Name), State: trace.NodeDown}))
}

// SetQueue writes a queue if it is new or its spec has changed.
func (b *Builder) SetQueue(q *v1alpha1.Queue, at time.Duration) {
	if before, known := b.queues[q.Name]; known && equality.Semantic.DeepEqual(before, q.Spec) {
		return
	}
	b.queues[q.Name] = q.Spec
	b.write(b.out.Queue(trace.QueueEvent{At: at, Queue: b.names.name(q.Name), Spec: &q.Spec}))
}

// DeleteQueue writes that a queue does not exist any more.
func (b *Builder) DeleteQueue(q *v1alpha1.Queue, at time.Duration) {
	delete(b.queues, q.Name)
	b.write(b.out.Queue(trace.QueueEvent{At: at, Queue: b.names.name(q.Name)}))
}

// SetGroup adds or changes a PodGroup of any source.
func (b *Builder) SetGroup(g *api.Group, at time.Duration) {
	b.groups.byKey[g.Key()], b.groups.byUID[g.UID] = g, g
	if j := b.jobs[string(g.Key().JobID())]; j != nil {
		b.look(j, at)
	}
}

// DeleteGroup deletes a PodGroup. Its job ends when its pods have.
func (b *Builder) DeleteGroup(g *api.Group, at time.Duration) {
	if now := b.groups.byKey[g.Key()]; now != nil && now.UID == g.UID {
		delete(b.groups.byKey, g.Key())
	}
	delete(b.groups.byUID, g.UID)
	if j := b.jobs[string(g.Key().JobID())]; j != nil && len(j.pods) == 0 {
		b.writeJob(j, at)
	}
}

// setOther follows a pod of another scheduler: it is written when it ends.
func (b *Builder) setOther(p *v1.Pod, at time.Duration) {
	known := b.others[p.UID]
	switch {
	case known != nil && hasEnded(p):
		b.endOther(p.UID, at, false)
	case known == nil && p.Spec.NodeName != "" && !hasEnded(p):
		request := resource.PodRequests(p, resource.PodResourcesOptions{})
		api.ClampQuantities(request)
		b.others[p.UID] = &trace.Pod{At: at, Name: b.names.name(p.Namespace + "/" + p.Name), Node: b.names.name(p.Spec.NodeName), Request: request}
		b.counts.Pods++
	}
}

func (b *Builder) endOther(uid types.UID, at time.Duration, unended bool) {
	p := b.others[uid]
	if p == nil {
		return
	}
	delete(b.others, uid)
	p.Run, p.Unended = at-p.At, unended
	b.write(b.out.Pod(*p))
}

// End writes what has not ended yet, and the end of the record.
func (b *Builder) End(at time.Duration) {
	for _, key := range slices.Sorted(maps.Keys(b.jobs)) {
		b.writeJob(b.jobs[key], at)
	}
	for _, uid := range slices.Sorted(maps.Keys(b.others)) {
		b.endOther(uid, at, true)
	}
	b.write(b.out.End(at))
}

// Notes returns what the record does not have, sorted.
func (b *Builder) Notes() []string {
	var notes []string
	for what, n := range b.lost {
		notes = append(notes, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(notes)
	return notes
}
