// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package conf loads the policy file of the scheduler: the actions that a cycle executes, and the plugins, arranged in
// tiers, that it consults.
//
// The format is pkg/apis/config/v1alpha1; files of kube-batch load unchanged. Loading is strict: unknown fields,
// duplicate keys and values out of range are rejected, all in one report, each with its line, its field path and a
// suggestion. A Catalog supplies the names that a file may contain, so this package knows neither the plugins nor the
// cluster.
package conf

import (
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Configuration is a valid policy. It is never modified once it is built.
type Configuration struct {
	// Actions to execute in every cycle, in this order.
	Actions []string

	// Tiers in descending order of precedence.
	Tiers []Tier

	// StarvationAfter is how long a gang is pending before resources are reserved for it; 0: never.
	StarvationAfter time.Duration

	// Expect is how long after the start of a gang the rest of its minResources is reserved; 0: nothing is reserved.
	Expect time.Duration

	// Reservations configures reservations with a start time. The zero value reserves nothing.
	Reservations Reservations

	// GroupSources are the APIs whose PodGroups are read besides those of this scheduler.
	GroupSources api.GroupSources

	// Grouping are the kinds of objects that make gangs of their pods.
	Grouping api.Grouping
}

// Reservations configures reservations with a start time, see v1alpha1.Reservations.
type Reservations struct {
	Depth, Total          int // in gangs; a negative depth is without limit
	Window, After, Margin time.Duration
	PreemptionDelay       time.Duration
}

// Tier is a list of plugins that the scheduler calls as one group, in this order.
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

// Enabled reports whether the plugin may register at an extension point. It may unless the file says
// enable<Point>: false.
func (p Plugin) Enabled(pt Point) bool {
	return !slices.Contains(p.Disabled, pt)
}

// Point is an extension point that can be switched off for one plugin. In the file the switch is "enable" and the name
// of the point; see the fields of v1alpha1.Plugin.
type Point string

// The extension points with a switch.
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

// newConfiguration converts an object whose defaults are set.
func newConfiguration(object *v1alpha1.SchedulerConfiguration) *Configuration {
	c := &Configuration{
		Actions: object.Actions, StarvationAfter: object.StarvationAfter.Duration, Expect: object.Expect.Duration,
		GroupSources: groupSources(object.GroupSources), Grouping: grouping(&object.Grouping),
	}
	if r := object.Reservations; r != nil {
		c.Reservations = Reservations{
			Depth: int(*r.Depth), Total: int(*r.Total), Window: r.Window.Duration, After: r.After.Duration, Margin: r.Margin.Duration,
			PreemptionDelay: r.PreemptionDelay.Duration,
		}
	}
	for _, tier := range object.Tiers {
		var plugins []Plugin
		for _, p := range tier.Plugins {
			plugins = append(plugins, Plugin{Name: p.Name, Arguments: Arguments(p.Arguments), Disabled: disabled(&p)})
		}
		c.Tiers = append(c.Tiers, Tier{Plugins: plugins})
	}
	return c
}

// disabled returns the extension points whose switch is off.
func disabled(p *v1alpha1.Plugin) []Point {
	var points []Point
	for _, s := range []struct {
		point Point
		on    *bool
	}{
		{JobOrder, p.EnableJobOrder},
		{JobReady, p.EnableJobReady},
		{JobPipelined, p.EnableJobPipelined},
		{TaskOrder, p.EnableTaskOrder},
		{Preemptable, p.EnablePreemptable},
		{Reclaimable, p.EnableReclaimable},
		{QueueOrder, p.EnableQueueOrder},
		{Predicate, p.EnablePredicate},
		{NodeOrder, p.EnableNodeOrder},
	} {
		if !*s.on {
			points = append(points, s.point)
		}
	}
	return points
}
