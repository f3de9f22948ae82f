// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package subgroups_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/subgroups"
)

// gang is a random tree of subgroups, of which some members run and the others wait.
type gang struct {
	t       *rapid.T
	job     *api.JobInfo
	waiting []*api.TaskInfo
}

func (g *gang) upTo(n int, what string) int32 { return int32(rapid.IntRange(0, n).Draw(g.t, what)) }

func drawGang(t *rapid.T) *gang {
	g := &gang{t: t, job: &api.JobInfo{SubGroups: &api.SubGroup{}}}
	root := g.job.SubGroups
	for i := range 1 + g.upTo(2, "subgroups") {
		g.drawSubGroup(root, fmt.Sprint(i), 2)
	}
	root.MinSubGroup = int32(len(root.Children))
	g.addMembers(root, 2)
	if g.upTo(1, "minimum of the whole") > 0 {
		root.MinMember = g.upTo(6, "minMember")
	}
	g.job.MinMember = root.Need()
	return g
}

func (g *gang) drawSubGroup(parent *api.SubGroup, name string, levels int) {
	s := &api.SubGroup{Name: name, Parent: parent}
	parent.Children = append(parent.Children, s)
	before := len(g.job.Tasks)
	switch kind := g.upTo(4, "kind"); {
	case kind == 4:
		s.SegmentSize, s.MinSubGroup = 2, g.upTo(2, "segments")
		for i := range g.upTo(2, "segments that exist") {
			g.addMembers(s.Segment(int64(i), fmt.Sprint(i)), 3)
		}
	case kind == 3 && levels > 0:
		n := 1 + g.upTo(2, "children")
		for i := range n {
			g.drawSubGroup(s, fmt.Sprint(name, i), levels-1)
		}
		s.MinSubGroup = g.upTo(int(n), "minSubGroup")
	default:
		g.addMembers(s, 3)
		s.MinMember = g.upTo(len(g.job.Tasks)-before, "minMember")
		if g.upTo(9, "too few members") > 8 {
			s.MinMember++
		}
	}
}

// addMembers adds members that wait or run. More than 10 that wait would take the dumb search too long.
func (g *gang) addMembers(s *api.SubGroup, most int) {
	for range g.upTo(most, "members") {
		t := &api.TaskInfo{Job: g.job, Signature: &api.Signature{}, Status: api.Pending, Key: fmt.Sprint(len(g.job.Tasks))}
		t.Tracking.SubGroup = s
		if g.upTo(3, "runs") == 3 || len(g.waiting) == 10 {
			t.Status = api.Succeeded // counts without a node
		} else {
			g.waiting = append(g.waiting, t)
		}
		g.job.Tasks = append(g.job.Tasks, t)
		count(t, +1)
	}
}

// count counts t in its job and its subgroups, as package model does.
func count(t *api.TaskInfo, sign int32) {
	t.Job.Tracking.Add(t, sign)
	for s := t.SubGroup(); s != nil; s = s.Parent {
		s.Add(t, sign)
	}
}

func setStatus(status api.TaskStatus, tasks ...*api.TaskInfo) {
	for _, t := range tasks {
		count(t, -1)
		t.Status = status
		count(t, +1)
	}
}

// fewest returns the size of the smallest set of waiting tasks with which the gang has all its minima; -1 if there is
// none.
func (g *gang) fewest() int {
	best := -1
	for set := range 1 << len(g.waiting) {
		n := bits.OnesCount(uint(set))
		if best >= 0 && n >= best {
			continue
		}
		var chosen []*api.TaskInfo
		for i, t := range g.waiting {
			if set&(1<<i) != 0 {
				chosen = append(chosen, t)
			}
		}
		setStatus(api.Pipelined, chosen...)
		if g.job.Pipelined() && g.whole(chosen) {
			best = n
		}
		setStatus(api.Pending, chosen...)
	}
	return best
}

// whole reports whether each subgroup that has one of the tasks is complete, except the root.
func (g *gang) whole(tasks []*api.TaskInfo) bool {
	for _, t := range tasks {
		for s := t.SubGroup(); s.Parent != nil; s = s.Parent {
			if !s.Complete((*api.MemberCounts).PipelinedCount) {
				return false
			}
		}
	}
	return true
}

// TestNeeded compares what a gang needs with all sets of its tasks.
func TestNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGang(t)
		fewest := g.fewest()
		needed := subgroups.Needed(g.job, g.waiting)
		if fewest <= 0 {
			if len(needed) > 0 {
				t.Fatalf("got %d tasks, want none", len(needed))
			}
			return
		}
		setStatus(api.Pipelined, needed...)
		if !g.job.Pipelined() || !g.whole(needed) {
			t.Fatalf("the gang is incomplete with %d tasks; it needs %d", len(needed), fewest)
		}
		if g.exact() && len(needed) != fewest {
			t.Fatalf("got %d tasks, want %d", len(needed), fewest)
		}
	})
}

// exact reports whether the search finds the smallest set: surplus of segments or of optional subgroups for minMember of
// the whole gang can be larger than needed.
func (g *gang) exact() bool { return g.job.SubGroups.MinMember == 0 }

// capacity is enough for a number of tasks.
type capacity struct {
	free   int
	placed []*api.TaskInfo
}

func (s *capacity) Place(t *api.TaskInfo) bool {
	if s.free == 0 {
		return false
	}
	s.free--
	s.placed = append(s.placed, t)
	setStatus(api.Pipelined, t)
	return true
}

func (s *capacity) Within(_ *api.SubGroup, fill func() bool) bool { return fill() }

func (s *capacity) Mark() int { return len(s.placed) }

func (s *capacity) Undo(mark int) {
	s.free += len(s.placed) - mark
	setStatus(api.Pending, s.placed[mark:]...)
	s.placed = s.placed[:mark]
}

// TestPlace asserts that equal tasks are placed if and only if the capacity suffices, and that nothing remains placed
// otherwise.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGang(t)
		fewest := g.fewest()
		s := &capacity{free: int(g.upTo(10, "capacity"))}
		free := s.free
		ok, failed, _ := subgroups.Place(g.job, g.waiting, s, nil)
		switch {
		case ok && (!g.job.Pipelined() || !g.whole(s.placed)):
			t.Fatal("the gang is incomplete")
		case !ok && len(s.placed) > 0:
			t.Fatalf("%d tasks remain placed", len(s.placed))
		case g.exact() && ok != (fewest >= 0 && fewest <= free):
			t.Fatalf("got %t with a capacity of %d, and it needs %d", ok, free, fewest)
		case !ok && fewest > free && free == 0 && failed == nil:
			t.Fatal("no task failed")
		}
	})
}

// TestSurplus adds surplus until nothing is left: no subgroup is ever incomplete, and all complete ones get all tasks.
func TestSurplus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGang(t)
		setStatus(api.Pipelined, subgroups.Needed(g.job, g.waiting)...)
		if !g.job.Pipelined() {
			return
		}
		for {
			next := subgroups.Surplus(g.job, g.waiting)
			if len(next) == 0 {
				break
			}
			setStatus(api.Pipelined, next...)
			if !g.whole(next) {
				t.Fatalf("%d tasks of an incomplete subgroup are surplus", len(next))
			}
		}
		if i := slices.IndexFunc(g.waiting, func(t *api.TaskInfo) bool {
			return t.Status == api.Pending && t.SubGroup().Complete((*api.MemberCounts).PipelinedCount) && g.whole([]*api.TaskInfo{t})
		}); i >= 0 {
			t.Fatalf("task %s is left", g.waiting[i].Key)
		}
	})
}

// TestSurplusUnit asserts of each running task that it can be evicted with the returned unit, and that no smaller part of the
// gang that it is in would do.
func TestSurplusUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGang(t)
		node := &api.NodeInfo{Node: &v1.Node{}}
		for _, task := range g.job.Tasks {
			count(task, -1)
			task.Status, task.Node = api.Running, node
			count(task, +1)
		}
		if !g.job.Ready() {
			return
		}
		for _, task := range g.job.Tasks {
			var want []*api.TaskInfo
			for s := (*api.SubGroup)(nil); s != g.job.SubGroups && want == nil; s = parentOf(s, task) {
				if unit := g.unit(s, task); g.readyWithout(unit) {
					want = unit
				}
			}
			if got, _ := api.SurplusUnit(task); !slices.Equal(got.Tasks, want) {
				t.Fatalf("task %s: got a unit of %d tasks, want %d", task.Key, len(got.Tasks), len(want))
			}
		}
	})
}

// parentOf returns the next larger part that the task is in; nil is the task alone.
func parentOf(s *api.SubGroup, task *api.TaskInfo) *api.SubGroup {
	if s == nil {
		return task.SubGroup()
	}
	return s.Parent
}

// unit returns the tasks in a part of the gang; nil is the task alone.
func (g *gang) unit(s *api.SubGroup, task *api.TaskInfo) []*api.TaskInfo {
	if s == nil {
		return []*api.TaskInfo{task}
	}
	var tasks []*api.TaskInfo
	for _, other := range g.job.Tasks {
		for at := other.SubGroup(); at != nil; at = at.Parent {
			if at == s {
				tasks = append(tasks, other)
			}
		}
	}
	slices.SortFunc(tasks, func(a, b *api.TaskInfo) int { return api.CompareAge(a.Created, b.Created, a.Key, b.Key) })
	return tasks
}

// readyWithout reports whether the gang is ready without the tasks, and each of their subgroups complete or empty.
func (g *gang) readyWithout(tasks []*api.TaskInfo) bool {
	for _, t := range tasks {
		count(t, -1)
		t.Status = api.Releasing
		count(t, +1)
	}
	ready := g.job.Ready()
	for _, t := range tasks {
		for s := t.SubGroup(); s.Parent != nil; s = s.Parent {
			ready = ready && (s.Holding() == 0 || s.Complete((*api.MemberCounts).ReadyCount))
		}
	}
	for _, t := range tasks {
		count(t, -1)
		t.Status = api.Running
		count(t, +1)
	}
	return ready
}
