// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// ComponentSpec is how a policy is registered that is part of every profile, whatever the configuration says.
type ComponentSpec struct {
	// Name is the name of the component and of its action, as in logs and metrics. Configurations do not name it.
	Name string
	// New makes the component for a model. A profile calls it when it opens its first session on that model, so
	// that the component may keep what it knows about the model in its fields. The action is nil if the component
	// has none.
	New func(Environment) (Plugin, Action)
}

// Environment is what a component is made for.
type Environment struct {
	Handle
	Configuration *conf.Configuration
	Cluster       api.ClusterView
}

// component is a registered component with the place of its action in a cycle.
type component struct {
	ComponentSpec
	runs  position
	after []string // of runsLast: only if the configuration has one of these actions
}

type position int8

const (
	noAction  position = iota // the component has no action
	runsFirst                 // before the actions of the configuration
	runsLast                  // after them
)

// AddComponent registers a component without an action. In each session components open after the plugins, in the
// order of their registration.
func (r *Registry) AddComponent(spec ComponentSpec) error {
	return r.addComponent(component{spec, noAction, nil})
}

// AddFirst registers a component whose action runs before the actions of every configuration, and after those of the
// components that were registered with AddFirst before.
func (r *Registry) AddFirst(spec ComponentSpec) error {
	return r.addComponent(component{spec, runsFirst, nil})
}

// AddLast registers a component whose action runs after the actions of every configuration that has one of the named
// actions. The component is part of all profiles.
func (r *Registry) AddLast(spec ComponentSpec, after ...string) error {
	return r.addComponent(component{spec, runsLast, after})
}

func (r *Registry) addComponent(c component) error {
	if slices.ContainsFunc(r.components, func(other component) bool { return other.Name == c.Name }) {
		return fmt.Errorf("component %q is registered twice", c.Name)
	}
	if c.New == nil {
		return fmt.Errorf("component %q has no factory", c.Name)
	}
	r.components = append(r.components, c)
	return nil
}

// ListedAction is one of the actions of a cycle.
type ListedAction struct {
	Name string
	// Always is set of actions that run although the configuration does not name them.
	Always bool
}

// ActionsOf lists the actions that run in each cycle with a configuration, in their order.
func (r *Registry) ActionsOf(c *conf.Configuration) []ListedAction {
	var list []ListedAction
	for _, component := range r.components {
		if component.runs == runsFirst {
			list = append(list, ListedAction{component.Name, true})
		}
	}
	for _, name := range c.Actions {
		list = append(list, ListedAction{Name: name})
	}
	for _, component := range r.components {
		if component.runs == runsLast && containsAny(c.Actions, component.after) {
			list = append(list, ListedAction{component.Name, true})
		}
	}
	return list
}

func containsAny(list, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(list, name) })
}

// bind makes the components for a model, unless the profile has them already, and puts their actions in place.
func (p *Profile) bind(cluster *model.Cluster) {
	if p.model == cluster {
		return
	}
	p.model, p.components, p.actions = cluster, nil, nil
	made := map[string]Action{}
	for _, c := range p.registry.components {
		plugin, action := c.New(Environment{p.handle, p.configuration, cluster})
		if (action == nil) != (c.runs == noAction) {
			panic(fmt.Sprintf("component %q is registered with an action and has none, or has one that never runs", c.Name))
		}
		p.components = append(p.components, configured{plugin, conf.Plugin{Name: c.Name}})
		made[c.Name] = action
	}
	for _, listed := range p.registry.ActionsOf(p.configuration) {
		if listed.Always {
			p.actions = append(p.actions, made[listed.Name])
		} else {
			p.actions = append(p.actions, p.registry.actions[listed.Name])
		}
	}
}
