// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package subgroups chooses the tasks with which a gang that has subgroups starts and grows.
//
// First the subgroups get what they need, as few tasks as possible. A subgroup gets all that it needs or nothing, so
// that no task above a minimum takes what another subgroup needs. Once the gang has all minima, surplus follows: one task
// at a time, or one whole segment or optional subgroup.
package subgroups

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// filler fills the subgroups of one job with tasks.
type filler struct {
	waiting map[*api.SubGroup][]*api.TaskInfo // in task order
	chosen  choice
	order   Order
}

// Order is the order in which subgroups are filled that are all needed. A nil Order is that of the specification.
type Order func(a, b *api.TaskInfo) int

// choice takes tasks. It is a list of tasks, or a statement that places them.
type choice interface {
	// take reports whether the choice has a use for t. A task that has been taken is not passed again, unless it is undone.
	take(t *api.TaskInfo) bool
	// taken reports whether t is in the choice.
	taken(t *api.TaskInfo) bool
	// count returns how many members of the subgroup need no further task: those that are in the choice too.
	count(s *api.SubGroup) int32
	// mark returns the present state, and undo goes back to it.
	mark() int
	undo(mark int)
	// within calls fill, which takes what the subgroup lacks or nothing, and reports what it reports. A choice may call it
	// several times, until it succeeds.
	within(s *api.SubGroup, fill func() bool) bool
}

func newFiller(tasks []*api.TaskInfo, c choice, order Order) *filler {
	f := &filler{waiting: map[*api.SubGroup][]*api.TaskInfo{}, chosen: c, order: order}
	for _, t := range tasks {
		if t.Waiting() {
			f.waiting[t.SubGroup()] = append(f.waiting[t.SubGroup()], t)
		}
	}
	return f
}

// fill takes what the subgroup lacks. It reports false, and takes nothing, if the tasks do not suffice.
func (f *filler) fill(s *api.SubGroup) bool {
	if !s.Complete((*api.MemberCounts).ValidCount) {
		return false
	}
	if s.TopologyLevel == nil {
		return f.fillParts(s)
	}
	return f.chosen.within(s, func() bool { return f.fillParts(s) })
}

// fillParts fills the children and then the subgroup itself.
func (f *filler) fillParts(s *api.SubGroup) bool {
	start := f.chosen.mark()
	missing := s.MinSubGroup
	for _, c := range f.sorted(s) {
		if missing <= 0 {
			break
		}
		if f.fill(c) {
			missing--
		} else if int(s.MinSubGroup) == len(s.Children) {
			break // all are needed
		}
	}
	if missing > 0 || !f.fillMembers(s) {
		f.chosen.undo(start)
		return false
	}
	return true
}

// fillMembers takes tasks until the subgroup has as many members as it needs: its own in a leaf, else surplus of its
// children.
func (f *filler) fillMembers(s *api.SubGroup) bool {
	if len(s.Children) == 0 {
		for _, t := range f.waiting[s] {
			if f.chosen.count(s) >= s.MinMember {
				break
			}
			if !f.chosen.taken(t) {
				f.chosen.take(t)
			}
		}
		return f.chosen.count(s) >= s.MinMember
	}
	for f.chosen.count(s) < s.MinMember {
		if !f.grow(s, false) {
			return false
		}
	}
	return true
}

// sorted returns the children in the order in which they are filled. If any of them suffice, those come first that are
// complete or need the fewest tasks.
func (f *filler) sorted(s *api.SubGroup) []*api.SubGroup {
	if len(s.Children) < 2 {
		return s.Children
	}
	children := slices.Clone(s.Children)
	if int(s.MinSubGroup) < len(s.Children) || s.SegmentSize > 0 {
		slices.SortStableFunc(children, func(a, b *api.SubGroup) int { return cmp.Compare(a.Lacks(f.chosen.count), b.Lacks(f.chosen.count)) })
		return children
	}
	if f.order != nil {
		first := map[*api.SubGroup]*api.TaskInfo{}
		for _, c := range children {
			first[c] = f.firstOf(c)
		}
		slices.SortStableFunc(children, func(a, b *api.SubGroup) int {
			x, y := first[a], first[b]
			if x == nil || y == nil {
				return 0
			}
			return f.order(x, y)
		})
	}
	return children
}

func (f *filler) firstOf(s *api.SubGroup) *api.TaskInfo {
	if tasks := f.waiting[s]; len(tasks) > 0 {
		return tasks[0]
	}
	for _, c := range s.Children {
		if t := f.firstOf(c); t != nil {
			return t
		}
	}
	return nil
}

// grow takes the next surplus of the subgroup: one task, or all that an incomplete child needs. The tasks with the highest
// priority come first, as in jobs without subgroups: otherwise pods that were evicted for others of their job would
// come before these. Of equal ones, the children with the smallest ratio of members that they have to those that they
// could have come first, and tasks of the subgroup itself last. Tasks that request nothing do not count as surplus if
// skipBestEffort is set.
func (f *filler) grow(s *api.SubGroup, skipBestEffort bool) bool {
	type part struct {
		child    *api.SubGroup // nil: the subgroup itself
		priority int32
	}
	var parts []part
	for _, c := range s.Children {
		if t := f.highest(c); t != nil {
			parts = append(parts, part{c, t.Priority})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return f.ratio(a.child).Compare(f.ratio(b.child)) })
	if t := f.next(s); t != nil {
		parts = append(parts, part{nil, t.Priority})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.priority, a.priority) })
	for _, p := range parts {
		switch c := p.child; {
		case c == nil:
			if f.growOwn(s, skipBestEffort) {
				return true
			}
		case c.CompleteWith(f.chosen.count):
			if f.grow(c, skipBestEffort) {
				return true
			}
		case f.fill(c):
			return true
		}
	}
	return false
}

// growOwn takes the next task of the subgroup itself.
func (f *filler) growOwn(s *api.SubGroup, skipBestEffort bool) bool {
	for _, t := range f.waiting[s] {
		if !f.chosen.taken(t) && !(skipBestEffort && t.BestEffort()) && f.chosen.take(t) {
			return true
		}
	}
	return false
}

// next returns the first task of the subgroup itself that is left; nil if there is none.
func (f *filler) next(s *api.SubGroup) *api.TaskInfo {
	for _, t := range f.waiting[s] {
		if !f.chosen.taken(t) {
			return t
		}
	}
	return nil
}

// highest returns a task that is left in the subgroup, or in its children, with the highest priority there.
func (f *filler) highest(s *api.SubGroup) *api.TaskInfo {
	highest := f.next(s)
	for _, c := range s.Children {
		if t := f.highest(c); t != nil && (highest == nil || t.Priority > highest.Priority) {
			highest = t
		}
	}
	return highest
}

// ratio returns which part of the members that it could have the subgroup has.
func (f *filler) ratio(s *api.SubGroup) api.Share {
	return api.Share{Part: int64(f.chosen.count(s)), Whole: int64(max(s.ValidCount(), 1))}
}
