// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// replicaCount is how many replicas a role with segments has in TestDialectsOfSubGroups.
const replicaCount = 4

// listed returns a field of a spec with what a function returns for each subgroup of a PodGroup.
func listed(g *v1alpha1.PodGroup, of func(s *v1alpha1.SubGroup) []any) (list []any) {
	for i := range g.Spec.SubGroups {
		list = append(list, of(&g.Spec.SubGroups[i])...)
	}
	return list
}

// subGroupDialects are the ways to write roles and replicas besides the PodGroups of this scheduler. Pods have the labels role and
// replica.
func subGroupDialects() map[string]*Dialect {
	inVolcano := func(p *v1.Pod, g *v1alpha1.PodGroup, _ string) {
		p.Annotations[v1alpha1.AnnotationGroupName] = g.Name
		p.Annotations[api.VolcanoTaskSpec] = p.Labels["role"]
	}
	return map[string]*Dialect{
		"composite groups of Kubernetes": inTree(nil),
		"minTaskMember of Volcano": { // it has no replicas
			Member: inVolcano,
			Group: translated(api.SourceVolcano, func(g *v1alpha1.PodGroup) map[string]any {
				minima := map[string]any{}
				for _, s := range g.Spec.SubGroups {
					if s.SegmentSize > 0 {
						return nil
					}
					minima[s.Name] = int64(*s.MinMember)
				}
				return map[string]any{"minMember": int64(g.Spec.MinMember), "queue": g.Spec.Queue, "minTaskMember": minima}
			}),
		},
		"subGroupPolicy of Volcano": { // each role without replicas is one segment
			Member: inVolcano,
			Group: translated(api.SourceVolcano, func(g *v1alpha1.PodGroup) map[string]any {
				policies := listed(g, func(s *v1alpha1.SubGroup) []any {
					p := map[string]any{"name": s.Name, "labelSelector": map[string]any{"matchLabels": map[string]any{"role": s.Name}}}
					if s.SegmentSize > 0 {
						p["matchLabelKeys"], p["subGroupSize"], p["minSubGroups"] = []any{s.SegmentBy}, int64(s.SegmentSize), int64(*s.MinSubGroup)
					} else {
						p["matchLabelKeys"], p["subGroupSize"], p["minSubGroups"] = []any{"role"}, int64(*s.MinMember), int64(1)
					}
					return []any{p}
				})
				return map[string]any{"minMember": int64(g.Spec.MinMember), "queue": g.Spec.Queue, "subGroupPolicy": policies}
			}),
		},
		"subGroups of KAI Scheduler": { // each replica is a subgroup of its role
			Member: func(p *v1.Pod, g *v1alpha1.PodGroup, _ string) {
				p.Annotations[api.AnnotationKAIGroup] = g.Name
				p.Labels[api.LabelKAISubGroup] = p.Labels["role"]
				if replica := p.Labels["replica"]; replica != "" {
					p.Labels[api.LabelKAISubGroup] += "-replica-" + replica
				}
			},
			Group: translated(api.SourceKAI, func(g *v1alpha1.PodGroup) map[string]any {
				parts := listed(g, func(s *v1alpha1.SubGroup) []any {
					if s.SegmentSize == 0 {
						return []any{map[string]any{"name": s.Name, "minMember": int64(*s.MinMember)}}
					}
					list := []any{map[string]any{"name": s.Name, "minSubGroup": int64(*s.MinSubGroup), "minMember": int64(0)}}
					for i := range replicaCount {
						list = append(list, map[string]any{"name": fmt.Sprintf("%s-replica-%d", s.Name, i), "parent": s.Name, "minMember": int64(s.SegmentSize)})
					}
					return list
				})
				return map[string]any{"queue": g.Spec.Queue, "minSubGroup": int64(len(g.Spec.SubGroups)), "subGroups": parts}
			}),
		},
	}
}

// TestDialectsOfSubGroups: a job with roles starts and is evicted in the same way, whichever API its roles are written in (HF21).
func TestDialectsOfSubGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes, later []Row
		job          []Part
		parts        []string // of the transcript
		without      string   // a dialect
	}{
		"roles": { // HF17
			nodes: Given(Node("n", "9cpu")), later: Given(Node("g", "4cpu 4gpu")),
			job: []Part{
				SubGroups(leaf("cpu", 4), leaf("gpu", 4), leaf("head", 1)),
				role("head", 1, "1cpu"), role("cpu", 10, "1cpu"), role("gpu", 4, "1cpu 1gpu"),
			},
			parts: []string{"waits q/job Unschedulable", "bind q/job-0 n", "bind q/job-14 g", "evict q/job-8 for q/high"},
		},
		"replicas": { // HF19
			nodes: Given(Node("n", "4cpu")), later: Given(Node("g", "3cpu")),
			job: append(replicas("w", 0, replicaCount, 2, "1cpu"), role("driver", 1, "1cpu"),
				SubGroups(leaf("driver", 1), segments("w", 2, 2))),
			parts:   []string{"waits q/job ExceedsClusterCapacity", "bind q/job-0 g", "evict q/job-4 for q/high\nevict q/job-5 for q/high"},
			without: "minTaskMember of Volcano",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play := func(t *testing.T, dialect *Dialect) string {
				s := New(t, BuiltIn(t), append(tc.nodes, Queue("default", 1), Queue("q", 1)), WithConfig(evicting), WithDialects(func(title string) *Dialect {
					if title == "q/job" {
						return dialect
					}
					return nil
				}))
				s.Add(Group("q/job", 1, tc.job...))
				reason, _, _ := strings.Cut(s.Cycle()+s.Waits(), ":") // the rest names subgroups and segments
				days := []string{reason}
				s.Add(tc.later...)
				days = append(days, s.Cycle())
				s.ConfirmBinds()
				s.Start()
				s.Add(Group("q/high", 2, Pending(2, "1cpu", Priority(9))))
				days = append(days, s.Cycle())
				FinishEvictionsAndRecreate(s)
				return strings.Join(append(days, s.Cycle()), "\n--\n")
			}
			want := play(t, nil)
			for _, part := range tc.parts {
				if !strings.Contains(want, part) {
					t.Errorf("the scenario lacks %q:\n%s", part, want)
				}
			}
			for name, dialect := range subGroupDialects() {
				if name == tc.without {
					continue
				}
				t.Run(name, func(t *testing.T) {
					if diff := cmp.Diff(want, play(t, dialect)); diff != "" {
						t.Errorf("(-own +%s):\n%s", name, diff)
					}
				})
			}
		})
	}
}
