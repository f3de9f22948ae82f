// Package checker watches a cluster from outside and says when the scheduler does what it must not. It knows what
// any client can read: pods, nodes, groups, queues and events, in the order in which watches show them, and when the
// scheduler was stopped and started. It has no client and no clock, so that every sequence of events can be made by hand.
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
	// Lag is how long a change that somebody else makes may take until the scheduler acts by it: what it decided
	// before may still be carried out.
	Lag = 5 * time.Second
	// StartGrace is how long a gang may take from its first pod with a node to the last one it needs.
	StartGrace = 6 * time.Second
	// UpGrace is how long a scheduler that has just become ready may take to finish what the one before began.
	UpGrace = 15 * time.Second
	// CauseGrace is how long the event may take that says why a pod was evicted.
	CauseGrace = 2 * time.Minute
)

// Check is one of the promises that are watched.
type Check string

// The checks, as the table at the end calls them.
const (
	Capacity   Check = "no node over its room"
	Admitted   Check = "no pod turned away by its kubelet"
	Place      Check = "no pod bound to a node that is lost or cordoned"
	Once       Check = "no pod bound twice, nor by another"
	Whole      Check = "no gang started in part"
	Capability Check = "no queue bound over its capability"
	Justified  Check = "no eviction without its cause"
	Effective  Check = "no eviction again and again for nothing"
	Converged  Check = "comes to rest when nothing happens"
	Fits       Check = "what fits runs in the end"
	Growth     Check = "takes no more in the end than in the beginning"
	Process    Check = "starts, stops and logs as it should"
)

// Checks returns all checks in the order of the table.
func Checks() []Check {
	return []Check{Capacity, Admitted, Place, Once, Whole, Capability, Justified, Effective, Converged, Fits, Growth, Process}
}

// Violation is a promise broken.
type Violation struct {
	At         time.Time
	Check      Check
	Text       string
	Transcript []string // what had happened to the objects concerned
}

// Checker collects what it is shown. It is for one goroutine at a time, and time does not run backwards.
type Checker struct {
	schedulerName string
	defaultQueue  string

	now    time.Time
	nodes  map[string]*node
	pods   map[types.UID]*corev1.Pod
	groups map[string]*group // by namespace/name
	queues map[string]*queue
	jobs   map[string]*job // by namespace/name of the group or of the pod without one

	evictions map[types.UID]*eviction       // whose cause is not known yet
	early     map[types.UID]*eventsv1.Event // why pods are evicted that do not show it yet
	reported  map[types.UID]int             // events that say that the pod was bound

	down        bool      // no scheduler runs, or not for long
	upAt        time.Time // when the last one was ready
	disturbance time.Time // the last time that something upset plans: a node lost, a pod of others, a queue changed

	log        journal
	counts     map[Check]int
	summary    Summary
	failed     map[string]bool
	violations []Violation
}

// New returns a checker that has seen nothing.
func New(schedulerName, defaultQueue string) *Checker {
	return &Checker{
		schedulerName: schedulerName, defaultQueue: defaultQueue,
		nodes: map[string]*node{}, pods: map[types.UID]*corev1.Pod{}, groups: map[string]*group{}, queues: map[string]*queue{},
		jobs: map[string]*job{}, evictions: map[types.UID]*eviction{}, early: map[types.UID]*eventsv1.Event{},
		reported: map[types.UID]int{},
		counts:   map[Check]int{}, summary: Summary{Evictions: map[string]int{}}, failed: map[string]bool{},
	}
}

// node is what is known of a node, also while it does not exist.
type node struct {
	object  *corev1.Node
	exists  bool
	changed time.Time // when it was last made, lost, or changed between fit and unfit
	fit     bool      // it exists, is ready, and takes new pods
	foreign time.Time // when a pod of others last came
}

// queue is what is known of a queue.
type queue struct {
	exists bool
	caps   []capability // the last one is in force
}

// capability is a limit, and until when it was in force.
type capability struct {
	limits corev1.ResourceList
	until  time.Time // zero for the one in force
}

// Scheduler tells that the scheduler is about to be stopped, or is ready again.
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

// Node shows a node, or that it is gone.
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
		c.log.add(at, fmt.Sprintf("node %s: exists %t, takes pods %t", object.Name, !gone, fit), "node "+object.Name)
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

// Queue shows a queue, or that it is gone.
func (c *Checker) Queue(at time.Time, object *v1alpha1.Queue, gone bool) {
	c.now = at
	q := c.queues[object.Name]
	if q == nil {
		q = &queue{}
		c.queues[object.Name] = q
	}
	limits := object.Spec.Capability
	if gone {
		limits = nil // its pods count elsewhere
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

// disturbed takes note that what was planned may not come to pass.
func (c *Checker) disturbed() {
	c.disturbance = c.now
}

// Disturbed takes note that the course has done what watches do not show, such as to change a budget.
func (c *Checker) Disturbed(at time.Time, what string, keys ...string) {
	c.now = at
	c.log.add(at, what, keys...)
	c.disturbed()
}

// Tick lets time pass: what should have happened by now is missed.
func (c *Checker) Tick(at time.Time) {
	c.now = at
	c.overdueStarts()
	c.overdueCauses()
}

// Fail takes note of a violation that somebody else has found. Keys name the objects concerned.
func (c *Checker) Fail(at time.Time, check Check, keys []string, text string) {
	c.now = at
	c.fail(check, keys, "%s", text)
}

// Made counts a check that somebody else makes.
func (c *Checker) Made(check Check) { c.counts[check]++ }

// fail takes note of a violation; of one check about one object only the first.
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

// Violations returns what has been found so far.
func (c *Checker) Violations() []Violation { return c.violations }
