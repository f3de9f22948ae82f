// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// fields are fields of the spec of a PodGroup of Kubernetes, besides minCount.
type fields map[string]any

func ofPriority(n int64) fields { return fields{"priority": n} }

// basicOf is a group without a gang; wholeOf one whose pods are evicted together.
func basicOf(priority int64) fields {
	return fields{"schedulingPolicy": map[string]any{"basic": map[string]any{}}, "priority": priority}
}

func wholeOf(of fields) fields {
	of["disruptionMode"] = map[string]any{"all": map[string]any{}}
	return of
}

// ofKubernetes writes PodGroups as those of Kubernetes, with the fields of their titles.
func ofKubernetes(of map[string]fields) Option {
	return WithDialects(func(title string) *Dialect {
		return &Dialect{
			Group: translated(api.SourceNative, func(g *v1alpha1.PodGroup) map[string]any {
				spec := map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(g.Spec.MinMember)}}}
				for field, value := range of[title] {
					spec[field] = value
				}
				return spec
			}),
			Member: dialects()["native"].Member,
		}
	})
}

// named has pods name a PodGroup of Kubernetes that no row declares.
func named(group string) PodOption {
	return Mutate(func(p *v1.Pod) { p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group} })
}

// TestGangsOfKubernetes has the scenarios of the integration tests of gangs in kube-scheduler that need no eviction, each
// from a cluster with one node. docs/design/upstream-scenarios.md lists them.
func TestGangsOfKubernetes(t *testing.T) {
	const all = "bind default/a-0 n\nbind default/a-1 n\nbind default/a-2 n"
	three := Pending(3, "1cpu", Priority(100))
	start := func(t *testing.T, of map[string]fields, rows ...Row) *Scenario {
		return New(t, BuiltIn(t), append(Given(Node("n", "4cpu"), Queue("default", 1)), rows...), ofKubernetes(of))
	}
	for name, play := range map[string]func(t *testing.T){
		"a gang that fits": func(t *testing.T) {
			startsAndWaits(t, start(t, nil, Group("default/a", 3, three)), all)
		},
		"a gang whose last pod comes later, and a single pod meanwhile": func(t *testing.T) {
			s := start(t, nil, Group("default/a", 3, Pending(2, "1cpu", Priority(100))), Plain("p", Pending(1, "1cpu")))
			startsAndWaits(t, s, "bind p-0 n", "default/a NotEnoughPods: 2 of 3 pods")
			s.ConfirmBinds()
			s.Add(More("default/a", Pending(1, "1cpu", Priority(100))))
			startsAndWaits(t, s, all)
		},
		"its last pod comes when the single pod has left too little": func(t *testing.T) {
			s := start(t, nil, Group("default/a", 3, Pending(2, "1cpu")), Plain("p", Pending(1, "2cpu")))
			startsAndWaits(t, s, "bind p-0 n", "default/a NotEnoughPods: 2 of 3 pods")
			s.ConfirmBinds()
			s.Add(More("default/a", Pending(1, "1cpu")))
			startsAndWaits(t, s, "", "default/a NotEnoughResources: needs 3 more pods of 1 cpu, 2 of them could start now")
		},
		"a gang waits for resources, and starts when a pod is deleted": func(t *testing.T) {
			s := start(t, nil, Plain("blocker", Running(1, "2cpu", "n")), Group("default/a", 3, three))
			startsAndWaits(t, s, "", "default/a NotEnoughResources: needs 3 more pods of 1 cpu, 2 of them could start now")
			s.Delete("blocker-0")
			startsAndWaits(t, s, all)
		},
		"surplus waits for resources, and starts when a pod is deleted": func(t *testing.T) {
			s := start(t, nil, Plain("blocker", Running(1, "1cpu", "n")), Group("default/a", 3, Pending(4, "1cpu")))
			startsAndWaits(t, s, all, "default/a-3 NotEnoughResources: needs 1 more pod of 1 cpu")
			s.ConfirmBinds()
			s.Delete("blocker-0")
			startsAndWaits(t, s, "bind default/a-3 n")
		},
		"two gangs whose pods are created in turns: the older group starts": func(t *testing.T) {
			one := Pending(1, "1cpu", Priority(100))
			s := start(t, nil, Group("default/a", 3), Group("default/b", 3), More("default/b", one), More("default/a", one),
				More("default/b", one), More("default/a", one), More("default/b", one), More("default/a", one))
			startsAndWaits(t, s, all, "default/b NotEnoughResources: needs 3 more pods of 1 cpu, 1 of them could start now")
		},
		"a group without a gang starts pod by pod": func(t *testing.T) {
			s := start(t, map[string]fields{"default/a": basicOf(100)}, Group("default/a", 1, Pending(1, "1cpu")))
			startsAndWaits(t, s, "bind default/a-0 n")
			s.ConfirmBinds()
			s.Add(More("default/a", Pending(2, "1cpu")))
			startsAndWaits(t, s, "bind default/a-1 n\nbind default/a-2 n")
		},
		"a group without a gang starts in part": func(t *testing.T) {
			s := start(t, map[string]fields{"default/a": basicOf(100)}, Plain("blocker", Running(1, "2cpu", "n")), Group("default/a", 1, Pending(3, "1cpu")))
			startsAndWaits(t, s, "bind default/a-0 n\nbind default/a-1 n", "a-2 NotEnoughResources")
			s.ConfirmBinds()
			s.Delete("blocker-0")
			startsAndWaits(t, s, "bind default/a-2 n")
		},
		"single pods before and after a group without a gang": func(t *testing.T) {
			s := start(t, map[string]fields{"default/a": basicOf(10)}, Plain("p", Pending(1, "1cpu")), Group("default/a", 1, Pending(3, "2cpu")), Plain("q", Pending(1, "1cpu")))
			startsAndWaits(t, s, "bind p-0 n\nbind default/a-0 n\nbind q-0 n", "a-1 NotEnoughResources", "a-2 NotEnoughResources")
		},
		"pods wait for their group": func(t *testing.T) {
			s := start(t, map[string]fields{"default/b": basicOf(0)}, Plain("p", named("a"), Pending(3, "1cpu")), Plain("q", named("b"), Pending(1, "1cpu")))
			startsAndWaits(t, s, "", `GroupNotFound: PodGroup "a" of Kubernetes (scheduling.k8s.io) does not exist`,
				`GroupNotFound: PodGroup "b" of Kubernetes (scheduling.k8s.io) does not exist`)
			s.Add(Group("default/a", 3), Group("default/b", 1))
			startsAndWaits(t, s, "bind p-0 n\nbind p-1 n\nbind p-2 n\nbind q-0 n")
		},
		"a gang and single pods, by priority": func(t *testing.T) {
			s := start(t, map[string]fields{"default/low": ofPriority(10), "default/high": ofPriority(100)},
				Plain("middle", Priority(50), Pending(2, "1cpu")), Group("default/low", 1, Pending(1, "1cpu", Priority(10))),
				Group("default/high", 3, Pending(3, "1cpu", Priority(100))))
			startsAndWaits(t, s, "bind default/high-0 n\nbind default/high-1 n\nbind default/high-2 n\nbind middle-0 n",
				"default/low NotEnoughResources", "middle-1 NotEnoughResources")
		},
		"a large single pod of high priority does not delay a gang": func(t *testing.T) {
			s := start(t, nil, Plain("p", Priority(100), Pending(1, "5cpu")), Group("default/a", 3, Pending(3, "1cpu")))
			startsAndWaits(t, s, all, "p-0 ExceedsClusterCapacity")
		},
		"a gated pod does not delay the others of its gang, which suffice": func(t *testing.T) { // unlike there
			s := start(t, nil, Group("default/a", 2, Gated(1, "1cpu"), Pending(2, "1cpu")))
			startsAndWaits(t, s, "bind default/a-1 n\nbind default/a-2 n")
			s.ConfirmBinds()
			s.Ungate("default/a-0")
			startsAndWaits(t, s, "bind default/a-0 n")
		},
		"a bind that fails is tried again, for a gang and without": func(t *testing.T) {
			s := start(t, map[string]fields{"default/b": basicOf(0)}, Group("default/a", 2, Pending(2, "1cpu")), Group("default/b", 1, Pending(1, "1cpu")))
			startsAndWaits(t, s, "bind default/a-0 n\nbind default/a-1 n\nbind default/b-0 n")
			s.FailBinds("default/a-0", "default/b-0")
			s.ConfirmBinds()
			s.WaitUntilDue()
			startsAndWaits(t, s, "bind default/a-0 n\nbind default/b-0 n")
		},
		"the group is deleted: pods that wait do not start": func(t *testing.T) {
			s := start(t, nil, Group("default/a", 2, Pending(2, "1cpu"), Pending(1, "3cpu")), Group("default/b", 2, Pending(2, "3cpu")))
			startsAndWaits(t, s, "bind default/a-0 n\nbind default/a-1 n", "default/a-2 NotEnoughResources", "default/b ExceedsClusterCapacity")
			s.ConfirmBinds()
			s.DeleteGroup("default/a")
			s.DeleteGroup("default/b")
			s.Add(Node("m", "9cpu"), Plain("c", named("a"), Pending(1, "1cpu")))
			startsAndWaits(t, s, "", `GroupNotFound: PodGroup "a"`, `GroupNotFound: PodGroup "b"`)
		},
		"a pod repels the others of its gang from its node": func(t *testing.T) {
			repels := Given(Group("default/a", 2, Label("app", "x"), Pending(1, "1cpu", Away(v1.LabelHostname, "app=x")), Pending(1, "1cpu")))
			startsAndWaits(t, start(t, nil, repels...), "", "default/a ")
			s := start(t, nil, append(Given(Node("m", "4cpu")), repels...)...)
			if got := CountDecisions(s.Cycle(), true); got["bind default/a n"] != 1 || got["bind default/a m"] != 1 {
				t.Errorf("got %v, want one pod on each node", got)
			}
		},
	} {
		t.Run(name, play)
	}
}

// TestPreemptionOfKubernetes has the scenarios of the tests of the preemption of kube-scheduler for and by PodGroups. After
// the evictions all pods start that are expected to.
func TestPreemptionOfKubernetes(t *testing.T) {
	high := func(count int, options ...PodOption) Part {
		return Pending(count, "1cpu", append(options, Priority(100))...)
	}
	low := func(count int, node string, priority int32) Part {
		return Running(count, "1cpu", node, Priority(priority))
	}
	never := Mutate(func(p *v1.Pod) { policy := v1.PreemptNever; p.Spec.PreemptionPolicy = &policy })
	app := Label("app", "x")
	for name, tc := range map[string]struct {
		groups  map[string]fields
		running []Row
		pending Row
		evicted string
		bound   string // how many of the pending pods, after the evictions
	}{
		"for a gang": {
			map[string]fields{"default/high": ofPriority(100)}, Given(Node("n", "3cpu"), Plain("low", low(3, "n", 10))), Group("default/high", 3, high(3)),
			"low-0 low-1 low-2", "default/high 3",
		},
		"for the pods of a group without a gang": {
			map[string]fields{"default/high": basicOf(100)}, Given(Node("n", "3cpu"), Plain("low", low(3, "n", 10))), Group("default/high", 1, high(3)),
			"low-0 low-1 low-2", "default/high 3",
		},
		"one victim is enough for two pods of a group without a gang": {
			map[string]fields{"default/high": basicOf(100)},
			Given(Nodes(2, "n", "2cpu"), Plain("low", low(1, "n1", 10)), Plain("lower", Running(1, "2cpu", "n2", Priority(5)))),
			Group("default/high", 1, high(3)), "lower-0", "default/high 3",
		},
		"one victim is enough for two pods of a gang": {
			map[string]fields{"default/high": ofPriority(100)},
			Given(Nodes(2, "n", "2cpu"), Plain("large", Running(1, "2cpu", "n1", Priority(10))), Plain("small", low(1, "n2", 10))),
			Group("default/high", 3, high(3)), "large-0", "default/high 3",
		},
		"one victim is enough for a pod of a gang and its surplus": {
			map[string]fields{"default/high": ofPriority(100)}, Given(Node("n", "4cpu"), Plain("low", Running(1, "2cpu", "n", Priority(10)))),
			Group("default/high", 3, high(4)), "low-0", "default/high 4",
		},
		// Unlike there, see docs/concepts.md: one more pod of a gang that runs replaces only surplus.
		"surplus of a gang evicts no gang": {
			map[string]fields{"default/high": ofPriority(100)}, Given(Node("n", "4cpu"), Plain("low", low(4, "n", 10))),
			Group("default/high", 3, high(4)), "low-1 low-2 low-3", "default/high 3",
		},
		"the lowest priority first": {
			map[string]fields{"default/high": ofPriority(50)}, Given(Node("n", "4cpu"), Plain("lower", low(2, "n", 5)), Plain("low", low(2, "n", 10))),
			Group("default/high", 2, Pending(2, "1cpu", Priority(50))), "lower-0 lower-1", "default/high 2",
		},
		"not a priority between": {
			map[string]fields{"default/high": ofPriority(100)}, Given(Node("n", "3cpu"), Plain("middle", low(1, "n", 50)), Plain("low", low(2, "n", 10))),
			Group("default/high", 2, high(2)), "low-0 low-1", "default/high 2",
		},
		"the only pod that no disruption budget protects": {
			map[string]fields{"default/high": ofPriority(100)},
			Given(Node("n", "3cpu"), Budget("x", 0, "app", "x"), Plain("kept", app, low(2, "n", 10)), Plain("low", low(1, "n", 10))),
			Group("default/high", 2, Pending(2, "0.5cpu", Priority(100))), "low-0", "default/high 2",
		},
		// Unlike there, see docs/concepts.md: the scheduler never violates a budget.
		"no pod if disruption budgets protect all": {
			map[string]fields{"default/high": ofPriority(100)},
			Given(Node("n", "2cpu"), Budget("x", 0, "app", "x"), Plain("low", app, low(1, "n", 10)), Plain("middle", app, low(1, "n", 50))),
			Group("default/high", 1, high(1)), "", "",
		},
		"the member of a group that no budget protects": {
			map[string]fields{"default/low": ofPriority(10)},
			Given(Nodes(2, "n", "1cpu"), Budget("x", 0, "app", "x"), Group("default/low", 1, low(1, "n2", 10), Running(1, "1cpu", "n1", app, Priority(10)))),
			Group("default/high", 1, high(1)), "default/low-0", "default/high 1",
		},
		"a budget that protects one pod protects the whole group": {
			map[string]fields{"default/low": wholeOf(ofPriority(10))},
			Given(Node("n", "3cpu"), Budget("x", 0, "app", "x"), Plain("p", low(1, "n", 20)),
				Group("default/low", 2, low(1, "n", 10), Running(1, "1cpu", "n", app, Priority(10)))),
			Group("default/high", 1, high(1)), "p-0", "default/high 1",
		},
		"on several nodes": {
			map[string]fields{"default/high": ofPriority(100)}, Given(Nodes(2, "n", "2cpu"), Plain("low", low(2, "n1", 10), low(2, "n2", 10))),
			Group("default/high", 4, high(4)), "low-0 low-1 low-2 low-3", "default/high 4",
		},
		"not in vain": {
			map[string]fields{"default/high": ofPriority(100)}, Given(Node("n", "3cpu"), Plain("higher", low(1, "n", 500)), Plain("low", low(2, "n", 10))),
			Group("default/high", 3, high(3)), "", "",
		},
		"not of equal priority":  {nil, Given(Node("n", "1cpu"), Plain("p", low(1, "n", 100))), Group("default/high", 1, high(1)), "", ""},
		"not of higher priority": {nil, Given(Node("n", "1cpu"), Plain("p", low(1, "n", 200))), Group("default/high", 1, high(1)), "", ""},
		"not for a pod that must not preempt, and its gang": {
			nil, Given(Nodes(2, "n", "1cpu"), Plain("low", low(1, "n1", 10), low(1, "n2", 10))), Group("default/high", 2, high(1, never), high(1)), "", "",
		},
		"a group is evicted as a whole": {
			map[string]fields{"default/high": ofPriority(100), "default/low": wholeOf(ofPriority(10))},
			Given(Node("n", "3cpu"), Group("default/low", 3, low(3, "n", 10))), Group("default/high", 1, high(1)), "default/low-0 default/low-1 default/low-2", "default/high 1",
		},
		"a group without a gang is evicted as a whole": {
			map[string]fields{"default/high": ofPriority(100), "default/low": wholeOf(basicOf(10))},
			Given(Node("n", "3cpu"), Group("default/low", 1, low(3, "n", 10))), Group("default/high", 1, high(1)), "default/low-0 default/low-1 default/low-2", "default/high 1",
		},
		"a whole group on several nodes": {
			map[string]fields{"default/high": ofPriority(100), "default/low": wholeOf(ofPriority(10))},
			Given(Nodes(2, "n", "1cpu"), Group("default/low", 1, low(1, "n1", 10), low(1, "n2", 10))), Group("default/high", 1, high(1)),
			"default/low-0 default/low-1", "default/high 1",
		},
		// Unlike there, see docs/group-sources.md: no gang continues with fewer pods than minCount.
		"a gang that would be incomplete is evicted as a whole": {
			map[string]fields{"default/low": ofPriority(10)}, Given(Node("n", "3cpu"), Group("default/low", 3, low(3, "n", 10))),
			Group("default/high", 1, high(1)), "default/low-0 default/low-1 default/low-2", "default/high 1",
		},
		"the youngest surplus pod of a gang": {
			map[string]fields{"default/low": ofPriority(10)}, Given(Nodes(3, "n", "1cpu"), Group("default/low", 1, low(1, "n1", 10), low(1, "n2", 10)), Plain("p", low(1, "n3", 50))),
			Group("default/high", 1, high(1)), "default/low-1", "default/high 1",
		},
		"the surplus pod of the lowest priority, for a pod without group": {
			map[string]fields{"default/low": ofPriority(10)},
			Given(Node("n", "3cpu"), Group("default/low", 1, low(1, "n", 30), Running(1, "1cpu", "n", Priority(20)), Running(1, "1cpu", "n", Priority(10)))),
			Plain("high", high(1)), "default/low-2", "high 1",
		},
		"gangs and pods without group, by priority": {
			map[string]fields{"default/a": ofPriority(10), "default/b": ofPriority(10)},
			Given(Nodes(5, "n", "1cpu"), Group("default/a", 1, low(1, "n1", 10), low(1, "n2", 10)), Group("default/b", 1, low(1, "n3", 10)),
				Plain("middle", low(1, "n4", 50)), Group("default/c", 1, low(1, "n5", 100))),
			Group("default/high", 3, high(3)), "default/a-0 default/a-1 default/b-0", "default/high 3",
		},
		// Unlike there: kube-scheduler evicts pods without group first.
		"of equal priority, the youngest": {
			map[string]fields{"default/a": ofPriority(10), "default/b": ofPriority(10)},
			Given(Nodes(3, "n", "1cpu"), Group("default/a", 1, low(1, "n1", 10)), Plain("p", low(1, "n2", 10)), Group("default/b", 1, low(1, "n3", 10))),
			Group("default/high", 1, high(1)), "default/b-0", "default/high 1",
		},
		"the fewest pods": {
			nil, Given(Nodes(2, "n", "2cpu"), Plain("one", Running(1, "2cpu", "n2", Priority(10))), Plain("two", low(2, "n1", 10))),
			Group("default/high", 1, Pending(1, "2cpu", Priority(100))), "one-0", "default/high 1",
		},
		"a single pod rather than a group on the same node": {
			map[string]fields{"default/low": wholeOf(ofPriority(10))}, Given(Node("n", "3cpu"), Group("default/low", 2, low(2, "n", 10)), Plain("p", low(1, "n", 10))),
			Group("default/high", 1, high(1)), "p-0", "default/high 1",
		},
		"a single pod rather than a younger group on another node": {
			map[string]fields{"default/low": wholeOf(ofPriority(10))}, Given(Node("n1", "1cpu"), Node("n2", "2cpu"), Plain("p", low(1, "n1", 10)), Group("default/low", 2, low(2, "n2", 10))),
			Group("default/high", 1, high(1)), "p-0", "default/high 1",
		},
		"the priority of the groups counts, and not that of their pods": {
			map[string]fields{"default/high": ofPriority(100), "default/low": wholeOf(ofPriority(10))},
			Given(Node("n", "3cpu"), Group("default/low", 3, low(3, "n", 100))), Group("default/high", 1, Pending(1, "1cpu", Priority(10))),
			"default/low-0 default/low-1 default/low-2", "default/high 1",
		},
		"a group of low priority with pods of high priority evicts nothing": {
			map[string]fields{"default/high": ofPriority(10), "default/low": wholeOf(ofPriority(100))},
			Given(Node("n", "3cpu"), Group("default/low", 3, low(3, "n", 10))), Group("default/high", 1, high(1)), "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t, BuiltIn(t), append(Given(Queue("default", 1)), tc.running...), WithConfig(evicting), ofKubernetes(tc.groups))
			if got := s.Cycle(); got != "" {
				t.Fatalf("before the pending pods: %s", got)
			}
			s.Add(tc.pending)
			var evicted []string
			bound := map[string]int{}
			for range 5 {
				for line := range strings.Lines(s.Cycle()) {
					switch words := strings.Fields(line); words[0] {
					case "evict":
						evicted = append(evicted, words[1])
					case "bind":
						bound[words[1][:strings.LastIndex(words[1], "-")]]++
					}
				}
				s.FinishEvictions()
				s.ConfirmBinds()
				s.Start()
				s.WaitUntilDue()
			}
			if got := strings.Join(evicted, " "); got != tc.evicted {
				t.Errorf("evicted %q, want %q", got, tc.evicted)
			}
			if got := FormatCounts(bound); got != tc.bound {
				t.Errorf("bound %q, want %q", got, tc.bound)
			}
		})
	}
}
