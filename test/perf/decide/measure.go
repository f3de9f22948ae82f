package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

// benchmark is a world with one or more cycles in it.
type benchmark struct {
	name   string
	about  string // in the list
	build  func() *world
	cycles []cycle
}

// cycle is what a session must decide, and how fast.
type cycle struct {
	name    string       // part of the names of figures; empty if there is only one
	arrives func(*world) // adds what is new, all of it younger than the rest; nil: nothing
	want    tally
	limits  []limit
}

// limit bounds the time of some steps of a cycle.
type limit struct {
	name         string
	steps        []string // actions; nil for the whole cycle, opening and closing the session included
	milliseconds float64  // 0: the time is only told
}

// took is the time of each step of a cycle.
type took map[string]time.Duration

func (t took) of(steps []string) time.Duration {
	var sum time.Duration
	for step, d := range t {
		if len(steps) == 0 || slices.Contains(steps, step) {
			sum += d
		}
	}
	return sum
}

// effects only records.
type effects struct{ decisions []api.Decision }

func (e *effects) Commit(decisions []api.Decision) { e.decisions = append(e.decisions, decisions...) }

// newProfile makes the built-in plugins in the built-in tiers, with all actions.
func newProfile(clock clock.PassiveClock) (*framework.Profile, error) {
	registry, err := builtin.NewRegistry()
	if err != nil {
		return nil, err
	}
	policy, err := conf.Default(registry.Catalog())
	if err != nil {
		return nil, err
	}
	return registry.NewProfile(
		&conf.Configuration{Actions: []string{"reclaim", "allocate", "backfill", "preempt"}, Tiers: policy.Tiers},
		framework.Handle{Informers: informers.NewSharedInformerFactory(fake.NewClientset(), 0), Clock: clock})
}

// measure runs a benchmark several times, each time on a new model with new plugins, which
// remember nothing, and returns its figures: medians. Problems are outcomes that are wrong.
func (b benchmark) measure(ctx context.Context, repeat int, say progress) (list []figures.Figure, problems []string, err error) {
	say("%s: %s", b.name, b.about)
	w := b.build()
	times := make([][]took, len(b.cycles)) // by cycle and repetition
	for i := 0; i < repeat && len(problems) == 0; i++ {
		took, wrong, err := b.once(ctx, w)
		if err != nil {
			return nil, nil, err
		}
		for n, c := range b.cycles {
			times[n] = append(times[n], took[n])
			say("%s: %d of %d took %.2f ms", b.figure(c, "cycle"), i+1, repeat, milliseconds(took[n].of(nil)))
		}
		problems = wrong
	}
	for n, c := range b.cycles {
		for _, l := range c.limits {
			figure, spread := l.judge(times[n])
			figure.Name = b.figure(c, l.name)
			figure.OK = figure.OK && len(problems) == 0
			say("%s: %s", figure.Name, spread)
			list = append(list, figure)
		}
	}
	return list, problems, nil
}

// once runs the cycles one after the other, a second apart, on one model.
func (b benchmark) once(ctx context.Context, w *world) (times []took, problems []string, err error) {
	now := w.clock.Add(time.Hour)
	clock := clocktesting.NewFakePassiveClock(now)
	profile, err := newProfile(clock)
	if err != nil {
		return nil, nil, err
	}
	model := w.model()
	for _, c := range b.cycles {
		if c.arrives != nil {
			news := &world{clock: now}
			c.arrives(news)
			news.tell(model)
		}
		took, wrong, err := c.run(ctx, model, profile, b.name)
		if err != nil {
			return nil, nil, err
		}
		times, problems = append(times, took), append(problems, wrong...)
		now = now.Add(time.Second)
		clock.SetTime(now)
	}
	return times, problems, nil
}

// figure is the name of a figure.
func (b benchmark) figure(c cycle, name string) string {
	if c.name != "" {
		name = c.name + "/" + name
	}
	return b.name + "/" + name
}

// judge compares the median with the bound.
func (l limit) judge(times []took) (figure figures.Figure, spread string) {
	var sorted []float64
	for _, t := range times {
		sorted = append(sorted, milliseconds(t.of(l.steps)))
	}
	slices.Sort(sorted)
	figure = figures.Figure{Value: sorted[len(sorted)/2], Unit: "ms", OK: true}
	if l.milliseconds > 0 {
		figure.Bound = &l.milliseconds
		figure.OK = figure.Value <= l.milliseconds
	}
	return figure, fmt.Sprintf("median %.2f ms (%.2f to %.2f)", figure.Value, sorted[0], sorted[len(sorted)-1])
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// run runs one cycle. The name labels what a CPU profile has of it.
func (c cycle) run(ctx context.Context, model *api.Cluster, profile *framework.Profile, name string) (took, []string, error) {
	runtime.GC()
	times, effects := took{}, &effects{}
	timed := func(step string, do func(context.Context)) {
		began := time.Now()
		pprof.Do(ctx, pprof.Labels("decide", name, "step", step), do)
		times[step] += time.Since(began)
	}
	var ssn *framework.Session
	timed("open", func(context.Context) { ssn = profile.Open(model, effects, logr.Discard()) })
	for _, action := range profile.Actions {
		var err error
		timed(action.Name(), func(ctx context.Context) { err = action.Execute(ctx, ssn) })
		if err != nil {
			return nil, nil, fmt.Errorf("action %s: %w", action.Name(), err)
		}
	}
	wrong := faults(model, effects.decisions, c.want)
	timed("close", func(context.Context) {
		ssn.Close()
		model.Settle()
	})
	if err := model.Audit(); err != nil {
		wrong = append(wrong, err.Error())
	}
	return times, wrong, nil
}
