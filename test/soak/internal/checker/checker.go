// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package checker checks from outside that the scheduler keeps its guarantees. It reads what any client can read
// (pods, nodes, PodGroups, queues and events, in the order of watches) and is notified when the scheduler stops and
// starts. It has no client and no clock, so that tests can construct every sequence of events.
package checker

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	clock     *clock
	record    *record
	state     *state
	jobs      jobs
	starts    *starts
	evictions *evictions
	reported  map[types.UID]int // bind events by pod
}

// New returns a checker without any state.
func New(schedulerName, defaultQueue string) *Checker {
	clock, jobs := &clock{}, jobs{}
	record, state := newRecord(clock), newState(schedulerName, defaultQueue, clock)
	return &Checker{
		clock: clock, record: record, state: state, jobs: jobs,
		starts:    &starts{clock: clock, state: state, record: record, jobs: jobs, open: map[string]*start{}},
		evictions: newEvictions(clock, state, record, jobs),
		reported:  map[types.UID]int{},
	}
}

// clock has the times from which the limits of checks count.
type clock struct {
	now         time.Time
	down        bool      // the scheduler is stopped
	upAt        time.Time // when the last scheduler became ready
	disturbance time.Time // last time that a change invalidated plans: a lost node, a foreign pod, a changed queue
}

// disturbed records that plans may have become invalid.
func (c *clock) disturbed() { c.disturbance = c.now }

// Scheduler records that the scheduler is about to stop, or is ready again.
func (c *Checker) Scheduler(at time.Time, up bool) {
	c.clock.now = at
	if up {
		if !c.clock.upAt.IsZero() {
			c.record.summary.Restarts++
		}
		c.clock.upAt = at
		c.record.note("the scheduler is ready", everything)
	} else {
		c.record.note("the scheduler is stopped", everything)
		c.starts.interrupt()
	}
	c.clock.down = !up
	c.clock.disturbed()
}

// Node records the state of a node or its deletion.
func (c *Checker) Node(at time.Time, object *corev1.Node, gone bool) {
	c.clock.now = at
	changed, lost := c.state.setNode(object, gone)
	if changed {
		c.clock.disturbed()
		if c.state.nodes[object.Name].fit {
			c.record.retract(Place, "node "+object.Name, watchOrder)
		}
		c.record.note(fmt.Sprintf("node %s: exists %t, schedulable %t", object.Name, !gone, c.state.nodes[object.Name].fit), "node "+object.Name)
	}
	if lost {
		c.record.summary.NodesLost++
		c.starts.excuse(object.Name)
	}
}

// Queue records the state of a queue or its deletion.
func (c *Checker) Queue(at time.Time, object *v1alpha1.Queue, gone bool) {
	c.clock.now = at
	if limits, changed := c.state.setQueue(object, gone); changed {
		c.record.note(fmt.Sprintf("queue %s: exists %t, capability %s", object.Name, !gone, amounts(limits)), "queue "+object.Name)
		c.clock.disturbed()
	}
}

// Group records the state of a PodGroup or its deletion.
func (c *Checker) Group(at time.Time, object *v1alpha1.PodGroup, gone bool) {
	c.clock.now = at
	key := object.Namespace + "/" + object.Name
	if gone {
		delete(c.state.groups, key)
		c.starts.forget(key)
		c.record.note("group "+key+" is gone", "job "+key)
		return
	}
	before := c.state.groups[key]
	c.state.groups[key] = object
	if before == nil || before.UID != object.UID {
		c.starts.forget(key)
		c.record.summary.GroupsSeen++
		c.record.note(fmt.Sprintf("group %s is created: minMember %d, queue %s", key, object.Spec.MinMember, object.Spec.Queue), "job "+key)
	} else if object.Spec.MinMember != before.Spec.MinMember {
		c.record.note(fmt.Sprintf("group %s: minMember %d becomes %d", key, before.Spec.MinMember, object.Spec.MinMember), "job "+key)
		c.starts.invalidate(key)
	}
	c.starts.complete(key)
}

// Disturbed records a change by the scenario that watches do not show, such as that of a budget.
func (c *Checker) Disturbed(at time.Time, what string, keys ...string) {
	c.clock.now = at
	c.record.note(what, keys...)
	c.clock.disturbed()
}

// Tick advances the time and reports what is overdue.
func (c *Checker) Tick(at time.Time) {
	c.clock.now = at
	c.starts.overdue()
	c.evictions.overdueCauses()
}

// Fail records a violation found by the caller. Keys name the objects concerned.
func (c *Checker) Fail(at time.Time, check Check, keys []string, text string) {
	c.clock.now = at
	c.record.fail(check, keys, "%s", text)
}

// Made counts a check made by the caller.
func (c *Checker) Made(check Check) { c.record.counts[check]++ }

// Violations returns the violations so far.
func (c *Checker) Violations() []Violation { return c.record.violations }

// Count returns how often a check was made.
func (c *Checker) Count(check Check) int { return c.record.counts[check] }

// Summary returns what has been seen so far.
func (c *Checker) Summary() Summary {
	t := c.record.summary
	t.Evictions = maps.Clone(t.Evictions)
	return t
}

// Table formats counts and checks.
func (c *Checker) Table() string { return c.record.table() }

// Journal returns the recorded history, one change per line.
func (c *Checker) Journal() string { return c.record.log.String() }
