// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// dialects are the ways to write a gang besides the PodGroups of this scheduler.
func dialects() map[string]*Dialect {
	return map[string]*Dialect{
		"native": {
			Group: translated(api.SourceNative, func(g *v1alpha1.PodGroup) map[string]any {
				return map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(g.Spec.MinMember)}}}
			}),
			Member: func(p *v1.Pod, g *v1alpha1.PodGroup, _ string) {
				p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &g.Name}
			},
		},
		"native of Kubernetes 1.36": {
			Group: translatedIn(api.SourceNative, "v1alpha2", func(g *v1alpha1.PodGroup) map[string]any {
				return map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(g.Spec.MinMember)}}}
			}),
			Member: func(p *v1.Pod, g *v1alpha1.PodGroup, _ string) {
				p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &g.Name}
			},
		},
		"composite": { // of one PodGroup
			Group: translated(api.SourceComposite, func(*v1alpha1.PodGroup) map[string]any { return compositeSpec(1, "") }),
			Parts: func(g *v1alpha1.PodGroup) []*api.Group {
				return []*api.Group{partOf(g, api.SourceNative, "pods", podGroupSpec(g.Spec.MinMember, g.Name))}
			},
			Member: func(p *v1.Pod, g *v1alpha1.PodGroup, _ string) { inPart(p, g, "pods") },
		},
		"scheduler-plugins": {
			Group: translated(api.SourceSchedulerPlugins, func(g *v1alpha1.PodGroup) map[string]any {
				return map[string]any{"minMember": int64(g.Spec.MinMember)}
			}),
			Member: func(p *v1.Pod, g *v1alpha1.PodGroup, _ string) { p.Labels[api.LabelSchedulerPluginsGroup] = g.Name },
		},
		"volcano": {
			Group: translated(api.SourceVolcano, func(g *v1alpha1.PodGroup) map[string]any {
				return map[string]any{"minMember": int64(g.Spec.MinMember), "queue": g.Spec.Queue}
			}),
			Member: func(p *v1.Pod, g *v1alpha1.PodGroup, _ string) {
				p.Annotations[v1alpha1.AnnotationGroupName] = g.Name
			},
		},
		"kai": {
			Group: translated(api.SourceKAI, func(g *v1alpha1.PodGroup) map[string]any {
				return map[string]any{"minMember": int64(g.Spec.MinMember), "queue": g.Spec.Queue}
			}),
			Member: func(p *v1.Pod, g *v1alpha1.PodGroup, _ string) { p.Annotations[api.AnnotationKAIGroup] = g.Name },
		},
		"group key": {
			Member: func(p *v1.Pod, g *v1alpha1.PodGroup, title string) {
				p.Labels[v1alpha1.LabelQueue] = g.Spec.Queue
				p.Annotations[v1alpha1.AnnotationGroupKey] = title
				p.Annotations[v1alpha1.AnnotationMinMember] = fmt.Sprint(g.Spec.MinMember)
			},
		},
	}
}

// compositeSpec and podGroupSpec are those of the groups of a tree, each below its parent, with a minimum or without.
func compositeSpec(minGroups int32, parent string) map[string]any {
	return treeSpec("minGroupCount", minGroups, parent)
}

func podGroupSpec(minCount int32, parent string) map[string]any {
	return treeSpec("minCount", minCount, parent)
}

func treeSpec(field string, minimum int32, parent string) map[string]any {
	spec := map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{field: int64(minimum)}}}
	if minimum == 0 {
		spec["schedulingPolicy"] = map[string]any{"basic": map[string]any{}}
	}
	if parent != "" {
		spec["parentCompositePodGroupName"] = parent
	}
	return spec
}

// partOf returns a group of a tree. PodGroups and pods do not name the queue. part is unique in the tree.
func partOf(g *v1alpha1.PodGroup, source api.GroupSource, part string, spec map[string]any) *api.Group {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetNamespace(g.Namespace)
	u.SetName(g.Name + "-" + part)
	u.SetUID(types.UID(string(g.UID) + "-" + part))
	return apiOf(source, "").Read(u).Group
}

// inPart has a pod name the PodGroup of a tree.
func inPart(p *v1.Pod, g *v1alpha1.PodGroup, part string) {
	p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: new(g.Name + "-" + part)}
}

// apiOf returns an API of a source, the preferred one if the version is empty.
func apiOf(source api.GroupSource, version string) *groupapi.API {
	all := groupapi.All()
	return all[slices.IndexFunc(all, func(a *groupapi.API) bool {
		return a.Source == source && (version == "" || a.Resource.Version == version)
	})]
}

// translated returns a function that writes a PodGroup as an object of another API, and reads that object. The queue is a
// label of the object, unless it has a field for it.
func translated(source api.GroupSource, spec func(*v1alpha1.PodGroup) map[string]any) func(*v1alpha1.PodGroup) *api.Group {
	return translatedIn(source, "", spec)
}

func translatedIn(source api.GroupSource, version string, spec func(*v1alpha1.PodGroup) map[string]any) func(*v1alpha1.PodGroup) *api.Group {
	return func(g *v1alpha1.PodGroup) *api.Group {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec(g)}}
		u.SetNamespace(g.Namespace)
		u.SetName(g.Name)
		u.SetUID(g.UID)
		u.SetCreationTimestamp(metav1.NewTime(g.CreationTimestamp.UTC()))
		if source != api.SourceVolcano && source != api.SourceKAI {
			u.SetLabels(map[string]string{v1alpha1.LabelQueue: g.Spec.Queue})
		}
		return apiOf(source, version).Read(u).Group
	}
}

// evicting is the built-in policy with the actions that evict.
const evicting = `
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`

// week is what happens to gangs in all dialects: starts, surplus, evictions within and between queues, ends, binds that
// fail, evicted pods that are created again, and a group that is deleted. A gang without an object cannot be deleted, and
// is as old as its pods: then deleted is empty, and no pod is created again. It returns the transcript.
func week(s *Scenario, deleted string, groups ...Row) string {
	finishEvictions := FinishEvictionsAndRecreate
	if deleted == "" {
		finishEvictions = func(s *Scenario) { s.FinishEvictions() }
	}
	var days []string
	cycle := func() { days = append(days, s.Cycle()) }
	s.Add(groups...)
	cycle()
	s.FailBinds()
	cycle()
	s.ConfirmBinds()
	s.Start()
	cycle()
	finishEvictions(s)
	cycle()
	finishEvictions(s)
	s.ConfirmBinds()
	s.Start()
	cycle()
	if deleted != "" {
		s.DeleteGroup(deleted)
	}
	s.Succeed()
	cycle()
	s.ConfirmBinds()
	cycle()
	return strings.Join(days, "\n--\n")
}

// TestDialects: a scenario has the same transcript in all dialects.
func TestDialects(t *testing.T) {
	rows := Given(
		Group("a/low", 2, Running(4, "1cpu", "n1")),
		Group("a/gang", 3, Running(3, "1cpu", "n2")),
		Group("b/large", 3, Pending(3, "2cpu")),
		Group("a/high", 2, Pending(3, "1cpu", Priority(9))),
		Group("b/short", 4, Pending(3, "1cpu")),
		Group("a/single", 1, Pending(2, "1cpu")),
	)
	play := func(t *testing.T, dialect *Dialect, deleted string) string {
		s := New(t, BuiltIn(t), Given(Node("n1", "4cpu"), Node("n2", "4cpu"), Queue("default", 1), Queue("a", 1), Queue("b", 3)),
			WithConfig(evicting), WithDialects(func(string) *Dialect { return dialect }))
		return week(s, deleted, rows...)
	}
	want := play(t, nil, "a/low")
	for _, part := range []string{"evict a/gang", "evict a/low", "bind b/large-0", "bind a/high-0"} {
		if !strings.Contains(want, part) {
			t.Errorf("the scenario lacks %q:\n%s", part, want)
		}
	}
	for name, dialect := range dialects() {
		t.Run(name, func(t *testing.T) {
			want, deleted := want, "a/low"
			if dialect.Group == nil { // it has no object to delete
				deleted = ""
				want = play(t, nil, "")
			}
			if diff := cmp.Diff(want, play(t, dialect, deleted)); diff != "" {
				t.Errorf("(-own +%s):\n%s", name, diff)
			}
		})
	}
}

// TestDialectsAtRandom: random gangs, each in a random dialect, have the transcript of PodGroups of this scheduler.
func TestDialectsAtRandom(t *testing.T) {
	known := dialects()
	names := append([]string{""}, slices.Sorted(maps.Keys(known))...)
	rapid.Check(t, func(t *rapid.T) {
		base := Given(Queue("default", 1), Queue("a", 1), Queue("b", rapid.Int32Range(1, 3).Draw(t, "weight")))
		for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			base = append(base, Node(fmt.Sprintf("n%d", i), rapid.SampledFrom([]string{"2cpu", "4cpu", "8cpu"}).Draw(t, "size")))
		}
		var groups []Row
		written, deleted := map[string]*Dialect{}, ""
		keyed := rapid.Bool().Draw(t, "group keys")
		for i := range rapid.IntRange(1, 6).Draw(t, "groups") {
			title := fmt.Sprintf("%s/g%d", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue"), i)
			if written[title] = known[rapid.SampledFrom(names).Draw(t, "dialect")]; written[title] == known["group key"] && !keyed {
				written[title] = nil
			}
			if !keyed {
				deleted = title
			}
			var parts []Part
			for range rapid.IntRange(1, 2).Draw(t, "parts") {
				count, request := rapid.IntRange(1, 3).Draw(t, "pods"), rapid.SampledFrom([]string{"1cpu", "2cpu", "0.5cpu"}).Draw(t, "request")
				priority := Priority(rapid.Int32Range(0, 1).Draw(t, "priority"))
				if rapid.Bool().Draw(t, "running") {
					parts = append(parts, Running(count, request, "n0", priority))
				} else {
					parts = append(parts, Pending(count, request, priority))
				}
			}
			groups = append(groups, Group(title, rapid.Int32Range(1, 4).Draw(t, "min"), parts...))
		}
		play := func(of func(string) *Dialect) string {
			return week(New(t, BuiltIn(t), base, WithConfig(evicting), WithDialects(of)), deleted, groups...)
		}
		want := play(func(string) *Dialect { return nil })
		if diff := cmp.Diff(want, play(func(title string) *Dialect { return written[title] })); diff != "" {
			t.Fatalf("(-own +mixed):\n%s", diff)
		}
	})
}
