// Package conf reads the policy file of the scheduler: which actions run in a cycle, and which
// plugins, arranged in tiers, have a say in it.
//
// The format is that of kube-batch, whose files load unchanged, but nothing in a file is forgiven:
// what is misspelt, given twice or out of range is refused, all of it at once, with the line, the
// field path and a suggestion. What may be named in a file comes from a Catalog, so that this
// package knows neither the plugins nor the cluster.
package conf

import (
	"slices"
	"time"
)

// Configuration is a valid policy. It is never modified once it is built.
type Configuration struct {
	// Actions to execute in every cycle, in this order.
	Actions []string

	// Tiers in descending order of precedence.
	Tiers []Tier

	// StarvationAfter is how long a gang waits before room is set aside for it; 0: for ever.
	StarvationAfter time.Duration
}

// DefaultStarvationAfter holds where the file does not name it.
const DefaultStarvationAfter = 5 * time.Minute

// Tier is a list of plugins that are asked together, in this order.
type Tier struct {
	Plugins []Plugin
}

// Plugin is one plugin as configured.
type Plugin struct {
	Name string

	// Arguments that the plugin's own check has accepted; nil if the file has none.
	Arguments Arguments

	// Disabled lists the extension points that the file switches off for this plugin.
	Disabled []Point
}

// Enabled tells whether the plugin may register at an extension point. It may unless the file
// says enable<Point>: false.
func (p Plugin) Enabled(pt Point) bool {
	return !slices.Contains(p.Disabled, pt)
}

// Point is an extension point that can be switched off for one plugin.
type Point string

// The extension points with a switch. In the file the switch is called "enable" and the name of
// the point.
const (
	JobOrder     Point = "JobOrder"
	JobReady     Point = "JobReady"
	JobPipelined Point = "JobPipelined"
	TaskOrder    Point = "TaskOrder"
	Preemptable  Point = "Preemptable"
	Reclaimable  Point = "Reclaimable"
	QueueOrder   Point = "QueueOrder"
	Predicate    Point = "Predicate"
	NodeOrder    Point = "NodeOrder"
)

// Points lists all that have a switch, in the order in which Plugin.Disabled holds them.
func Points() []Point {
	return []Point{
		JobOrder, JobReady, JobPipelined, TaskOrder, Preemptable, Reclaimable, QueueOrder, Predicate, NodeOrder,
	}
}

// Switch is how the file spells the switch of an extension point.
func (pt Point) Switch() string {
	return "enable" + string(pt)
}

// About says what a plugin is asked at the extension point.
func (pt Point) About() string {
	switch pt {
	case JobOrder:
		return "which of two jobs goes first?"
	case JobReady:
		return "does a job have all that it needs to start?"
	case JobPipelined:
		return "will it have that once pods that are being deleted are gone?"
	case TaskOrder:
		return "which of two pods of a job goes first?"
	case Preemptable:
		return "may this pod be evicted for a job of its own queue?"
	case Reclaimable:
		return "may this pod be evicted for a job of another queue?"
	case QueueOrder:
		return "which of two queues goes first?"
	case Predicate:
		return "can this node run this pod?"
	case NodeOrder:
		return "how good is this node for this pod?"
	}
	return ""
}
