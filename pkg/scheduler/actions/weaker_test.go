package actions_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/allocate"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/backfill"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/preempt"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/reclaim"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/conformance"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/drf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/gang"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/nodeorder"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/predicates"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/priority"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/proportion"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/reservation"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// weaker is what is left of the rules when some are dropped that keep evictions from going in circles.
type weaker struct {
	jobs   func(before, after, left api.Share) bool // instead of api.Fairer in drf
	queues func(before, after, left api.Share) bool // instead of api.Fairer in proportion

	askedAlone    bool // entitlement looks at the dimensions that the claim asks for, and no others
	noDebts       bool // who was evicted by entitlement may borrow again
	heldAlone     bool // tasks that wait for their room do not count in the shares of queues
	noNominations bool // nobody goes first with what pods were evicted for
}

// plain is the rule that comes to mind first: it lets a taker's share stand still.
func plain(before, after, left api.Share) bool {
	return before.Compare(after) <= 0 && after.Compare(left) <= 0
}

// registry is that of builtin with the weaker rules.
func (w weaker) registry(t schedtest.T) *framework.Registry {
	t.Helper()
	r := framework.NewRegistry()
	if !w.noNominations {
		if err := r.AddFirst(reservation.Nominated()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		r.AddComponent(reservation.Overdue()),
		r.AddFirst(reservation.Starvation()),
		r.AddLast(reservation.Degraded(), preempt.Name, reclaim.Name),
	); err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]framework.PluginSpec{
		gang.Name: gang.Spec(), priority.Name: priority.Spec(), conformance.Name: conformance.Spec(), predicates.Name: predicates.Spec(),
		nodeorder.Name: nodeorder.Spec(), drf.Name: w.drf(), proportion.Name: w.proportion(),
	} {
		if err := r.AddPlugin(name, spec); err != nil {
			t.Fatal(err)
		}
	}
	for _, action := range []framework.Action{allocate.New(), backfill.New(), preempt.New(), reclaim.New()} {
		if err := r.AddAction(action); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (w weaker) drf() framework.PluginSpec {
	if w.jobs == nil {
		return drf.Spec()
	}
	return framework.PluginSpec{New: func(*conf.Decoder, framework.Handle) (framework.Plugin, error) { return weakerDRF{w.jobs}, nil }}
}

// weakerDRF is drf with another rule of which job may evict for its claims from which.
type weakerDRF struct {
	fairer func(before, after, left api.Share) bool
}

func (weakerDRF) Name() string { return drf.Name }

func (p weakerDRF) OnSessionOpen(ssn *framework.Session) {
	share := func(held api.Resource) api.Share { return ssn.Cluster().Dims().Dominant(held, ssn.Nodes().Total()) }
	ssn.AddJobOrderFn(drf.Name, func(a, b *api.JobInfo) int { return share(a.Allocated).Compare(share(b.Allocated)) })
	ssn.AddPreemptableFn(drf.Name, func(claim *api.Claim, unit api.Unit) api.Vote {
		switch before, after := share(claim.JobHeld), share(claim.JobHeld.Plus(claim.Request)); {
		case claim.Job == unit.Job:
			return api.Abstain
		case p.fairer(before, after, share(unit.Job.Allocated.Minus(unit.Request))):
			return api.Permit
		}
		return api.Reject
	})
}

func (weakerDRF) OnSessionClose(*framework.Session) {}

func (w weaker) proportion() framework.PluginSpec {
	rules := proportion.DefaultRules()
	if w.queues != nil {
		rules.Fairer = w.queues
	}
	if w.askedAlone {
		rules.EntitlementCounts = func(claim *api.Claim, dimension int) bool { return claim.Request.At(dimension) > 0 }
	}
	if w.heldAlone {
		rules.Held = func(q *api.QueueInfo) api.Resource { return q.Allocated.Minus(waitedFor(q, nil)) }
		rules.Before = func(c *api.Claim) api.Resource { return c.QueueHeld.Minus(waitedFor(c.Job.Queue, c.Tasks)) }
	}
	spec := proportion.SpecWith(rules)
	if w.noDebts {
		return framework.PluginSpec{New: func(d *conf.Decoder, handle framework.Handle) (framework.Plugin, error) {
			plugin, err := spec.New(d, handle)
			return &forgetful{plugin, func() (framework.Plugin, error) { return spec.New(d, handle) }}, err
		}}
	}
	return spec
}

// waitedFor is what tasks of a queue wait for on their nodes, some of them left out.
func waitedFor(q *api.QueueInfo, except []*api.TaskInfo) api.Resource {
	var sum api.Resource
	for _, j := range q.Jobs {
		for _, t := range j.Tasks {
			if t.Status == api.Pipelined && !slices.Contains(except, t) {
				sum.Add(t.Request)
			}
		}
	}
	return sum
}

// forgetful is a plugin that is made anew for each session.
type forgetful struct {
	framework.Plugin
	again func() (framework.Plugin, error)
}

func (p *forgetful) OnSessionOpen(ssn *framework.Session) {
	p.Plugin, _ = p.again()
	p.Plugin.OnSessionOpen(ssn)
}

// Each of the rules is needed: without it there are clusters that never come to rest, although with
// all of them they do. Where a second rule must go too, either alone is enough.
func TestWeakerRulesGoInCircles(t *testing.T) {
	cases := map[string]struct {
		given   []Row
		without weaker
		enough  []weaker
	}{
		"jobs whose shares stand still rob each other: t <= t' <= g'": {
			given: Given(Node("n1", "10cpu 10Gi"), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu 5Gi", "n1"), Pending(1, "2cpu")),
				Group("q/b", 1, Running(1, "1cpu 5Gi", "n1"), Pending(1, "2cpu")),
				Group("q/c", 1, Running(6, "1cpu", "n1"))),
			without: weaker{jobs: plain},
		},
		"and so do queues": {
			// a has twice the memory that it deserves and b twice the gpus.
			given: Given(Node("n1", "6cpu 6Gi 6gpu"), Queue("a", 1), Queue("b", 1), Queue("c", 1), Budget("never", 0, "app", "x"),
				Group("a/memory", 1, Running(1, "6Gi", "n1", Label("app", "x"))),
				Group("b/gpus", 1, Running(1, "6gpu", "n1", Label("app", "x"))),
				Group("c/both", 1, Pending(1, "6Gi 6gpu")),
				Group("a/cpus", 1, Running(1, "2cpu", "n1"), Pending(1, "2cpu")),
				Group("b/more", 1, Running(2, "2cpu", "n1"))),
			without: weaker{queues: plain},
		},
		"who has too much memory takes the cpus that it deserves, and the others take them back for it": {
			given: Given(Node("n1", "4cpu 4Gi"), Queue("a", 1), Queue("b", 1), Budget("never", 0, "app", "x"),
				Group("a/memory", 1, Running(1, "4Gi", "n1", Label("app", "x"))),
				Group("b/wants", 1, Pending(1, "4Gi")),
				Group("a/cpus", 1, Pending(3, "1cpu")),
				Group("b/more", 1, Running(1, "3cpu", "n1"))),
			without: weaker{askedAlone: true, noDebts: true},
			enough:  []weaker{{askedAlone: true}, {noDebts: true}},
		},
		"S20: a gang that gave back what it had borrowed borrows it again": {
			given: Given(Node("n1", "10cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/gang", 10, Running(10, "1cpu", "n1")),
				Group("t/singles", 1, Pending(5, "1cpu"))),
			without: weaker{noDebts: true, noNominations: true},
			enough:  []weaker{{noDebts: true}, {noNominations: true}},
		},
		"a gang whose queue must not borrow takes room, task by task, that it must not use": {
			given: Given(Node("n1", "8cpu"), Queue("u", 1), Queue("v", 1), Queue("n", 1, NotReclaimable()),
				Group("u/singles", 1, Running(8, "1cpu", "n1")),
				Group("v/huge", 1, Pending(1, "8cpu")),
				Group("n/gang", 3, Pending(3, "1cpu"))),
			without: weaker{heldAlone: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for grace := range 3 {
				course := course{given: tc.given, noForming: true, grace: grace, back: true, patience: 9}
				for _, rules := range append(tc.enough, weaker{}) {
					if err := course.run(New(t, rules.registry(t), tc.given, course.config(), WithoutConvergenceChecks())); err != nil {
						t.Errorf("grace %d, %+v: %v", grace, rules, err)
					}
				}
				err := course.run(New(t, tc.without.registry(t), tc.given, course.config(), WithoutConvergenceChecks()))
				if err == nil || !strings.HasPrefix(err.Error(), "comes back") {
					t.Errorf("grace %d: it should go in circles, and the error is: %v", grace, err)
				}
			}
		})
	}
}

// And the random test finds each weaker rule by itself, within as many checks as it makes. The rarest
// ones have a check to begin with, so that this does not hang on chance.
func TestWeakerRulesAreFound(t *testing.T) {
	const checks = 500
	cases := map[string]struct {
		rules weaker
		from  int
	}{
		"the plain rule between jobs":                 {rules: weaker{jobs: plain}},
		"the plain rule between queues":               {rules: weaker{queues: plain}, from: 900},
		"entitlement by the dimensions asked for":     {rules: weaker{askedAlone: true}, from: 200},
		"entitlement without debts":                   {rules: weaker{noDebts: true}},
		"tasks that wait for their room do not count": {rules: weaker{heldAlone: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for check := tc.from; check < tc.from+checks; check++ {
				if failure := tc.rules.fail(check); failure != "" {
					t.Logf("check %d: %s", check, failure)
					return
				}
			}
			t.Errorf("not found by %d checks from %d", checks, tc.from)
		})
	}
}

// fail runs one check and returns how it fails, or "".
func (w weaker) fail(seed int) (failure string) {
	defer func() {
		if r := recover(); r != nil {
			failure = fmt.Sprint(r)
		}
	}()
	all := themes()
	names := slices.Sorted(maps.Keys(all))
	course := rapid.Custom(all[names[seed%len(names)]].course).Example(seed)
	c := New(probe{}, w.registry(probe{}), course.given, course.config())
	if err := course.run(c); err != nil {
		return err.Error()
	}
	return ""
}

// probe is a test whose failure is a panic.
type probe struct{}

func (probe) Helper()                           {}
func (probe) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (probe) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (probe) Context() context.Context          { return context.Background() }
