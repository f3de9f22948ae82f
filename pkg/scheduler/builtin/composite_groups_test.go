// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// inTree writes roles as a tree of groups of Kubernetes: the root is a composite group. A role is a PodGroup, or a composite
// group of one PodGroup for each replica. of has further fields by role, those of the root by "".
func inTree(of map[string]fields) *Dialect {
	with := func(role string, spec map[string]any) map[string]any {
		maps.Copy(spec, of[role])
		return spec
	}
	return &Dialect{
		Group: translated(api.SourceComposite, func(g *v1alpha1.PodGroup) map[string]any {
			return with("", compositeSpec(int32(len(g.Spec.SubGroups)), ""))
		}),
		Parts: func(g *v1alpha1.PodGroup) (parts []*api.Group) {
			for _, s := range g.Spec.SubGroups {
				if s.SegmentSize == 0 {
					parts = append(parts, partOf(g, api.SourceNative, s.Name, with(s.Name, podGroupSpec(*s.MinMember, g.Name))))
					continue
				}
				parts = append(parts, partOf(g, api.SourceComposite, s.Name, with(s.Name, compositeSpec(*s.MinSubGroup, g.Name))))
				for i := range replicaCount {
					name := fmt.Sprintf("%s-%d", s.Name, i)
					parts = append(parts, partOf(g, api.SourceNative, name, podGroupSpec(s.SegmentSize, g.Name+"-"+s.Name)))
				}
			}
			return parts
		},
		Member: func(p *v1.Pod, g *v1alpha1.PodGroup, _ string) {
			part := p.Labels["role"]
			if replica := p.Labels["replica"]; replica != "" {
				part += "-" + replica
			}
			if part != "" {
				inPart(p, g, part)
			}
		},
	}
}

// TestCompositeGroups asserts what the fields of the groups of a tree mean for starts and evictions.
func TestCompositeGroups(t *testing.T) {
	all, never := fields{"disruptionMode": map[string]any{"all": map[string]any{}}}, fields{"preemptionPolicy": "Never"}
	any1 := fields{"schedulingPolicy": map[string]any{"gang": map[string]any{"minGroupCount": int64(1)}}}
	independent := fields{"schedulingPolicy": map[string]any{"basic": map[string]any{}}}
	start := func(t *testing.T, of map[string]fields, rows ...Row) *Scenario {
		return New(t, BuiltIn(t), append(Given(Queue("default", 1), Queue("q", 1)), rows...), WithConfig(evicting), WithDialects(func(title string) *Dialect {
			if title == "q/job" {
				return inTree(of)
			}
			return nil
		}))
	}
	running := func(role string, count int) Part { return Running(count, "1cpu", "n", Label("role", role)) }
	high := Group("q/high", 1, Pending(1, "1cpu", Priority(9)))
	for name, play := range map[string]func(t *testing.T){
		"any one of two groups suffices, and the other follows as a whole": func(t *testing.T) {
			s := start(t, map[string]fields{"": any1}, Node("n", "3cpu"), Group("q/job", 1, SubGroups(leaf("a", 3), leaf("b", 2)), role("a", 3, "1cpu"), role("b", 2, "1cpu")))
			startsAndWaits(t, s, "bind q/job-3 n\nbind q/job-4 n", "q/job")
			s.ConfirmBinds()
			s.Add(Node("m", "2cpu"))
			startsAndWaits(t, s, "bind q/job-0 m\nbind q/job-1 m\nbind q/job-2 n")
		},
		"groups of an independent root start each as a whole": func(t *testing.T) {
			s := start(t, map[string]fields{"": independent}, Node("n", "2cpu"), Group("q/job", 1, SubGroups(leaf("a", 3), leaf("b", 2)), role("a", 3, "1cpu"), role("b", 2, "1cpu")))
			startsAndWaits(t, s, "bind q/job-3 n\nbind q/job-4 n", "q/job")
		},
		"a group that is not complete blocks its root": func(t *testing.T) {
			s := start(t, nil, Node("n", "9cpu"), Group("q/job", 1, SubGroups(leaf("a", 3), leaf("b", 2)), role("a", 2, "1cpu"), role("b", 2, "1cpu")))
			startsAndWaits(t, s, "", "q/job NotEnoughPods: 4 of 5 pods that must start together exist; subgroup job-a has 2 of 3 pods")
		},
		"pods above a minimum are evicted one by one": func(t *testing.T) {
			s := start(t, nil, Node("n", "5cpu"), Group("q/job", 1, SubGroups(leaf("a", 1), leaf("b", 1)), running("a", 3), running("b", 2)), high)
			startsAndWaits(t, s, "evict q/job-4 for q/high\npipeline q/high-0 n", "q/high")
		},
		"those of a whole group are not": func(t *testing.T) {
			s := start(t, map[string]fields{"b": all}, Node("n", "5cpu"), Group("q/job", 1, SubGroups(leaf("a", 3), leaf("b", 1)), running("a", 3), running("b", 2)), high)
			startsAndWaits(t, s, "evict q/job-0 for q/high\nevict q/job-1 for q/high\nevict q/job-2 for q/high\nevict q/job-3 for q/high\nevict q/job-4 for q/high\npipeline q/high-0 n", "q/high")
		},
		"an optional whole group is evicted as a whole": func(t *testing.T) {
			s := start(t, map[string]fields{"": any1, "a": all, "b": all}, Node("n", "5cpu"), Group("q/job", 1, SubGroups(leaf("a", 1), leaf("b", 1)), running("a", 3), running("b", 2)), high)
			startsAndWaits(t, s, "evict q/job-3 for q/high\nevict q/job-4 for q/high\npipeline q/high-0 n", "q/high")
		},
		"a whole root loses all pods": func(t *testing.T) {
			s := start(t, map[string]fields{"": all}, Node("n", "3cpu"), Group("q/job", 1, SubGroups(leaf("a", 1), leaf("b", 1)), running("a", 1), running("b", 2)), high)
			startsAndWaits(t, s, "evict q/job-0 for q/high\nevict q/job-1 for q/high\nevict q/job-2 for q/high\npipeline q/high-0 n", "q/high")
		},
		"a tree that never preempts": func(t *testing.T) {
			of := map[string]fields{"": never, "a": never}
			s := start(t, of, Node("n", "1cpu"), Group("q/low", 1, Running(1, "1cpu", "n")), Group("q/job", 1, SubGroups(leaf("a", 1)), Pending(1, "1cpu", Priority(9), Label("role", "a"))))
			startsAndWaits(t, s, "", "q/job NotEnoughResources")
		},
		"and one that does": func(t *testing.T) {
			s := start(t, nil, Node("n", "1cpu"), Group("q/low", 1, Running(1, "1cpu", "n")), Group("q/job", 1, SubGroups(leaf("a", 1)), Pending(1, "1cpu", Priority(9), Label("role", "a"))))
			startsAndWaits(t, s, "evict q/low-0 for q/job\npipeline q/job-0 n", "q/job")
		},
	} {
		t.Run(name, play)
	}
}
