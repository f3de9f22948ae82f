// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// treeObjects are the groups and pods that exist.
type treeObjects struct {
	groups map[api.GroupKey]*api.Group
	pods   map[string]*v1.Pod
}

// drawGroup draws a group, whose parent may be missing, itself, or below it.
func drawGroup(t *rapid.T, generation int) *api.Group {
	source, name := api.SourceComposite, rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "x"}).Draw(t, "composite")
	if rapid.Bool().Draw(t, "podgroup") {
		source, name = api.SourceNative, rapid.SampledFrom([]string{"w", "x", "y", "z"}).Draw(t, "name")
	}
	queue := rapid.SampledFrom([]string{"", "", "", "q", "r"}).Draw(t, "queue")
	g := aGroupOf(source, name, queue, 1)
	if rapid.IntRange(0, 3).Draw(t, "new object") == 0 {
		g.UID = types.UID(fmt.Sprintf("%s-%d", g.UID, generation))
	}
	g.Parent = rapid.SampledFrom([]string{"", "a", "b", "c", "d", "none"}).Draw(t, "parent")
	if source == api.SourceComposite {
		g.MinGroups = rapid.Int32Range(0, 3).Draw(t, "min groups")
		if g.Parent == "none" {
			g.Parent = ""
		}
	} else {
		g.Spec.MinMember = rapid.Int32Range(0, 2).Draw(t, "min")
	}
	if g.Parent == "" && source == api.SourceNative {
		g.Spec.MinMember, g.Basic = max(g.Spec.MinMember, 1), rapid.Bool().Draw(t, "basic")
	}
	g.Priority = rapid.SampledFrom([]*int32{nil, nil, nil, ptr.To[int32](1), ptr.To[int32](2)}).Draw(t, "priority")
	g.Whole = rapid.IntRange(0, 4).Draw(t, "whole") == 0
	if rapid.IntRange(0, 9).Draw(t, "unsupported") == 0 {
		g.NotSupported = "spec.field"
	}
	return g
}

// change draws a change, and applies it to a model.
func (w *treeObjects) change(t *rapid.T, e model.Events, i int) {
	switch rapid.IntRange(0, 5).Draw(t, "change") {
	case 0, 1, 2:
		g := drawGroup(t, i)
		w.groups[g.Key()] = g
		e.SetGroup(g)
	case 3:
		key := drawGroup(t, i).Key()
		if g := w.groups[key]; g != nil {
			delete(w.groups, key)
			e.DeleteGroup(key, g.UID)
		} else {
			e.DeleteGroup(key, "uid-unknown")
		}
	case 4:
		name := fmt.Sprintf("p%d", rapid.IntRange(0, 7).Draw(t, "pod"))
		if w.pods[name] != nil {
			delete(w.pods, name)
			e.DeletePod(types.UID("uid-" + name))
			return
		}
		group := rapid.SampledFrom([]string{"w", "x", "y", "z"}).Draw(t, "of")
		pod := aPod(name, func(p *v1.Pod) { p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group} })
		if bound := w.groups[api.GroupKey{Source: api.SourceComposite, Name: "ns/a"}]; bound != nil && rapid.Bool().Draw(t, "bound") {
			pod.Spec.NodeName, pod.Status.Phase = "n", v1.PodRunning
			pod.Annotations["scheduling.batch-scheduler.dev/queue"] = cmp.Or(bound.Spec.Queue, "default")
			pod.Annotations["scheduling.batch-scheduler.dev/pod-group-uid"] = string(bound.UID)
		}
		w.pods[name] = pod
		e.SetPod(pod)
	case 5:
		e.Recompute()
	}
}

// rebuilt returns a model that has received the objects that exist, in a random order.
func (w *treeObjects) rebuilt(t *rapid.T) *model.Cluster {
	c := newTreeModel()
	var all []func()
	keys := slices.SortedFunc(maps.Keys(w.groups), func(a, b api.GroupKey) int { return cmp.Compare(a.JobID(), b.JobID()) })
	for _, key := range rapid.Permutation(keys).Draw(t, "groups") {
		all = append(all, func() { c.Events().SetGroup(w.groups[key]) })
	}
	for _, name := range sortedKeys(w.pods) {
		all = append(all, func() { c.Events().SetPod(w.pods[name]) })
	}
	if rapid.Bool().Draw(t, "pods first") {
		for i := range all {
			all[len(all)-1-i]()
		}
	} else {
		for _, set := range all {
			set()
		}
	}
	c.Events().Recompute()
	return c
}

func newTreeModel() *model.Cluster {
	c := model.NewCluster(model.Options{SchedulerNames: []string{ourScheduler}, DefaultQueue: "default", GroupSources: api.GroupSources{Native: true}})
	for _, name := range []string{"default", "q", "r"} {
		c.Events().SetQueue(aQueue(name))
	}
	c.Events().SetNode(aNode("n", "cpu", "100"))
	return c
}

// dumbTree returns the job in which a pending pod counts, straight from docs/group-sources.md: that of the root above its
// PodGroup, or of the PodGroup itself if there is no root.
func (w *treeObjects) dumbTree(name string) string {
	group := w.groups[api.GroupKey{Source: api.SourceNative, Name: "ns/" + name}]
	at, alone := group, "native/ns/"+name
	for range len(w.groups) + 1 {
		switch {
		case at == nil:
			return alone
		case at.Parent != "":
			at = w.groups[api.GroupKey{Source: api.SourceComposite, Name: "ns/" + at.Parent}]
		case at == group && group.Basic:
			return "shadow"
		case at == group:
			return alone
		default:
			return "composite/ns/" + at.Name
		}
	}
	return alone // a cycle
}

// describeModel describes jobs, members and queues.
func describeModel(c *model.Cluster) string {
	var text strings.Builder
	for _, j := range c.SortedJobs() {
		fmt.Fprintf(&text, "%s minMember %d queue %s/%t priority %d valid %t ready %t", j.ID, j.MinMember, j.QueueName, j.QueueFound(), j.Priority, j.Valid(), j.Ready())
		if v := c.Admissible(j); v != nil {
			fmt.Fprintf(&text, " %s %s", v.Reason, v.Message(c.Dims()))
		}
		if j.SubGroups != nil {
			describeSubGroup(&text, j.SubGroups)
		}
		text.WriteString("\n")
	}
	for _, t := range c.Tasks() {
		part := ""
		if t.SubGroup() != nil {
			part = t.SubGroup().Name
		}
		fmt.Fprintf(&text, "%s in %s of %s, %v\n", t.Key, part, t.Job.ID, t.Status)
	}
	lines := strings.Split(text.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func describeSubGroup(text *strings.Builder, s *api.SubGroup) {
	fmt.Fprintf(text, " (%s %d %d %t %v", s.Name, s.MinMember, s.MinSubGroup, s.Whole, s.MemberCounts)
	for _, c := range s.Children {
		describeSubGroup(text, c)
	}
	text.WriteString(")")
}

// TestGroupTreesTwin: groups of trees are created, changed, replaced and deleted in any order, and so are pods. The model is as
// if it were built from scratch from what exists, and pods count where the dumb rule says.
func TestGroupTreesTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &treeObjects{map[api.GroupKey]*api.Group{}, map[string]*v1.Pod{}}
		c := newTreeModel()
		for i := range rapid.IntRange(1, 40).Draw(t, "changes") {
			w.change(t, c.Events(), i)
		}
		c.Events().Recompute()
		if err := audit.Model(c); err != nil {
			t.Fatal(err)
		}
		if d := diff.Diff(describeModel(w.rebuilt(t)), describeModel(c)); d != "" {
			t.Fatalf("(-from scratch +changed):\n%s", d)
		}
		for _, task := range c.Tasks() {
			if task.Pod.Spec.NodeName != "" {
				continue
			}
			want := w.dumbTree(*task.Pod.Spec.SchedulingGroup.PodGroupName)
			if got := string(task.Job.ID); got != want && !(want == "shadow" && strings.HasPrefix(got, "shadow/")) {
				t.Fatalf("pod %s of %s counts in %s, want %s", task.Key, *task.Pod.Spec.SchedulingGroup.PodGroupName, got, want)
			}
		}
	})
}
