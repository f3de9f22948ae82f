// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// existing are the groups that exist.
type existing map[GroupKey]*Group

func (e existing) Group(k GroupKey) *Group         { return e[k] }
func (existing) GroupWithUID(types.UID) *Group     { return nil }
func (existing) QueueOf(*Group) QueueID            { return "default" }
func (e existing) add(source GroupSource) existing { return e.addGroup(&Group{Source: source}) }

func (e existing) addGroup(g *Group) existing {
	g.PodGroup = &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g"}}
	e[g.Key()] = g
	return e
}

// TestSeveralGangs: the gang in which a pod counts, and another one that it names.
func TestSeveralGangs(t *testing.T) {
	none := GroupSources{}
	for name, tc := range map[string]struct {
		named        NamedGangs
		sources      GroupSources
		groups       existing
		first, other string
	}{
		"none":                              {NamedGangs{}, AllGroupSources(), nil, "", ""},
		"one":                               {NamedGangs{0: "g"}, AllGroupSources(), nil, "", ""},
		"a label and a native group":        {NamedGangs{0: "a", 1: "b"}, AllGroupSources(), nil, "PodGroup a", "group b of Kubernetes (scheduling.k8s.io)"},
		"the native group is no gang":       {NamedGangs{0: "a", 1: "g"}, AllGroupSources(), existing{}.addGroup(&Group{Source: SourceNative, Basic: true}), "", ""},
		"of sources that are not enabled":   {NamedGangs{0: "a", 1: "b", 2: "c"}, none, nil, "", ""},
		"two other APIs":                    {NamedGangs{1: "a", 2: "a"}, AllGroupSources(), nil, "group a of Kubernetes (scheduling.k8s.io)", "group a of scheduler-plugins (scheduling.x-k8s.io)"},
		"label and annotation of one group": {NamedGangs{0: "g", 3: "g"}, none, nil, "", ""},
		"label and annotation of two":       {NamedGangs{0: "a", 3: "b"}, none, nil, "PodGroup a", "PodGroup b"},
		"the annotation of Volcano alone":   {NamedGangs{3: "g"}, AllGroupSources(), existing{}.add(SourceVolcano), "", ""},
		"an annotation names two groups": {
			NamedGangs{3: "g"}, AllGroupSources(), existing{}.add(SourceVolcano).add(SourceOwn), "PodGroup g", "group g of Volcano (scheduling.volcano.sh)",
		},
		"a group key too":               {NamedGangs{2: "a", 5: "k"}, AllGroupSources(), nil, "group a of scheduler-plugins (scheduling.x-k8s.io)", "the gang with the group key k"},
		"a group key":                   {NamedGangs{5: "k"}, AllGroupSources(), nil, "", ""},
		"KAI Scheduler and a group key": {NamedGangs{4: "a", 5: "k"}, AllGroupSources(), nil, "group a of KAI Scheduler (scheduling.run.ai)", "the gang with the group key k"},
		"KAI Scheduler is not enabled":  {NamedGangs{4: "a", 5: "k"}, none, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			first, other := tc.named.Several("ns", MembershipRule{Sources: tc.sources, Groups: tc.groups})
			if first != tc.first || other != tc.other {
				t.Errorf("got %q and %q, want %q and %q", first, other, tc.first, tc.other)
			}
		})
	}
}

// TestNamedGangsOf: where a pod names gangs.
func TestNamedGangsOf(t *testing.T) {
	native := "native"
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   "ns",
			Labels:      map[string]string{v1alpha1.LabelPodGroup: "own", LabelSchedulerPluginsGroup: "plugins"},
			Annotations: map[string]string{v1alpha1.AnnotationGroupName: "annotated", AnnotationKAIGroup: "kai", v1alpha1.AnnotationGroupKey: "keyed"},
		},
		Spec: v1.PodSpec{SchedulingGroup: &v1.PodSchedulingGroup{PodGroupName: &native}},
	}
	if got, want := NamedGangsOf(pod), (NamedGangs{"own", "native", "plugins", "annotated", "kai", "keyed"}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
