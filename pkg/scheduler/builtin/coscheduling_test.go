// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// ofSchedulerPlugins writes PodGroups as those of scheduler-plugins, with minResources.
func ofSchedulerPlugins() *Dialect {
	return &Dialect{
		Group: translated(api.SourceSchedulerPlugins, func(g *v1alpha1.PodGroup) map[string]any {
			spec := map[string]any{"minMember": int64(g.Spec.MinMember)}
			if len(g.Spec.MinResources) > 0 {
				amounts := map[string]any{}
				for name, quantity := range g.Spec.MinResources {
					amounts[string(name)] = quantity.String()
				}
				spec["minResources"] = amounts
			}
			return spec
		}),
		Member: dialects()["scheduler-plugins"].Member,
	}
}

// coscheduling creates a scenario with PodGroups of scheduler-plugins.
func coscheduling(t *testing.T, rows ...Row) *Scenario {
	return New(t, BuiltIn(t), append(Given(Queue("default", 1)), rows...), WithDialects(func(string) *Dialect { return ofSchedulerPlugins() }))
}

// startsAndWaits compares the decisions of a cycle, and searches parts of the messages of jobs that wait.
func startsAndWaits(t *testing.T, s *Scenario, want string, waits ...string) {
	t.Helper()
	CompareTranscripts(t, want, s.Cycle())
	got := s.Waits()
	for _, part := range waits {
		if !strings.Contains(got, part) {
			t.Errorf("no message contains %q:\n%s", part, got)
		}
	}
	if len(waits) == 0 && got != "" {
		t.Errorf("jobs wait:\n%s", got)
	}
}

// TestCoscheduling has the scenarios of the integration tests of the plugin Coscheduling: gangs that compete with other
// gangs and with single pods. docs/design/upstream-scenarios.md lists them.
func TestCoscheduling(t *testing.T) {
	const first = "bind default/a-0 n\nbind default/a-1 n\nbind default/a-2 n"
	small, large := Pending(1, "1cpu"), Pending(1, "2cpu")
	resources := func(text string) Part { return MinResources(text) }
	for name, tc := range map[string]struct {
		rows  []Row
		want  string
		waits []string
	}{
		"a gang that fits, then one that does not": {
			Given(Group("default/a", 3, Pending(3, "1cpu")), Group("default/b", 4, Pending(4, "2cpu"))),
			first, []string{"default/b ExceedsClusterCapacity: needs 4 more pods of 2 cpu"},
		},
		"the same gangs, whose pods are created in turns": {
			Given(Group("default/a", 3, small), Group("default/b", 4, large), More("default/a", small), More("default/b", large),
				More("default/a", small), More("default/b", large, large)),
			first, []string{"default/b ExceedsClusterCapacity"},
		},
		"single pods start beside a gang that lacks a pod": {
			Given(Group("default/a", 4, small), Plain("b", large), More("default/a", small), Plain("c", large), More("default/a", small)),
			"bind b-0 n\nbind c-0 n", []string{"default/a NotEnoughPods: 3 of 4 pods"},
		},
		"the gang of higher priority starts, although the other one is older": {
			Given(Group("default/low", 3, Pending(3, "2cpu")), Group("default/high", 3, Priority(9), Pending(3, "1cpu"))),
			"bind default/high-0 n\nbind default/high-1 n\nbind default/high-2 n", []string{"default/low NotEnoughResources: needs 3 more pods of 2 cpu"},
		},
		"the gang of higher priority, whose pods are created in turns": {
			Given(Group("default/low", 3, large), Group("default/high", 3, Priority(9), small), More("default/low", large),
				More("default/high", Priority(9), small), More("default/low", large), More("default/high", Priority(9), small)),
			"bind default/high-0 n\nbind default/high-1 n\nbind default/high-2 n", []string{"default/low NotEnoughResources"},
		},
		"single pods of higher priority": {
			Given(Group("default/a", 3, small), Plain("b", Priority(9), large), More("default/a", small), Plain("c", Priority(9), large),
				More("default/a", small), Plain("d", Priority(9), large)),
			"bind b-0 n\nbind c-0 n\nbind d-0 n", []string{"default/a NotEnoughResources: needs 3 more pods of 1 cpu"},
		},
		"two gangs that do not fit do not delay a third one": {
			Given(Group("default/b", 4, large), Group("default/c", 4, large), Group("default/a", 3, small),
				More("default/b", large), More("default/c", large), More("default/a", small),
				More("default/b", large, large), More("default/c", large, large), More("default/a", small)),
			first, []string{"default/b ExceedsClusterCapacity", "default/c ExceedsClusterCapacity"},
		},
		"two gangs that do not fit, with minResources": {
			Given(Group("default/b", 4, resources("8cpu"), large), Group("default/c", 4, resources("8cpu"), large),
				Group("default/a", 3, resources("3cpu"), small),
				More("default/b", large, large, large), More("default/c", large, large, large), More("default/a", small, small)),
			first, []string{"default/b ExceedsClusterCapacity", "default/c ExceedsClusterCapacity"},
		},
		"a gang that does not fit, with minResources": {
			Given(Group("default/b", 4, resources("8cpu"), large), Group("default/a", 3, resources("3cpu"), small),
				More("default/b", large, large, large), More("default/a", small, small)),
			first, []string{"default/b ExceedsClusterCapacity"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			startsAndWaits(t, coscheduling(t, append(Given(Node("n", "6cpu")), tc.rows...)...), tc.want, tc.waits...)
		})
	}
}

// TestCoschedulingOrder asserts which of two jobs starts if the node fits one of them: first the priority decides, then the
// age of the group, or of a pod without group, then the name.
func TestCoschedulingOrder(t *testing.T) {
	const low, high = 10, 100
	gang := func(name string, priority int32) Row {
		return Group("default/"+name, 1, In("ns-"+name), Priority(priority), Pending(1, "1cpu"))
	}
	single := func(name string, priority int32) Row {
		return Plain(name, In("ns-"+name), Priority(priority), Pending(1, "1cpu"))
	}
	for name, tc := range map[string]struct {
		rows []Row
		want string
	}{
		"two pods, the first has the lower priority":          {Given(single("a", low), single("b", high)), "bind b-0 n"},
		"two pods, the first has the higher priority":         {Given(single("a", high), single("b", low)), "bind a-0 n"},
		"two pods of equal priority":                          {Given(single("b", high), single("a", high)), "bind b-0 n"},
		"a gang, and a pod of higher priority":                {Given(gang("a", low), single("b", high)), "bind b-0 n"},
		"a pod, and a gang of higher priority":                {Given(single("a", low), gang("b", high)), "bind default/b-0 n"},
		"a gang, and a younger pod of equal priority":         {Given(gang("b", high), single("a", high)), "bind default/b-0 n"},
		"a pod, and a younger gang of equal priority":         {Given(single("b", high), gang("a", high)), "bind b-0 n"},
		"two gangs, the older one has the lower priority":     {Given(gang("a", low), gang("b", high)), "bind default/b-0 n"},
		"two gangs, the older one has the higher priority":    {Given(gang("a", high), gang("b", low)), "bind default/a-0 n"},
		"two gangs of equal priority":                         {Given(gang("b", high), gang("a", high)), "bind default/b-0 n"},
		"two gangs, the pods of the younger one are older":    {Given(Group("default/b", 1), Group("default/a", 1), More("default/a", Pending(1, "1cpu")), More("default/b", Pending(1, "1cpu"))), "bind default/b-0 n"},
		"a gang that lacks a pod does not delay a single pod": {Given(Group("default/a", 2, Priority(high), Pending(1, "1cpu")), single("b", low)), "bind b-0 n"},
	} {
		t.Run(name, func(t *testing.T) {
			CompareTranscripts(t, tc.want, coscheduling(t, append(Given(Node("n", "1cpu")), tc.rows...)...).Cycle())
		})
	}
}

// TestCoschedulingOrderOfNames: of gangs with equal priority and creation time, the one starts whose name is first.
func TestCoschedulingOrderOfNames(t *testing.T) {
	created := metav1.NewTime(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	equal := ofSchedulerPlugins()
	translate := equal.Group
	equal.Group = func(g *v1alpha1.PodGroup) *api.Group {
		g = g.DeepCopy()
		g.CreationTimestamp = created
		return translate(g)
	}
	s := New(t, BuiltIn(t), Given(Queue("default", 1), Node("n", "1cpu"),
		Group("default/c", 1, Pending(1, "1cpu")), Group("default/a", 1, Pending(1, "1cpu")), Group("default/b", 1, Pending(1, "1cpu"))),
		WithDialects(func(string) *Dialect { return equal }))
	CompareTranscripts(t, "bind default/a-0 n", s.Cycle())
}

// TestCoschedulingQuorum has the scenarios of the unit tests of Coscheduling: how many pods a gang needs, and which count.
func TestCoschedulingQuorum(t *testing.T) {
	nodes := Nodes(2, "n", "4cpu")
	for name, tc := range map[string]struct {
		rows  []Row
		binds string // how many pods of each job
		waits []string
	}{
		"pods without group beside groups": {
			rows: Given(Group("default/a", 1, Pending(1, "1cpu")), Group("default/b", 1, Pending(1, "1cpu")), Plain("p", Pending(1, "1cpu"))), binds: "bind default/a 1, bind default/b 1, bind p 1",
		},
		"a group that does not exist": {
			rows:  Given(Group("default/a", 1), Plain("p", Label(api.LabelSchedulerPluginsGroup, "missing"), Pending(1, "1cpu"))),
			waits: []string{`GroupNotFound: PodGroup "missing" of scheduler-plugins (scheduling.x-k8s.io) does not exist`},
		},
		"fewer pods than minMember; pods of other groups do not count": {
			rows:  Given(Group("default/a", 2, Pending(1, "1cpu")), Group("default/b", 2, Pending(1, "1cpu"))),
			waits: []string{"default/a NotEnoughPods: 1 of 2 pods", "default/b NotEnoughPods: 1 of 2 pods"},
		},
		"as many pods as minMember": {
			rows: Given(Group("default/a", 2, Pending(2, "1cpu")), Group("default/b", 2)), binds: "bind default/a 2",
			waits: []string{"default/b NotEnoughPods: 0 of 2 pods"},
		},
		"more pods than minMember":                     {rows: Given(Group("default/a", 2, Pending(3, "1cpu"))), binds: "bind default/a 3"},
		"a pod joins a gang that runs":                 {rows: Given(Group("default/a", 2, Running(1, "1cpu", "n1"), Pending(1, "1cpu"))), binds: "bind default/a 1"},
		"a gated pod, and enough others":               {rows: Given(Group("default/a", 2, Pending(2, "1cpu"), Gated(1, "1cpu"))), binds: "bind default/a 2"},
		"a gated pod, and not enough others":           {rows: Given(Group("default/a", 3, Pending(2, "1cpu"), Gated(1, "1cpu"))), waits: []string{"default/a NotEnoughPods: 2 of 3 pods", "1 gated"}},
		"all other pods are gated":                     {rows: Given(Group("default/a", 2, Pending(1, "1cpu"), Gated(2, "1cpu"))), waits: []string{"default/a NotEnoughPods: 1 of 2 pods", "2 gated"}},
		"minResources that the nodes have":             {rows: Given(Group("default/a", 2, MinResources("6cpu"), Pending(3, "1cpu"))), binds: "bind default/a 3"},
		"minResources that the nodes do not have":      {rows: Given(Group("default/a", 2, MinResources("10cpu"), Pending(3, "1cpu"))), waits: []string{"default/a ExceedsClusterCapacity: spec.minResources requests 10 cpu"}},
		"minResources that pods of the group have":     {rows: Given(Group("default/a", 2, MinResources("8cpu"), Running(1, "4cpu", "n1"), Pending(1, "4cpu"))), binds: "bind default/a 1"},
		"a gang that no node fits delays no other one": {rows: Given(Group("default/a", 6, Pending(6, "5cpu")), Group("default/b", 1, Pending(1, "2cpu"))), binds: "bind default/b 1", waits: []string{"default/a ExceedsClusterCapacity"}},
		// Unlike there, see docs/group-sources.md: a pod that has succeeded is done, and does not keep the others from it.
		"a pod that has succeeded counts": {rows: Given(Group("default/a", 6, Succeeded(1, "1cpu", "n1"), Pending(5, "1cpu"))), binds: "bind default/a 5"},
		"a pod that has failed does not":  {rows: Given(Group("default/a", 6, Failed(1, "1cpu", "n1"), Pending(5, "1cpu"))), waits: []string{"default/a NotEnoughPods: 5 of 6 pods"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := coscheduling(t, append(Given(nodes), tc.rows...)...)
			if diff := cmp.Diff(tc.binds, FormatCounts(CountDecisions(s.Cycle(), false))); diff != "" {
				t.Errorf("bound pods (-want +got):\n%s", diff)
			}
			got := s.Waits()
			for _, part := range tc.waits {
				if !strings.Contains(got, part) {
					t.Errorf("no message contains %q:\n%s", part, got)
				}
			}
			if len(tc.waits) == 0 && got != "" {
				t.Errorf("jobs wait:\n%s", got)
			}
		})
	}
}

// TestCoschedulingMinResources: with "expect" in the policy a gang starts only if spec.minResources is available beside what
// other pods hold, as there. Without it, the requests of the pods decide.
func TestCoschedulingMinResources(t *testing.T) {
	gang := Group("default/a", 1, MinResources("4cpu"), Pending(1, "1cpu"))
	for name, tc := range map[string]struct {
		expect string
		rows   []Row
		want   string
		waits  string
	}{
		"enough":       {"60s", Given(Plain("p", Running(1, "2cpu", "n1")), gang), "bind default/a-0", ""},
		"not enough":   {"60s", Given(Plain("p", Running(1, "2cpu", "n1"), Running(1, "1cpu", "n2")), gang), "", "default/a NotEnoughResources: the gang fits, but not the pods that are expected"},
		"not expected": {"0s", Given(Plain("p", Running(1, "2cpu", "n1"), Running(1, "1cpu", "n2")), gang), "bind default/a-0", ""},
		"pods of the group hold a part": {
			"60s", Given(Plain("p", Running(1, "1cpu", "n2")), Group("default/a", 2, MinResources("4cpu"), Running(1, "2cpu", "n1"), Pending(1, "2cpu"))), "bind default/a-1", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t, BuiltIn(t), append(Given(Nodes(2, "n", "3cpu"), Queue("default", 1)), tc.rows...),
				WithConfig("expect: "+tc.expect+"\n"+conf.DefaultYAML()), WithDialects(func(string) *Dialect { return ofSchedulerPlugins() }))
			if got := s.Cycle(); !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := s.Waits(); tc.waits == "" && got != "" || !strings.Contains(got, tc.waits) {
				t.Errorf("waits %q, want %q", got, tc.waits)
			}
		})
	}
}

// TestCoschedulingTriesAgain: a gang that has failed keeps its age and its place, and delays no other job meanwhile. It is
// not tried before something changes, so that it cannot keep the scheduler busy.
func TestCoschedulingTriesAgain(t *testing.T) {
	s := coscheduling(t, Node("n", "4cpu"), Plain("p", Running(1, "2cpu", "n")),
		Group("default/old", 3, Pending(3, "1cpu")), Group("default/young", 2, Pending(2, "1cpu")))
	startsAndWaits(t, s, "bind default/young-0 n\nbind default/young-1 n", "default/old NotEnoughResources: needs 3 more pods of 1 cpu")
	s.ConfirmBinds()
	startsAndWaits(t, s, "", "default/old NotEnoughResources")
	s.Add(Group("default/younger", 3, Pending(3, "1cpu")))
	s.Delete("p-0", "default/young-0")
	startsAndWaits(t, s, "bind default/old-0 n\nbind default/old-1 n\nbind default/old-2 n", "default/younger NotEnoughResources")
}

// TestCoschedulingMembersChange: a pod is deleted while its gang waits, and a pod is created again.
func TestCoschedulingMembersChange(t *testing.T) {
	s := coscheduling(t, Node("n", "4cpu", NotReady()), Group("default/a", 3, Pending(3, "1cpu")))
	s.Cycle()
	s.Delete("default/a-1")
	s.EditNode("n", func(n *v1.Node) { n.Status.Conditions[0].Status = v1.ConditionTrue })
	startsAndWaits(t, s, "", "default/a NotEnoughPods: 2 of 3 pods")
	s.CreateAgain("default/a-1")
	startsAndWaits(t, s, "bind default/a-0 n\nbind default/a-1 n\nbind default/a-2 n")
}
