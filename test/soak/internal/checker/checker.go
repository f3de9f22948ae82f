// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package checker checks from outside that the scheduler keeps its guarantees. It reads what any client can read
// (pods, nodes, PodGroups, queues and events, in the order of watches) and is notified when the scheduler stops and
// starts. It has no client and no clock, so that tests can construct every sequence of events.
package checker

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

const (
	// Lag is how long the scheduler may act on outdated state after a change by another client.
	Lag = 5 * time.Second
	// StartGrace is the maximum time from the first bound pod of a gang to the last one that it needs.
	StartGrace = 6 * time.Second
	// UpGrace is how long a scheduler that has just become ready may take to complete what the previous one started.
	UpGrace = 15 * time.Second
	// CauseGrace is the maximum time from an eviction to the event with its reason.
	CauseGrace = 2 * time.Minute
)

// Check is a guarantee that the checker checks.
type Check string

// The checks with their names in the table.
const (
	Capacity   Check = "no node overcommitted"
	Admitted   Check = "no pod rejected by its kubelet"
	Place      Check = "no pod bound to a node that is lost or cordoned"
	Once       Check = "no pod bound twice or by another scheduler"
	Whole      Check = "no gang started in part"
	Capability Check = "no queue bound over its capability"
	Justified  Check = "no eviction without a reason"
	Effective  Check = "no repeated evictions without effect"
	Converged  Check = "idle when nothing changes"
	Fits       Check = "what fits runs at the end"
	Growth     Check = "no growth of memory or goroutines"
	Process    Check = "starts, stops and logs correctly"
)

// Checks returns all checks in the order of the table.
func Checks() []Check {
	return []Check{Capacity, Admitted, Place, Once, Whole, Capability, Justified, Effective, Converged, Fits, Growth, Process}
}

// Violation is a violated guarantee.
type Violation struct {
	At         time.Time
	Check      Check
	Text       string
	Transcript []string // previous changes of the objects concerned
}

// Checker collects the changes it receives. It is for one goroutine at a time, and its time must not decrease.
type Checker struct {
	schedulerName string
	defaultQueue  string

	now    time.Time
	nodes  map[string]*node
	pods   map[types.UID]*corev1.Pod
	groups map[string]*group // by namespace/name
	queues map[string]*queue
	jobs   map[string]*job // by namespace/name of the group or of the pod without one

	evictions map[types.UID]*eviction       // whose event has not arrived
	early     map[types.UID]*eventsv1.Event // eviction events of pods that do not show the eviction yet
	reported  map[types.UID]int             // bind events by pod

	down        bool      // no scheduler is ready, or it became ready within UpGrace
	upAt        time.Time // when the last scheduler became ready
	disturbance time.Time // last time that a change invalidated plans: a lost node, a foreign pod, a changed queue

	log        journal
	counts     map[Check]int
	summary    Summary
	failed     map[string]bool
	violations []Violation
}

// New returns a checker without any state.
func New(schedulerName, defaultQueue string) *Checker {
	return &Checker{
		schedulerName: schedulerName, defaultQueue: defaultQueue,
		nodes: map[string]*node{}, pods: map[types.UID]*corev1.Pod{}, groups: map[string]*group{}, queues: map[string]*queue{},
		jobs: map[string]*job{}, evictions: map[types.UID]*eviction{}, early: map[types.UID]*eventsv1.Event{},
		reported: map[types.UID]int{},
		counts:   map[Check]int{}, summary: Summary{Evictions: map[string]int{}}, failed: map[string]bool{},
	}
}

// node is the state of a node; it is kept after the node is deleted.
type node struct {
	object  *corev1.Node
	exists  bool
	changed time.Time // when it was last created, deleted, or changed between fit and unfit
	fit     bool      // it exists, is ready, and is schedulable
	foreign time.Time // when a pod of another scheduler was last bound to it
}

// queue is the state of a queue.
type queue struct {
	exists bool
	caps   []capability // the last one is current
}

// capability is a limit and the end of its validity.
type capability struct {
	limits corev1.ResourceList
	until  time.Time // zero for the current one
}

// Scheduler records that the scheduler is about to stop, or is ready again.
func (c *Checker) Scheduler(at time.Time, up bool) {
	c.now = at
	if up {
		if !c.upAt.IsZero() {
			c.summary.Restarts++
		}
		c.upAt = at
		c.log.add(at, "the scheduler is ready", everything)
	} else {
		c.log.add(at, "the scheduler is stopped", everything)
		for _, g := range c.groups {
			if g.start != nil {
				g.start.interrupted = true
			}
		}
	}
	c.down = !up
	c.disturbed()
}

// Node records the state of a node or its deletion.
func (c *Checker) Node(at time.Time, object *corev1.Node, gone bool) {
	c.now = at
	n := c.nodes[object.Name]
	if n == nil {
		n = &node{}
		c.nodes[object.Name] = n
	}
	fit := !gone && takesPods(object)
	if n.object == nil || n.exists == gone || n.fit != fit {
		n.changed = at
		c.disturbed()
		c.log.add(at, fmt.Sprintf("node %s: exists %t, schedulable %t", object.Name, !gone, fit), "node "+object.Name)
	}
	if n.exists && (gone || n.fit && !ready(object)) {
		c.summary.NodesLost++
		c.excuseStarts(object.Name)
	}
	n.object, n.exists, n.fit = object, !gone, fit
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func takesPods(n *corev1.Node) bool {
	return ready(n) && !n.Spec.Unschedulable && len(n.Spec.Taints) == 0
}

// Queue records the state of a queue or its deletion.
func (c *Checker) Queue(at time.Time, object *v1alpha1.Queue, gone bool) {
	c.now = at
	q := c.queues[object.Name]
	if q == nil {
		q = &queue{}
		c.queues[object.Name] = q
	}
	limits := object.Spec.Capability
	if gone {
		limits = nil // its pods count for the default queue
	}
	last := len(q.caps) - 1
	if last < 0 || q.exists == gone || !sameAmounts(q.caps[last].limits, limits) {
		if last >= 0 {
			q.caps[last].until = at
		}
		q.caps = append(q.caps, capability{limits: limits})
		c.log.add(at, fmt.Sprintf("queue %s: exists %t, capability %s", object.Name, !gone, amounts(limits)), "queue "+object.Name)
		c.disturbed()
	}
	q.exists = !gone
}

// disturbed records that plans may have become invalid.
func (c *Checker) disturbed() {
	c.disturbance = c.now
}

// Disturbed records a change by the scenario that watches do not show, such as that of a budget.
func (c *Checker) Disturbed(at time.Time, what string, keys ...string) {
	c.now = at
	c.log.add(at, what, keys...)
	c.disturbed()
}

// Tick advances the time and reports what is overdue.
func (c *Checker) Tick(at time.Time) {
	c.now = at
	c.overdueStarts()
	c.overdueCauses()
}

// Fail records a violation found by the caller. Keys name the objects concerned.
func (c *Checker) Fail(at time.Time, check Check, keys []string, text string) {
	c.now = at
	c.fail(check, keys, "%s", text)
}

// Made counts a check made by the caller.
func (c *Checker) Made(check Check) { c.counts[check]++ }

// fail records a violation; only the first one of a check and an object.
func (c *Checker) fail(check Check, keys []string, format string, args ...any) {
	id := string(check)
	if len(keys) > 0 {
		id += keys[0]
	}
	if c.failed[id] {
		return
	}
	c.failed[id] = true
	c.violations = append(c.violations, Violation{At: c.now, Check: check, Text: fmt.Sprintf(format, args...), Transcript: c.log.about(keys)})
}

// Violations returns the violations so far.
func (c *Checker) Violations() []Violation { return c.violations }
