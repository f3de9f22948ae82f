// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/topology"
)

// relaxed drops or relaxes rules that prevent repeated evictions.
type relaxed struct {
	jobs   func(before, after, left api.Share) bool // instead of api.Fairer in drf
	queues func(before, after, left api.Share) bool // instead of api.Fairer in proportion

	requestedOnly    bool // entitlement considers only the dimensions that the claim requests
	noCooldowns      bool // jobs that were evicted by entitlement may borrow again
	withoutPipelined bool // pipelined tasks do not count in the shares of queues
	noNominations    bool // resources are not nominated for preemptors
}

// notWorse is the obvious rule: it permits evictions that do not change the share of the preemptor.
func notWorse(before, after, left api.Share) bool {
	return before.Compare(after) <= 0 && after.Compare(left) <= 0
}

// registry returns the registry of builtin with the relaxed rules.
func (w relaxed) registry(t schedtest.T) *framework.Registry {
	t.Helper()
	r := framework.NewRegistry()
	if !w.noNominations {
		if err := r.AddFirst(reservation.Nominated()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		r.AddComponent(topology.Required()),
		r.AddComponent(reservation.Overdue()),
		r.AddComponent(reservation.Expected()),
		r.AddFirst(reservation.Starvation()),
		r.AddFirst(reservation.Overrun()),
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

func (w relaxed) drf() framework.PluginSpec {
	if w.jobs == nil {
		return drf.Spec()
	}
	return framework.PluginSpec{New: func(*conf.Decoder, framework.Handle) (framework.Plugin, error) { return relaxedDRF{w.jobs}, nil }}
}

// relaxedDRF is drf with another rule about which job may evict from which.
type relaxedDRF struct {
	fairer func(before, after, left api.Share) bool
}

func (relaxedDRF) Name() string { return drf.Name }

func (p relaxedDRF) OnSessionOpen(ssn *framework.Session) {
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

func (relaxedDRF) OnSessionClose(*framework.Session) {}

func (w relaxed) proportion() framework.PluginSpec {
	rules := proportion.DefaultRules()
	if w.queues != nil {
		rules.Fairer = w.queues
	}
	if w.requestedOnly {
		rules.EntitlementCounts = func(claim *api.Claim, dimension int) bool { return claim.Request.At(dimension) > 0 }
	}
	if w.withoutPipelined {
		rules.Held = func(q *api.QueueInfo) api.Resource { return q.Allocated.Minus(pipelined(q, nil)) }
		rules.Before = func(c *api.Claim) api.Resource { return c.QueueHeld.Minus(pipelined(c.Job.Queue, c.Tasks)) }
	}
	spec := proportion.SpecWith(rules)
	if w.noCooldowns {
		return framework.PluginSpec{New: func(d *conf.Decoder, handle framework.Handle) (framework.Plugin, error) {
			plugin, err := spec.New(d, handle)
			return &stateless{plugin, func() (framework.Plugin, error) { return spec.New(d, handle) }}, err
		}}
	}
	return spec
}

// pipelined returns the requests of the pipelined tasks of a queue, without those of some tasks.
func pipelined(q *api.QueueInfo, except []*api.TaskInfo) api.Resource {
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

// stateless is a plugin that is created again for each session.
type stateless struct {
	framework.Plugin
	create func() (framework.Plugin, error)
}

func (p *stateless) OnSessionOpen(ssn *framework.Session) {
	p.Plugin, _ = p.create()
	p.Plugin.OnSessionOpen(ssn)
}

// TestRelaxedRulesRepeatStates asserts that each rule is necessary: without it there are clusters that never become idle,
// and with all rules they do. Where two rules must be relaxed together, either of them alone suffices.
func TestRelaxedRulesRepeatStates(t *testing.T) {
	cases := map[string]struct {
		given    []Row
		without  relaxed
		suffices []relaxed
	}{
		"jobs whose shares do not change evict each other: t <= t' <= g'": {
			given: Given(Node("n1", "10cpu 10Gi"), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu 5Gi", "n1"), Pending(1, "2cpu")),
				Group("q/b", 1, Running(1, "1cpu 5Gi", "n1"), Pending(1, "2cpu")),
				Group("q/c", 1, Running(6, "1cpu", "n1"))),
			without: relaxed{jobs: notWorse},
		},
		"queues whose shares do not change evict each other": {
			// a has twice the memory that it deserves and b twice the gpus.
			given: Given(Node("n1", "6cpu 6Gi 6gpu"), Queue("a", 1), Queue("b", 1), Queue("c", 1), Budget("never", 0, "app", "x"),
				Group("a/memory", 1, Running(1, "6Gi", "n1", Label("app", "x"))),
				Group("b/gpus", 1, Running(1, "6gpu", "n1", Label("app", "x"))),
				Group("c/both", 1, Pending(1, "6Gi 6gpu")),
				Group("a/cpus", 1, Running(1, "2cpu", "n1"), Pending(1, "2cpu")),
				Group("b/more", 1, Running(2, "2cpu", "n1"))),
			without: relaxed{queues: notWorse},
		},
		"a queue with more memory than it deserves reclaims cpus, and other queues reclaim them because of the memory": {
			given: Given(Node("n1", "4cpu 4Gi"), Queue("a", 1), Queue("b", 1), Budget("never", 0, "app", "x"),
				Group("a/memory", 1, Running(1, "4Gi", "n1", Label("app", "x"))),
				Group("b/wants", 1, Pending(1, "4Gi")),
				Group("a/cpus", 1, Pending(3, "1cpu")),
				Group("b/more", 1, Running(1, "3cpu", "n1"))),
			without:  relaxed{requestedOnly: true, noCooldowns: true},
			suffices: []relaxed{{requestedOnly: true}, {noCooldowns: true}},
		},
		"S20: a gang that was evicted because it borrowed borrows again": {
			given: Given(Node("n1", "10cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/gang", 10, Running(10, "1cpu", "n1")),
				Group("t/singles", 1, Pending(5, "1cpu"))),
			without:  relaxed{noCooldowns: true, noNominations: true},
			suffices: []relaxed{{noCooldowns: true}, {noNominations: true}},
		},
		"a gang whose queue must not borrow evicts, task by task, for resources that it must not use": {
			given: Given(Node("n1", "8cpu"), Queue("u", 1), Queue("v", 1), Queue("n", 1, NotReclaimable()),
				Group("u/singles", 1, Running(8, "1cpu", "n1")),
				Group("v/huge", 1, Pending(1, "8cpu")),
				Group("n/gang", 3, Pending(3, "1cpu"))),
			without: relaxed{withoutPipelined: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for grace := range 3 {
				scenario := scenario{given: tc.given, noReservations: true, grace: grace, recreate: true, repeats: 9}
				for _, rules := range append(tc.suffices, relaxed{}) {
					if err := scenario.run(New(t, rules.registry(t), tc.given, scenario.config(), WithoutConvergenceChecks())); err != nil {
						t.Errorf("grace %d, %+v: %v", grace, rules, err)
					}
				}
				err := scenario.run(New(t, tc.without.registry(t), tc.given, scenario.config(), WithoutConvergenceChecks()))
				if err == nil || !strings.HasPrefix(err.Error(), "a state repeats") {
					t.Errorf("grace %d: got error %v, want a state that repeats", grace, err)
				}
			}
		})
	}
}

// TestRelaxedRulesAreFound asserts that the checks of TestEvictionsEnd find each relaxed rule, with clusters of one
// generator. For the rarest rule it begins with a later seed, so that the result does not depend on chance.
func TestRelaxedRulesAreFound(t *testing.T) {
	const (
		checks = 500
		jobs   = "jobs that hold one dimension and contend in another"
		queues = "queues that hold one dimension and contend in another"
	)
	cases := map[string]struct {
		rules     relaxed
		generator string
		from      int
	}{
		"shares of jobs that do not change":            {rules: relaxed{jobs: notWorse}, generator: jobs},
		"shares of queues that do not change":          {rules: relaxed{queues: notWorse}, generator: queues, from: 2700},
		"entitlement by the requested dimensions only": {rules: relaxed{requestedOnly: true}, generator: queues},
		"entitlement without cooldowns":                {rules: relaxed{noCooldowns: true}, generator: queues},
		"pipelined tasks do not count":                 {rules: relaxed{withoutPipelined: true}, generator: queues},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for check := tc.from; check < tc.from+checks; check++ {
				if failure := tc.rules.check(generators()[tc.generator], check); failure != "" {
					t.Logf("check %d: %s", check, failure)
					return
				}
			}
			t.Errorf("not found by %d checks from %d", checks, tc.from)
		})
	}
}

// check runs one check with a cluster of a generator and returns its failure, or "".
func (w relaxed) check(g generator, seed int) (failure string) {
	defer func() {
		if r := recover(); r != nil {
			failure = fmt.Sprint(r)
		}
	}()
	scenario := rapid.Custom(g.scenario).Example(seed)
	c := New(panicT{}, w.registry(panicT{}), scenario.given, scenario.config())
	if err := scenario.run(c); err != nil {
		return err.Error()
	}
	return ""
}

// panicT is a test that panics when it fails.
type panicT struct{}

func (panicT) Helper()                           {}
func (panicT) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (panicT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (panicT) Context() context.Context          { return context.Background() }
