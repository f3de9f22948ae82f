// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package subgroups

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Needed returns the fewest of the tasks, which are in task order, with which the gang has all its minima; nil if it has
// them already, or if the tasks do not suffice.
func Needed(job *api.JobInfo, tasks []*api.TaskInfo) []*api.TaskInfo {
	l := newList()
	newFiller(tasks, l, nil).fill(job.SubGroups)
	return l.inOrder(tasks)
}

// NeededFirst returns the tasks with those that Needed returns first, and how many these are. In a gang for which the tasks do
// not suffice all are needed.
func NeededFirst(job *api.JobInfo, tasks []*api.TaskInfo) (sorted []*api.TaskInfo, needed int) {
	l := newList()
	if !newFiller(tasks, l, nil).fill(job.SubGroups) || len(l.tasks) == 0 {
		return tasks, len(tasks)
	}
	rest := slices.DeleteFunc(slices.Clone(tasks), func(t *api.TaskInfo) bool { return l.has[t] })
	return slices.Concat(l.inOrder(tasks), rest), len(l.tasks)
}

// Surplus returns those of the tasks that may start next in a gang that has all its minima: one task that requests
// something, or all that a segment or an optional subgroup needs. It returns nil if there are none.
func Surplus(job *api.JobInfo, tasks []*api.TaskInfo) []*api.TaskInfo {
	l := newList()
	newFiller(tasks, l, nil).grow(job.SubGroups, true)
	return l.inOrder(tasks)
}

// MayStartAlone reports whether t may start without other tasks of its subgroups: all that it is in are complete.
func MayStartAlone(t *api.TaskInfo) bool {
	for s := t.SubGroup(); s.Parent != nil; s = s.Parent {
		if !s.Complete((*api.MemberCounts).ReadyCount) {
			return false
		}
	}
	return true
}

// Placing places tasks.
type Placing interface {
	// Place reports whether it has found a place for t.
	Place(t *api.TaskInfo) bool
	// Mark returns the present position, and Undo undoes everything after it.
	Mark() int
	Undo(mark int)
	// Within calls fill, which places what a subgroup lacks or nothing, for one topology domain after the other of the level
	// that the subgroup requires, until it succeeds. It reports whether it did.
	Within(s *api.SubGroup, fill func() bool) bool
}

// Place places what the gang needs to have all its minima. If tasks of a subgroup have no place, it tries others of that subgroup,
// and where any subgroups suffice, others of these. It reports false, and leaves nothing placed, if it fails; then
// failed is the first task without a place, and placed are the tasks that had one at the end of the attempt.
func Place(job *api.JobInfo, tasks []*api.TaskInfo, p Placing, order Order) (ok bool, failed *api.TaskInfo, placed []*api.TaskInfo) {
	c := &places{Placing: p}
	ok = newFiller(tasks, c, order).fill(job.SubGroups)
	return ok, c.failed, c.most
}

// PlaceSurplus places all of the tasks, which Surplus has returned. It reports false, and leaves nothing placed, if it fails;
// then failed is the first task without a place.
func PlaceSurplus(job *api.JobInfo, tasks []*api.TaskInfo, p Placing) (ok bool, failed *api.TaskInfo) {
	c, start := &places{Placing: p}, p.Mark()
	if newFiller(tasks, c, nil).grow(job.SubGroups, true) && len(c.placed) == len(tasks) {
		return true, nil
	}
	c.undo(start)
	return false, c.failed
}

// list is a choice that only lists tasks.
type list struct {
	tasks   []*api.TaskInfo
	members map[*api.SubGroup]int32
	has     map[*api.TaskInfo]bool
}

func newList() *list {
	return &list{members: map[*api.SubGroup]int32{}, has: map[*api.TaskInfo]bool{}}
}

func (l *list) take(t *api.TaskInfo) bool {
	l.tasks, l.has[t] = append(l.tasks, t), true
	for s := t.SubGroup(); s != nil; s = s.Parent {
		l.members[s]++
	}
	return true
}

func (l *list) taken(t *api.TaskInfo) bool { return l.has[t] }

func (l *list) count(s *api.SubGroup) int32 { return s.PipelinedCount() + l.members[s] }

func (l *list) mark() int { return len(l.tasks) }

func (l *list) undo(mark int) {
	for _, t := range l.tasks[mark:] {
		l.has[t] = false
		for s := t.SubGroup(); s != nil; s = s.Parent {
			l.members[s]--
		}
	}
	l.tasks = l.tasks[:mark]
}

func (*list) within(_ *api.SubGroup, fill func() bool) bool { return fill() }

// inOrder returns the tasks in the order of others, which contain them.
func (l *list) inOrder(others []*api.TaskInfo) []*api.TaskInfo {
	if len(l.tasks) < 2 {
		return l.tasks
	}
	return slices.DeleteFunc(slices.Clone(others), func(t *api.TaskInfo) bool { return !l.has[t] })
}

// places is a choice that places the tasks, so that the model counts them.
type places struct {
	Placing
	placed []*api.TaskInfo
	most   []*api.TaskInfo // what was placed when most tasks were
	failed *api.TaskInfo
	unfit  map[*api.Signature]bool // since the last undo
}

func (p *places) take(t *api.TaskInfo) bool {
	if p.unfit[t.Signature] {
		return false
	}
	if !p.Place(t) {
		if p.failed == nil {
			p.failed = t
		}
		if p.unfit == nil {
			p.unfit = map[*api.Signature]bool{}
		}
		p.unfit[t.Signature] = true
		return false
	}
	p.placed = append(p.placed, t)
	return true
}

func (p *places) taken(t *api.TaskInfo) bool { return t.Status != api.Pending }

func (p *places) count(s *api.SubGroup) int32 { return s.PipelinedCount() }

func (p *places) mark() int { return p.Mark() }

func (p *places) undo(mark int) {
	if len(p.placed) > len(p.most) {
		p.most = slices.Clone(p.placed)
	}
	p.Undo(mark)
	p.placed = slices.DeleteFunc(p.placed, func(t *api.TaskInfo) bool { return t.Status == api.Pending })
	p.unfit = nil // what is free again may suffice
}

// within forgets which tasks fit nowhere: what is known of one domain says nothing about others.
func (p *places) within(s *api.SubGroup, fill func() bool) bool {
	defer func() { p.unfit = nil }()
	return p.Within(s, func() bool {
		p.unfit = nil
		return fill()
	})
}
