// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

// benchmark is a fixture with one or more cycles.
type benchmark struct {
	name   string
	about  string // for -list
	skip   string // why it cannot run here; empty: it can
	evicts bool   // with the actions that evict; else with those of the built-in configuration

	reservations conf.Reservations // with a start time
	plugin       string            // one more, with its defaults; empty: none
	build        func() *fixture
	whole        func(context.Context, *fixture) (cost, error) // runs a whole program instead of cycles; nil: run the cycles
	cycles       []cycle
}

// cycle is one cycle with its expected decisions and cost.
type cycle struct {
	name    string  // part of the names of figures; empty if there is only one
	arrives change  // change before the cycle; nil: none
	again   int     // number of repetitions, all measured; the last one is checked
	want    outcome // nil: any outcome that passes check
	check   check   // further check before the session closes; nil: none
	limits  []limit
}

// change adds changed objects to update, all of them younger than the fixture. It is called with 0, 1 and so on for
// repeated cycles.
type change func(w, update *fixture, i int)

// check checks a model and its open session; it returns figures and problems.
type check func(*model.Cluster) (found []figures.Figure, wrong []string)

// effects only records decisions.
type effects struct{ decisions []api.Decision }

func (e *effects) Commit(decisions []api.Decision) { e.decisions = append(e.decisions, decisions...) }

// newProfile builds the built-in plugins in the built-in tiers, with the built-in actions or with all actions. Further plugins
// are in a tier of their own; empty names are ignored.
func newProfile(clock clock.PassiveClock, evicts bool, reservations conf.Reservations, further ...string) (*framework.Profile, error) {
	registry, err := builtin.NewRegistry()
	if err != nil {
		return nil, err
	}
	policy, err := conf.Default(registry.Catalog())
	if err != nil {
		return nil, err
	}
	actions := policy.Actions
	if evicts {
		actions = []string{"reclaim", "allocate", "backfill", "preempt"}
	}
	for _, name := range further {
		if name != "" {
			policy.Tiers = append(policy.Tiers, conf.Tier{Plugins: []conf.Plugin{{Name: name}}})
		}
	}
	return registry.NewProfile(
		&conf.Configuration{Actions: actions, Tiers: policy.Tiers, Reservations: reservations},
		framework.Handle{Informers: informers.NewSharedInformerFactory(fake.NewClientset(), 0), Clock: clock})
}

// measure runs a benchmark several times, each time on a new model with new plugins, and returns its figures:
// medians. Problems are wrong outcomes.
func (b benchmark) measure(ctx context.Context, repeat int, say progress) (list []figures.Figure, problems []string, err error) {
	say("%s: %s", b.name, b.about)
	w := b.build()
	runs := make([][]cost, len(b.cycles)) // by cycle
	var found []figures.Figure
	for i := 0; i < repeat && len(problems) == 0; i++ {
		r := trial{benchmark: b, ctx: ctx, fixture: w, cost: make([][]cost, len(b.cycles))}
		if err := r.run(); err != nil {
			return nil, nil, err
		}
		for n, c := range b.cycles {
			runs[n] = append(runs[n], r.cost[n]...)
			first := r.cost[n][0]
			say("%s: %d of %d took %.2f ms, and %.2f ms of processor time", b.figure(c, "cycle"), i+1, repeat,
				milliseconds.of(first, nil), first.processor.Seconds()*1e3)
		}
		problems, found = r.wrong, r.records
	}
	for n, c := range b.cycles {
		for _, l := range c.limits {
			figure, spread := l.check(runs[n])
			figure.Name = b.figure(c, l.name)
			figure.OK = figure.OK && len(problems) == 0
			say("%s: %s", figure.Name, spread)
			list = append(list, figure)
		}
	}
	return append(list, found...), problems, nil
}

// trial is one run of a benchmark.
type trial struct {
	benchmark
	ctx     context.Context
	fixture *fixture
	model   *model.Cluster
	cost    [][]cost // by cycle
	records []figures.Figure
	wrong   []string

	generation uint64 // of the model when the last session had closed
}

func (r *trial) run() error {
	if r.whole == nil {
		return r.cycles()
	}
	took, err := r.whole(r.ctx, r.fixture)
	r.cost[0] = append(r.cost[0], took)
	return err
}

// cycles runs the cycles on one model, with one second between them.
func (r *trial) cycles() error {
	now := r.fixture.clock.Add(time.Hour)
	clock := clocktesting.NewFakePassiveClock(now)
	profile, err := newProfile(clock, r.evicts, r.reservations, r.plugin)
	if err != nil {
		return err
	}
	r.model = r.fixture.model()
	for n, c := range r.benchmark.cycles {
		for i := range 1 + c.again {
			update := &fixture{clock: now}
			if c.arrives != nil {
				c.arrives(r.fixture, update, i)
			}
			if i == 0 {
				runtime.GC()
			}
			took, err := r.cycle(c, i, update, profile)
			if err != nil {
				return err
			}
			r.cost[n] = append(r.cost[n], took)
			now = now.Add(time.Second)
			clock.SetTime(now)
		}
		if err := audit.Model(r.model); err != nil {
			r.wrong = append(r.wrong, err.Error())
		}
	}
	return nil
}

// figure returns the name of a figure.
func (b benchmark) figure(c cycle, name string) string {
	if c.name != "" {
		name = c.name + "/" + name
	}
	return b.name + "/" + name
}

// cycle applies the update and runs one cycle. The names of the benchmark and of the cycle label the samples of a CPU profile.
func (r *trial) cycle(c cycle, i int, update *fixture, profile *framework.Profile) (cost, error) {
	// Recording must not be measured: in full size, copying the list takes tens of milliseconds.
	took, effects := newCost(), &effects{decisions: make([]api.Decision, 0, len(r.fixture.pods)-r.fixture.running)}
	timed := func(step string, do func(context.Context)) {
		took.measure(step, func() { pprof.Do(r.ctx, pprof.Labels("decide", path.Join(r.name, c.name), "step", step), do) })
	}
	timed("apply", func(context.Context) { update.applyTo(r.model) })
	if r.model.Generations().Model == r.generation { // the scheduler opens no session either
		return took, nil
	}
	_, _, err := profile.Run(r.ctx, r.model, effects, logr.Discard(), framework.Hooks{
		Around: func(_ context.Context, step string, run func(context.Context)) { timed(step, run) },
		AfterAction: func(_ *framework.Session, action framework.Action, err error) error {
			if err != nil {
				return fmt.Errorf("action %s: %w", action.Name(), err)
			}
			return nil
		},
		BeforeClose: func(*framework.Session) { r.verify(c, i, effects.decisions) },
	})
	r.generation = r.model.Generations().Model
	return took, err
}

// verify records what is wrong with the decisions of a session that has not closed yet.
func (r *trial) verify(c cycle, i int, decisions []api.Decision) {
	if i == c.again {
		r.wrong = append(r.wrong, faults(r.model, decisions, c.want)...)
	} else if len(decisions) > 0 { // without outcomeOf, which would disturb the next cycle
		r.wrong = append(r.wrong, fmt.Sprintf("%d decisions in a cycle that is repeated", len(decisions)))
	}
	if c.check != nil {
		found, wrong := c.check(r.model)
		r.records, r.wrong = append(r.records, found...), append(r.wrong, wrong...)
	}
}
