// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// keyedWith is the dialect of pods without PodGroup that are a gang by their group key, with more annotations for a PodGroup.
func keyedWith(annotations func(*v1alpha1.PodGroup) map[string]string) *Dialect {
	return &Dialect{Member: func(p *v1.Pod, g *v1alpha1.PodGroup, title string) {
		p.Annotations[v1alpha1.AnnotationGroupKey] = title
		p.Annotations[v1alpha1.AnnotationMinMember] = strconv.Itoa(int(g.Spec.MinMember))
		p.Labels[v1alpha1.LabelQueue] = g.Spec.Queue
		for key, value := range annotations(g) {
			if value != "" {
				p.Annotations[key] = value
			}
		}
	}}
}

// levelsOf returns the levels that a PodGroup requires and prefers.
func levelsOf(g *v1alpha1.PodGroup) (required, preferred string) {
	if c := g.Spec.TopologyConstraint; c != nil {
		return c.RequiredTopologyLevel, c.PreferredTopologyLevel
	}
	return "", ""
}

// topologyDialects are the ways to write a topology constraint besides the PodGroups of this scheduler.
func topologyDialects() map[string]*Dialect {
	members := dialects()
	native := func(g *v1alpha1.PodGroup) map[string]any {
		required, preferred := levelsOf(g)
		if required == "" || preferred != "" {
			return map[string]any{}
		}
		return map[string]any{"topology": []any{map[string]any{"key": required}}}
	}
	return map[string]*Dialect{
		"native": {
			Group: translated(api.SourceNative, func(g *v1alpha1.PodGroup) map[string]any {
				spec := podGroupSpec(g.Spec.MinMember, "")
				spec["schedulingConstraints"] = native(g)
				return spec
			}),
			Member: members["native"].Member,
		},
		"composite": {
			Group: translated(api.SourceComposite, func(g *v1alpha1.PodGroup) map[string]any {
				spec := compositeSpec(1, "")
				spec["schedulingConstraints"] = native(g)
				return spec
			}),
			Parts: members["composite"].Parts, Member: members["composite"].Member,
		},
		"volcano": {
			Group: translated(api.SourceVolcano, func(g *v1alpha1.PodGroup) map[string]any {
				spec := map[string]any{"minMember": int64(g.Spec.MinMember), "queue": g.Spec.Queue}
				switch required, preferred := levelsOf(g); {
				case required != "":
					spec["networkTopology"] = map[string]any{"mode": "hard", "highestTierName": required}
				case preferred != "":
					spec["networkTopology"] = map[string]any{"mode": "soft", "highestTierName": preferred}
				}
				return spec
			}),
			Member: members["volcano"].Member,
		},
		"volcano, by number": {
			Group: translated(api.SourceVolcano, func(g *v1alpha1.PodGroup) map[string]any {
				numbers := map[string]int64{"rack": 1, "block": 2}
				spec := map[string]any{"minMember": int64(g.Spec.MinMember), "queue": g.Spec.Queue}
				switch required, preferred := levelsOf(g); {
				case required != "":
					spec["networkTopology"] = map[string]any{"mode": "hard", "highestTierAllowed": numbers[required]}
				case preferred != "":
					spec["networkTopology"] = map[string]any{"mode": "soft", "highestTierAllowed": numbers[preferred]}
				}
				return spec
			}),
			Member: members["volcano"].Member,
		},
		"kai": {
			Group: translated(api.SourceKAI, func(g *v1alpha1.PodGroup) map[string]any {
				required, preferred := levelsOf(g)
				constraint := map[string]any{"topology": "default"}
				for key, level := range map[string]string{"requiredTopologyLevel": required, "preferredTopologyLevel": preferred} {
					if level != "" {
						constraint[key] = level
					}
				}
				return map[string]any{"minMember": int64(g.Spec.MinMember), "queue": g.Spec.Queue, "topologyConstraint": constraint}
			}),
			Member: members["kai"].Member,
		},
		"annotations": keyedWith(func(g *v1alpha1.PodGroup) map[string]string {
			required, preferred := levelsOf(g)
			return map[string]string{v1alpha1.AnnotationTopologyRequired: required, v1alpha1.AnnotationTopologyPreferred: preferred}
		}),
		"annotations of KAI Scheduler": keyedWith(func(g *v1alpha1.PodGroup) map[string]string {
			required, preferred := levelsOf(g)
			return map[string]string{
				"kai.scheduler/topology":                    "default",
				"kai.scheduler/topology-required-placement": required, "kai.scheduler/topology-preferred-placement": preferred,
			}
		}),
		"annotations of Kueue": keyedWith(func(g *v1alpha1.PodGroup) map[string]string {
			required, preferred := levelsOf(g)
			annotations := map[string]string{"kueue.x-k8s.io/podset-required-topology": required, "kueue.x-k8s.io/podset-preferred-topology": preferred}
			for _, s := range g.Spec.SubGroups {
				annotations["kueue.x-k8s.io/podset-slice-required-topology"] = s.SegmentTopologyConstraint.RequiredTopologyLevel
				annotations["kueue.x-k8s.io/podset-slice-size"] = strconv.Itoa(int(s.SegmentSize))
			}
			return annotations
		}),
	}
}

// TestDialectsOfTopology: a gang with a topology constraint starts, evicts, and returns to its domain in the same way, whichever
// API it is written in.
func TestDialectsOfTopology(t *testing.T) {
	slices := eachInOne("rack", segments("w", 2, 2))
	slices.SegmentBy, slices.Selector = "", &metav1.LabelSelector{}
	all := []string{"native", "composite", "volcano", "volcano, by number", "kai", "annotations", "annotations of KAI Scheduler", "annotations of Kueue"}
	for name, tc := range map[string]struct {
		job      []Part
		parts    []string // of the transcript
		dialects []string
		nodes    []Row // nil for those of the other cases
	}{
		"required": {
			[]Part{Within("rack"), Pending(4, "1cpu", Priority(9))},
			[]string{"evict q/a-0 for q/job", "bind q/job-3 cr1n4", "\n--\nbind q/job-0 cr1n1"}, all, nil,
		},
		"required and preferred": {
			[]Part{Within("block"), Prefer("rack", 0), Pending(4, "1cpu", Priority(9))},
			[]string{"bind q/job-0 ar1n1", "bind q/job-2 ar2n1"},
			[]string{"kai", "annotations", "annotations of KAI Scheduler", "annotations of Kueue"}, nil,
		},
		"preferred": {
			[]Part{Prefer("rack", 0), Pending(4, "1cpu", Priority(9))},
			[]string{"bind q/job-0 ar1n1", "bind q/job-2 ar2n1"},
			[]string{"volcano", "volcano, by number", "kai", "annotations", "annotations of KAI Scheduler", "annotations of Kueue"}, nil,
		},
		"slices": {
			append(indexed("batch.kubernetes.io/job-completion-index", 0, 1, 2, 3), Within("block"), SubGroups(slices)),
			[]string{"bind q/job-1 dr1n2", "bind q/job-2 dr2n1", "bind q/job-3 dr2n2"}, []string{"annotations of Kueue"},
			Given(rack("d", "r1", 3, "1cpu"), rack("d", "r2", 3, "1cpu")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			play := func(t *testing.T, dialect *Dialect) string {
				s := New(t, BuiltIn(t), racks(Queue("default", 1)), WithConfig(evicting), WithDialects(func(title string) *Dialect {
					if title == "q/job" {
						return dialect
					}
					return nil
				}))
				nodes := tc.nodes
				if nodes == nil {
					nodes = Given(rack("a", "r1", 2, "1cpu"), rack("a", "r2", 2, "1cpu"), rack("b", "r1", 3, "1cpu"), rack("c", "r1", 4, "1cpu"), Group("q/a", 1, on("cr1n2")...))
				}
				s.Add(nodes...)
				s.Add(Group("q/job", 4, tc.job...))
				days := []string{s.Cycle()}
				s.FinishEvictions()
				days = append(days, s.Cycle())
				s.ConfirmBinds()
				s.Start()
				s.Recreate("q/job-0")
				return strings.Join(append(days, s.Cycle()), "\n--\n")
			}
			want := play(t, nil)
			for _, part := range tc.parts {
				if !strings.Contains(want, part) {
					t.Errorf("the scenario lacks %q:\n%s", part, want)
				}
			}
			for _, name := range tc.dialects {
				t.Run(name, func(t *testing.T) {
					if diff := cmp.Diff(want, play(t, topologyDialects()[name])); diff != "" {
						t.Errorf("(-own +%s):\n%s", name, diff)
					}
				})
			}
		})
	}
}

// gangWith are pods of queue q without PodGroup that start together, each with these options.
func gangWith(count int, options ...PodOption) []Part {
	return []Part{OfQueue("q"), Pending(count, "1cpu", append(options, GangOf(strconv.Itoa(count)))...)}
}

// TestDeclaredTopologies: annotations that name no level, or that the scheduler cannot honour, keep pods waiting, and a node label
// that is in no topology is a level by itself.
func TestDeclaredTopologies(t *testing.T) {
	const required, slice, size = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-slice-required-topology", "kueue.x-k8s.io/podset-slice-size"
	key, size4 := Annotation(v1alpha1.AnnotationGroupKey, "k"), Annotation(v1alpha1.AnnotationMinMember, "4")
	twoZones := Given(Queue("q", 1), Nodes(3, "a", "1cpu", Label("example.com/zone", "a")), Nodes(4, "b", "1cpu", Label("example.com/zone", "b")))
	inKAI := &Dialect{Member: dialects()["kai"].Member, Group: translated(api.SourceKAI, func(g *v1alpha1.PodGroup) map[string]any {
		c := g.Spec.TopologyConstraint
		return map[string]any{"queue": "q", "topologyConstraint": map[string]any{"topology": c.Topology, "requiredTopologyLevel": c.RequiredTopologyLevel}}
	})}
	inVolcano := &Dialect{Member: dialects()["volcano"].Member, Group: translated(api.SourceVolcano, func(*v1alpha1.PodGroup) map[string]any {
		return map[string]any{"queue": "q", "networkTopology": map[string]any{"highestTierAllowed": int64(3)}}
	})}
	for name, tc := range map[string]struct {
		given []Row
		want  string
	}{
		"a node label": {append(twoZones, ReplicaSet("p", gangWith(4, Annotation(required, "example.com/zone"))...)), "bind p-3 b4"},
		"a node label that no node has": {
			append(twoZones, ReplicaSet("p", gangWith(4, Annotation(required, "example.com/rack"))...)), "node(s) were not in any example.com/rack",
		},
		"a misspelt level": {
			racks(rack("b", "r1", 4, "1cpu"), ReplicaSet("p", gangWith(4, Annotation(required, "rak"))...)),
			`TopologyNotFound: no level "rak" in topology default: block, rack; did you mean "rack"?`,
		},
		"several topologies": {
			racks(Topology("other", "rack"), rack("b", "r1", 4, "1cpu"), ReplicaSet("p", gangWith(4, Annotation(required, "rack"))...)),
			`TopologyNotFound: several topologies have a level "rack": default, other; name one with the annotation scheduling.batch-scheduler.dev/topology`,
		},
		"a level of no topology": {
			Given(Queue("q", 1), rack("b", "r1", 4, "1cpu"), ReplicaSet("p", gangWith(4, Annotation(required, "rack"))...)),
			`TopologyNotFound: no topology has a level "rack", and it is no node label with a prefix, such as topology.kubernetes.io/zone`,
		},
		"a size without slices": {
			racks(rack("b", "r1", 4, "1cpu"), ReplicaSet("p", gangWith(4, Annotation(size, "2"))...)),
			"NotSupported: the scheduler does not support annotation kueue.x-k8s.io/podset-slice-size without kueue.x-k8s.io/podset-slice-required-topology",
		},
		"no slices of the gang": {
			racks(rack("b", "r1", 4, "1cpu"), ReplicaSet("p", gangWith(4, Annotation(slice, "rack"), Annotation(size, "3"), Label("batch.kubernetes.io/job-completion-index", "0"))...)),
			"NotSupported: the scheduler does not support annotation kueue.x-k8s.io/podset-slice-size is 3, but 4 pods start together, which are no whole slices",
		},
		"a topology of KAI Scheduler": {
			Given(Queue("q", 1), Queue("default", 1), rack("b", "r1", 4, "1cpu"), Group("q/kai", 1, Within("cluster rack"), Pending(1, "1cpu"))),
			`TopologyNotFound: no topology "cluster"; none exists; create a Topology of scheduling.batch-scheduler.dev with the name and the levels of that of KAI Scheduler`,
		},
		"a tier of Volcano": {
			racks(Queue("default", 1), rack("b", "r1", 4, "1cpu"), Group("q/volcano", 1, Within("3"), Pending(1, "1cpu"))),
			`TopologyNotFound: no tier 3 in topology default (1 is rack, 2 is block)`,
		},
		"pods that disagree": {
			racks(rack("b", "r1", 4, "1cpu"), ReplicaSet("p", OfQueue("q"), Pending(2, "1cpu", key, size4, Annotation(required, "rack"))),
				ReplicaSet("x", OfQueue("q"), Pending(2, "1cpu", key, size4))),
			"NotSupported: the scheduler does not support different topology annotations of the pods of one gang, such as ns/p-0 and ns/x-0",
		},
		"slices of pods without an index": {
			racks(rack("b", "r1", 4, "1cpu"), ReplicaSet("p", gangWith(4, Annotation(slice, "rack"), Annotation(size, "2"))...)),
			"NotSupported: the scheduler does not support annotation " + slice + " of pods without an index, such as ns/p-0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t, BuiltIn(t), tc.given, WithDialects(func(title string) *Dialect {
				switch title {
				case "q/kai":
					return inKAI
				case "q/volcano":
					return inVolcano
				}
				return nil
			}))
			if got := s.Cycle() + s.Waits(); !strings.Contains(got, tc.want) {
				t.Errorf("got:\n%s\nwant %q", got, tc.want)
			}
		})
	}
}
