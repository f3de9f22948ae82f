// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package grouptree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// group returns a group from words: its kind (c for composite groups, p for PodGroups), its name, its parent or -, and its
// minimum. The rest are fields: queue=q, priority=1, class=c, whole, never, and unsupported=text.
func group(t *testing.T, text string) *api.Group {
	t.Helper()
	words := strings.Fields(text)
	g := &api.Group{PodGroup: &v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: words[1], UID: types.UID(words[0] + words[1])},
		Spec:       v1alpha1.PodGroupSpec{MinMember: 1},
	}, Source: api.SourceNative}
	g.Parent = strings.Trim(words[2], "-")
	minimum := &g.Spec.MinMember
	if words[0] == "c" {
		g.Source, minimum = api.SourceComposite, &g.MinGroups
	}
	if _, err := fmt.Sscan(words[3], minimum); err != nil {
		t.Fatal(err)
	}
	for _, word := range words[4:] {
		switch field, value, _ := strings.Cut(word, "="); field {
		case "queue":
			g.Spec.Queue = value
		case "priority":
			g.Priority = ptr.To(int32(value[0] - '0'))
		case "class":
			g.Spec.PriorityClassName = value
		case "whole":
			g.Whole = true
		case "never":
			g.NeverPreempts = true
		case "unsupported":
			g.NotSupported = value
		default:
			t.Fatalf("unknown field %s", field)
		}
	}
	return g
}

// describeDerived words what a tree makes of a group.
func describeDerived(g *api.Group) string {
	text := string(g.Source) + "/" + g.Name
	if g.Tree == nil {
		return text
	}
	if g.Tree.Root != "" {
		return text + " in " + g.Tree.Root
	}
	for _, s := range g.Spec.SubGroups {
		text += fmt.Sprintf(" (%s<%s", s.Name, s.Parent)
		if s.MinSubGroup != nil {
			text += fmt.Sprintf(" groups %d)", *s.MinSubGroup)
		} else {
			text += fmt.Sprintf(" pods %d)", *s.MinMember)
		}
	}
	if g.Spec.Queue != "" {
		text += " queue " + g.Spec.Queue
	}
	if g.Priority != nil {
		text += fmt.Sprint(" priority ", *g.Priority)
	}
	if g.Spec.PriorityClassName != "" {
		text += " class " + g.Spec.PriorityClassName
	}
	for _, flag := range []struct {
		set  bool
		name string
	}{{g.Whole, " whole"}, {g.NeverPreempts, " never preempts"}, {g.NotSupported != "", " not supported: " + g.NotSupported}} {
		if flag.set {
			text += flag.name
		}
	}
	if g.Tree.Refusal != nil {
		text += ": " + g.Tree.Refusal.Reason + ": " + g.Tree.Refusal.Message(nil)
	}
	return text
}

// TestTrees: what the groups mean that exist after some events. "- kind name" deletes a group.
func TestTrees(t *testing.T) {
	var wide []string
	for i := range v1alpha1.MaxSubGroups {
		wide = append(wide, fmt.Sprintf("p p%02d root 1", i))
	}
	for name, tc := range map[string]struct {
		events []string
		want   []string
	}{
		"the parent first": {
			[]string{"c root - 2 queue=q priority=7", "p a root 3", "p b root 0"},
			[]string{"composite/root (root< groups 2) (a<root pods 3) (b<root pods 0) queue q priority 7", "native/a in ns/root", "native/b in ns/root"},
		},
		"the parent last": {
			[]string{"p a mid 3", "c mid root 1", "c root - 1"},
			[]string{"composite/mid in ns/root", "composite/root (root< groups 1) (mid<root groups 1) (a<mid pods 3)", "native/a in ns/root"},
		},
		"no parent": {
			[]string{"p a mid 3", "c mid root 1"},
			[]string{
				`composite/mid: GroupNotFound: CompositePodGroup "root", the parent of CompositePodGroup "mid", does not exist in the namespace, or the scheduler cannot read it`,
				`native/a: GroupNotFound: CompositePodGroup "root", the parent of CompositePodGroup "mid", does not exist in the namespace, or the scheduler cannot read it`,
			},
		},
		"the root is deleted": {
			[]string{"c root - 1", "p a root 3", "- c root"},
			[]string{`native/a: GroupNotFound: CompositePodGroup "root", the parent of PodGroup "a", does not exist in the namespace, or the scheduler cannot read it`},
		},
		"a part is deleted":    {[]string{"c root - 1", "p a root 3", "- p a"}, []string{"composite/root (root< groups 1)"}},
		"a part moves":         {[]string{"c x - 1", "c y - 1", "p a x 3", "p a y 3"}, []string{"composite/x (x< groups 1)", "composite/y (y< groups 1) (a<y pods 3)", "native/a in ns/y"}},
		"a part stands alone":  {[]string{"c x - 1", "p a x 3", "p a - 3"}, []string{"composite/x (x< groups 1)", "native/a"}},
		"a minimum changes":    {[]string{"c root - 1", "p a root 3", "p a root 4"}, []string{"composite/root (root< groups 1) (a<root pods 4)", "native/a in ns/root"}},
		"a name of both kinds": {[]string{"c a - 1", "p a a 1"}, []string{"composite/a (CompositePodGroup/a< groups 1) (a<CompositePodGroup/a pods 1)", "native/a in ns/a"}},
		"a cycle": {
			[]string{"c b a 1", "c a b 1", "p p b 1"},
			[]string{
				`composite/a: InvalidSubGroups: the parents of CompositePodGroup "a" form a cycle`,
				`composite/b: InvalidSubGroups: the parents of CompositePodGroup "a" form a cycle`,
				`native/p: InvalidSubGroups: the parents of CompositePodGroup "a" form a cycle`,
			},
		},
		"its own parent":     {[]string{"c a a 1"}, []string{`composite/a: InvalidSubGroups: the parents of CompositePodGroup "a" form a cycle`}},
		"the end of a cycle": {[]string{"c b a 1", "c a b 1", "c b - 1"}, []string{"composite/a in ns/b", "composite/b (b< groups 1) (a<b groups 1)"}},
		"four levels": {
			[]string{"c 1 - 1", "c 2 1 1", "c 3 2 1", "p 4 3 1"},
			[]string{"composite/1 (1< groups 1) (2<1 groups 1) (3<2 groups 1) (4<3 pods 1)", "composite/2 in ns/1", "composite/3 in ns/1", "native/4 in ns/1"},
		},
		"five levels": {
			[]string{"c 1 - 1", "c 2 1 1", "c 3 2 1", "c 4 3 1", "p 5 4 1"},
			[]string{
				`composite/1: InvalidSubGroups: PodGroup "5" is below more than 3 levels of groups`,
				"composite/2 in ns/1", "composite/3 in ns/1", "composite/4 in ns/1", "native/5 in ns/1",
			},
		},
		"too many groups": {append(wide, "c root - 1"), []string{"composite/root: InvalidSubGroups: the tree of groups has 65 groups; at most 64 are supported"}},
		"the queue of a part": {
			[]string{"c root - 1", "p a root 3 queue=q", "p b root 3 queue=q"},
			[]string{"composite/root (root< groups 1) (a<root pods 3) (b<root pods 3) queue q", "native/a in ns/root", "native/b in ns/root"},
		},
		"two queues": {
			[]string{"c root - 1", "p a root 3 queue=q", "p b root 3 queue=r"},
			[]string{
				`composite/root queue q: QueueConflict: PodGroup "a" names queue q, and PodGroup "b" names queue r; name one queue with the label scheduling.batch-scheduler.dev/queue on the root of the tree`,
				"native/a in ns/root", "native/b in ns/root",
			},
		},
		"two priorities": {
			[]string{"c root - 1 priority=5", "p a root 3 priority=5", "p b root 3 priority=0"},
			[]string{
				`composite/root priority 5: GroupConflict: the groups of the tree have different priorities: CompositePodGroup "root" has 5, PodGroup "b" has 0`,
				"native/a in ns/root", "native/b in ns/root",
			},
		},
		"a number and its class": {
			[]string{"c root - 1 priority=5 class=high", "p a root 3 class=high"},
			[]string{"composite/root (root< groups 1) (a<root pods 3) priority 5 class high", "native/a in ns/root"},
		},
		"two classes": {
			[]string{"c root - 1", "p a root 3 class=high", "p b root 3 class=low"},
			[]string{
				`composite/root class high: GroupConflict: the groups of the tree have different priorities: PodGroup "a" has that of class high, PodGroup "b" has that of class low`,
				"native/a in ns/root", "native/b in ns/root",
			},
		},
		"one group preempts": {
			[]string{"c root - 1 never", "p a root 3"},
			[]string{
				`composite/root never preempts: GroupConflict: the groups of the tree have different preemption policies: CompositePodGroup "root", PodGroup "a"`, "native/a in ns/root",
			},
		},
		"what is not supported of a part": {
			[]string{"c root - 1", "p a root 3 unsupported=spec.x", "p b root 3 unsupported=spec.y"},
			[]string{`composite/root (root< groups 1) (a<root pods 3) (b<root pods 3) not supported: spec.x of PodGroup "a"`, "native/a in ns/root", "native/b in ns/root"},
		},
		"whole": {[]string{"c root - 1 whole", "p a root 3"}, []string{"composite/root (root< groups 1) (a<root pods 3) whole", "native/a in ns/root"}},
	} {
		t.Run(name, func(t *testing.T) {
			trees, derived := &Trees{}, map[api.GroupKey]*api.Group{}
			for _, event := range tc.events {
				changed := []*api.Group(nil)
				if rest, deletes := strings.CutPrefix(event, "- "); deletes {
					g := group(t, rest+" - 1")
					if got := trees.Delete(g.Key(), "another"); got != nil {
						t.Errorf("deleting another group of that name changes %v", got)
					}
					changed = trees.Delete(g.Key(), g.UID)
					delete(derived, g.Key())
				} else {
					changed = trees.Set(group(t, event))
				}
				for _, g := range changed {
					derived[g.Key()] = g
				}
			}
			var got []string
			for _, g := range derived {
				if text := describeDerived(g); name != "too many groups" || g.Source == api.SourceComposite {
					got = append(got, text)
				}
			}
			slices.Sort(got)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestChangesOfTrees: a change returns the group itself, and only those others that mean something else now.
func TestChangesOfTrees(t *testing.T) {
	trees := &Trees{}
	for _, step := range []struct{ event, want string }{
		{"c root - 1", "root"},
		{"p a root 3", "root a"},
		{"p b root 3", "root b"},
		{"p b root 3", "b"}, // its status
		{"p b root 4", "root b"},
		{"c other - 1", "other"},
		{"c root - 2", "root"},
		{"c root other 2", "other root a b"},
	} {
		var got []string
		for _, g := range trees.Set(group(t, step.event)) {
			got = append(got, g.Name)
		}
		if text := strings.Join(got, " "); text != step.want {
			t.Errorf("%s changes %s, want %s", step.event, text, step.want)
		}
	}
}
