// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Option extends the program.
type Option func(*program)

// WithPlugin adds a plugin that configurations may name. The name must be unique: a duplicate, also of a built-in
// plugin, ends the program at its start.
func WithPlugin(name string, spec framework.PluginSpec) Option {
	return func(p *program) {
		p.extend = append(p.extend, func(r *framework.Registry) error { return r.AddPlugin(name, spec) })
	}
}

// WithAction adds an action that configurations may name; its name must be unique too.
func WithAction(action framework.Action) Option {
	return func(p *program) {
		p.extend = append(p.extend, func(r *framework.Registry) error { return r.AddAction(action) })
	}
}

// program is the built-in scheduler and its extensions.
type program struct {
	extend       []func(*framework.Registry) error
	newScheduler func(scheduler.Options) (Scheduler, error)
	clock        clock.WithTicker
}

func newProgram(options []Option) *program {
	p := &program{newScheduler: newScheduler, clock: clock.RealClock{}}
	for _, option := range options {
		option(p)
	}
	return p
}

// registry returns a new registry of all plugins and actions, extensions included.
func (p *program) registry() (*framework.Registry, error) {
	r, err := builtin.NewRegistry()
	errs := []error{err}
	for _, extend := range p.extend {
		errs = append(errs, extend(r))
	}
	return r, errors.Join(errs...)
}

// Scheduler is the component that the program starts and stops.
type Scheduler interface {
	// Start starts the informers and returns when they are synced. It is called once, before the election, and fails if
	// ctx ends first.
	Start(ctx context.Context) error

	// Run executes cycles until ctx ends, and returns when all decisions are sent or dropped, so that another replica
	// may lead.
	Run(ctx context.Context) error

	// SetConfiguration takes effect between two cycles. After an error, the previous configuration stays in force.
	// Informers that the configuration needs run until ctx ends.
	SetConfiguration(ctx context.Context, c *conf.Configuration) error

	// Synced reports whether the informers are synced.
	Synced() bool

	// Healthy returns an error if the scheduler is stuck. A scheduler that does not lead is healthy.
	Healthy() error
}

// newScheduler builds the scheduler itself.
func newScheduler(options scheduler.Options) (Scheduler, error) {
	return scheduler.New(options)
}
