// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Plugin has functions at extension points. OnSessionOpen registers them, and OnSessionClose drops what they
// keep for the session. Both are called once per session, on the scheduling goroutine.
type Plugin interface {
	Name() string
	OnSessionOpen(ssn *Session)
	OnSessionClose(ssn *Session)
}

// Action is one step of a cycle. An error ends the action, not the cycle; that a job cannot be
// placed is not an error.
type Action interface {
	Name() string
	Execute(ctx context.Context, ssn *Session) error
}

// Effects carries out what statements have decided. Commit takes the decisions of one
// statement; a gang's decisions come in one call and are carried out together. It must not
// keep references to the model: it copies what it needs before it returns, and takes over the
// reservations.
type Effects interface {
	Commit(decisions []api.Decision)
}

// Handle is what plugins may use outside of the model.
type Handle struct {
	// Informers serve upstream's plugins, which read claims, volumes and services from listers.
	Informers informers.SharedInformerFactory
	// Kube writes what must be written before pods are bound; nil if nothing is written.
	Kube kubernetes.Interface
	// Clock is the time source of sessions; nil is the real clock.
	Clock clock.PassiveClock
	// GangGrace is how long a gang may run with fewer members than it needs before it is degraded; 0 is without limit.
	GangGrace time.Duration
	// Changed is called by plugins that read objects outside of the model, after they have seen a change, from any
	// goroutine: a session may decide otherwise now. Nil if sessions do not depend on it.
	Changed func()
}

// NotifyChange calls Changed.
func (h Handle) NotifyChange() {
	if h.Changed != nil {
		h.Changed()
	}
}

// PluginFactory makes a plugin and reads its arguments, all of them. What is wrong with those is the Decoder's to say.
type PluginFactory func(*conf.Decoder, Handle) (Plugin, error)

// PluginSpec is how a plugin is registered.
type PluginSpec struct {
	New PluginFactory
	// Check reads the plugin's arguments without making it, for "config check" and the reference; nil if the plugin
	// has none.
	Check conf.ArgumentCheck
	// NeverPermits lists those of the extension points Preemptable and Reclaimable at which the plugin never votes
	// api.Permit. The scheduler warns about an action that no configured plugin permits to evict.
	NeverPermits []conf.Point
	// Without is what happens if no tier of a configuration names the plugin, for a warning; empty: nothing that needs one.
	Without string
}

// Registry knows the plugins and actions that a configuration may name, and the components that all configurations
// have. Main builds it, and does not change it once it has made a profile.
type Registry struct {
	plugins    map[string]PluginSpec
	actions    map[string]Action
	components []component
	advice     conf.Advice
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{plugins: map[string]PluginSpec{}, actions: map[string]Action{}}
}

// AddPlugin registers a plugin; a name can be taken once.
func (r *Registry) AddPlugin(name string, spec PluginSpec) error {
	if _, taken := r.plugins[name]; taken {
		return fmt.Errorf("plugin %q is registered twice", name)
	}
	if spec.New == nil {
		return fmt.Errorf("plugin %q has no factory", name)
	}
	r.plugins[name] = spec
	return nil
}

// AddAction registers an action under its own name, which can be taken once.
func (r *Registry) AddAction(action Action) error {
	if _, taken := r.actions[action.Name()]; taken {
		return fmt.Errorf("action %q is registered twice", action.Name())
	}
	r.actions[action.Name()] = action
	return nil
}

// SetAdvice sets what to do about actions and plugins of another scheduler that configurations name.
func (r *Registry) SetAdvice(advice conf.Advice) { r.advice = advice }

// Catalog lists what configurations may name.
func (r *Registry) Catalog() conf.Catalog {
	c := conf.Catalog{Plugins: map[string]conf.PluginInfo{}, Advice: r.advice}
	for name := range r.actions {
		c.Actions = append(c.Actions, name)
	}
	slices.Sort(c.Actions)
	for name, spec := range r.plugins {
		c.Plugins[name] = conf.PluginInfo{Arguments: spec.Check, NeverPermits: spec.NeverPermits, Without: spec.Without}
	}
	return c
}

// Profile is a configuration with its plugins: sessions are opened with it. Plugins, and what is remembered with
// them, live as long as the profile, which is until the configuration changes.
type Profile struct {
	registry      *Registry
	configuration *conf.Configuration
	handle        Handle

	tiers  [][]configured
	clock  clock.PassiveClock
	memory *memory
	tryAll bool

	// model is what the components were made for; nil before the first session.
	model      *model.Cluster
	components []configured
	actions    []Action
}

type configured struct {
	Plugin
	conf conf.Plugin
}

// NewProfile makes the plugins of a configuration that was checked against the catalog.
func (r *Registry) NewProfile(c *conf.Configuration, handle Handle) (*Profile, error) {
	p := &Profile{registry: r, configuration: c, handle: handle, clock: handle.Clock}
	if p.clock == nil {
		p.clock = clock.RealClock{}
	}
	for _, name := range c.Actions {
		if _, ok := r.actions[name]; !ok {
			return nil, fmt.Errorf("action %q is not registered", name)
		}
	}
	for _, tier := range c.Tiers {
		var plugins []configured
		for _, option := range tier.Plugins {
			spec, ok := r.plugins[option.Name]
			if !ok {
				return nil, fmt.Errorf("plugin %q is not registered", option.Name)
			}
			arguments := option.Arguments.Decoder(nil)
			plugin, err := spec.New(arguments, handle)
			if err = errors.Join(err, arguments.Done().ToAggregate()); err != nil {
				return nil, fmt.Errorf("plugin %s: %w", option.Name, err)
			}
			plugins = append(plugins, configured{plugin, option})
		}
		p.tiers = append(p.tiers, plugins)
	}
	return p, nil
}
