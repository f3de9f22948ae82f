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

// WithPlugin adds a plugin that configurations may name. A name can be taken once; taking one of
// the plugins that come with the scheduler stops the program at its start.
func WithPlugin(name string, spec framework.PluginSpec) Option {
	return func(p *program) {
		p.extend = append(p.extend, func(r *framework.Registry) error { return r.AddPlugin(name, spec) })
	}
}

// WithAction adds an action that configurations may name, under the same rule.
func WithAction(action framework.Action) Option {
	return func(p *program) {
		p.extend = append(p.extend, func(r *framework.Registry) error { return r.AddAction(action) })
	}
}

// program is what the command line runs: what is built in, and what third parties added.
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

// registry returns a new registry of all plugins and actions.
func (p *program) registry() (*framework.Registry, error) {
	r, err := builtin.NewRegistry()
	errs := []error{err}
	for _, extend := range p.extend {
		errs = append(errs, extend(r))
	}
	return r, errors.Join(errs...)
}

// Scheduler is what the program starts, drives and stops.
type Scheduler interface {
	// Start starts the informers and waits until they are synced. It is called once, before
	// leadership is asked for, and fails when ctx ends before that.
	Start(ctx context.Context) error

	// Run executes cycles until ctx ends, and returns when everything that was decided is sent or
	// given up, so that another replica may take over.
	Run(ctx context.Context) error

	// SetConfiguration takes effect between two cycles. After an error the old one is in force.
	// Informers that the configuration needs run until ctx ends.
	SetConfiguration(ctx context.Context, c *conf.Configuration) error

	// Synced tells whether the informers are synced.
	Synced() bool

	// Healthy returns what is wrong, nil if nothing is. A scheduler that does not lead is healthy.
	Healthy() error
}

// newScheduler builds the scheduler itself.
func newScheduler(options scheduler.Options) (Scheduler, error) {
	return scheduler.New(options)
}
