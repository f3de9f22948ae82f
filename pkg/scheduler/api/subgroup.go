// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// SubGroup is a part of a gang with a minimum of its own, or the gang itself, which is the root of the tree of its
// subgroups. It is complete if MinMember of its members count and MinSubGroup of its children are complete. An optional
// child, which is not among these, has all the members that it needs or none. Package model builds the tree and maintains
// the counts.
type SubGroup struct {
	// Name is that of the specification; of a segment that of its subgroup and the segment's number or label value, such
	// as workers/3; of the root empty.
	Name     string
	Parent   *SubGroup // nil: the root
	Children []*SubGroup

	MinMember, MinSubGroup int32
	// Whole subgroups lose all of their members or none.
	Whole bool
	// SegmentSize is not 0 if the children are segments of so many members. SegmentBy is the label by which they differ.
	SegmentSize int32
	SegmentBy   string
	// TopologyLevel is the level of which all members must be in one domain, and SegmentLevel that of each segment; nil for
	// most. Constrained: the subgroup or one of its descendants has a level.
	TopologyLevel, SegmentLevel *TopologyLevel
	Constrained                 bool
	// Selector selects the members of a leaf by their labels; nil if it has none.
	Selector labels.Selector

	MemberCounts // of its children too

	number  int64 // of a segment, in the order of the segments
	removed int32 // members that SubGroup.removable assumes to be gone
}

// VolcanoTaskSpec is the annotation in which pods of Volcano have the name of their task; most have a label of that name
// too. Selectors of subgroups see it as a label.
const VolcanoTaskSpec = "volcano.sh/task-spec"

// Count is a way to count members.
type Count func(*MemberCounts) int32

func succeeded(c *MemberCounts) int32          { return c.Counts[Succeeded] }
func runningOrSucceeded(c *MemberCounts) int32 { return c.Running() + c.Counts[Succeeded] }

// Complete reports whether the subgroup has all the members that it needs, of those that count.
func (s *SubGroup) Complete(count Count) bool {
	return s.CompleteWith(func(of *SubGroup) int32 { return count(&of.MemberCounts) })
}

// CompleteWith is Complete with a number of members for each subgroup.
func (s *SubGroup) CompleteWith(members func(*SubGroup) int32) bool {
	if members(s) < s.MinMember {
		return false
	}
	missing := s.MinSubGroup
	for _, c := range s.Children {
		if missing <= 0 {
			break
		}
		if c.CompleteWith(members) {
			missing--
		}
	}
	return missing <= 0
}

// Runs reports whether members of the subgroup run or have succeeded, and these are all that it needs.
func (s *SubGroup) Runs() bool {
	return runningOrSucceeded(&s.MemberCounts) > 0 && s.Complete(runningOrSucceeded)
}

// CompleteChildren returns how many children are complete.
func (s *SubGroup) CompleteChildren(count Count) int32 {
	n := int32(0)
	for _, c := range s.Children {
		if c.Complete(count) {
			n++
		}
	}
	return n
}

// Need returns with how many members at least the subgroup can be complete.
func (s *SubGroup) Need() int32 { return s.Lacks(func(*SubGroup) int32 { return 0 }) }

// Lacks returns how many more members the subgroup needs at least, with a number of members for each subgroup. Segments
// that do not exist lack all their members.
func (s *SubGroup) Lacks(members func(*SubGroup) int32) int32 {
	lacks := make([]int32, 0, max(len(s.Children), int(s.MinSubGroup)))
	for _, c := range s.Children {
		lacks = append(lacks, c.Lacks(members))
	}
	for len(lacks) < int(s.MinSubGroup) {
		lacks = append(lacks, s.SegmentSize)
	}
	slices.Sort(lacks)
	sum := int32(0)
	for _, n := range lacks[:s.MinSubGroup] {
		sum += n
	}
	return max(s.MinMember-members(s), sum, 0)
}

// Lacking returns the first subgroup, in the order of the specification, for which the gang is incomplete; nil if there is
// none. Of a subgroup that needs any of its children it returns the subgroup.
func (s *SubGroup) Lacking(count Count) *SubGroup {
	if s.Complete(count) {
		return nil
	}
	if int(s.MinSubGroup) == len(s.Children) && s.SegmentSize == 0 {
		for _, c := range s.Children {
			if lacking := c.Lacking(count); lacking != nil {
				return lacking
			}
		}
	}
	return s
}

// LackingPods says which subgroup of a job has too few pods, and how many it has; empty if none has.
func LackingPods(j *JobInfo) string {
	if j.SubGroups == nil {
		return ""
	}
	count := (*MemberCounts).ValidCount
	s := j.SubGroups.Lacking(count)
	switch {
	case s == nil || s.Parent == nil:
		return ""
	case s.SegmentSize > 0:
		return fmt.Sprintf("subgroup %s has %d of %d complete segments of %d %s", s.Name, s.CompleteChildren(count), s.MinSubGroup,
			s.SegmentSize, plural(int(s.SegmentSize), "pod", "pods"))
	case s.MinSubGroup > 0:
		return fmt.Sprintf("subgroup %s has %d of %d complete subgroups", s.Name, s.CompleteChildren(count), s.MinSubGroup)
	}
	return fmt.Sprintf("subgroup %s has %d of %d pods", s.Name, s.ValidCount(), s.MinMember)
}

// Named returns the subgroup with a name, or nil.
func (s *SubGroup) Named(name string) *SubGroup {
	if s.Name == name {
		return s
	}
	for _, c := range s.Children {
		if named := c.Named(name); named != nil {
			return named
		}
	}
	return nil
}

// Select returns the leaf with this name, else the first leaf, in the order of the specification, whose selector matches the
// labels; nil if there is none.
func (s *SubGroup) Select(name string, set labels.Set) *SubGroup {
	if name != "" {
		if named := s.find(func(leaf *SubGroup) bool { return leaf.Name == name }); named != nil {
			return named
		}
	}
	return s.find(func(leaf *SubGroup) bool { return leaf.Selector != nil && leaf.Selector.Matches(set) })
}

func (s *SubGroup) find(is func(*SubGroup) bool) *SubGroup {
	if s.Parent != nil && (s.SegmentSize > 0 || len(s.Children) == 0 && s.MinSubGroup == 0) {
		if is(s) {
			return s
		}
		return nil
	}
	for _, c := range s.Children {
		if found := c.find(is); found != nil {
			return found
		}
	}
	return nil
}

// Segment returns the segment with this number and name. It adds the segment if there is none.
func (s *SubGroup) Segment(number int64, name string) *SubGroup {
	segment := &SubGroup{Name: s.Name + "/" + name, Parent: s, MinMember: s.SegmentSize, number: number,
		TopologyLevel: s.SegmentLevel, Constrained: s.SegmentLevel != nil}
	at, found := slices.BinarySearchFunc(s.Children, segment, func(a, b *SubGroup) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.Name, b.Name))
	})
	if !found {
		s.Children = slices.Insert(s.Children, at, segment)
	}
	return s.Children[at]
}

// Prune removes a segment that has no members.
func (s *SubGroup) Prune() {
	if s.Parent == nil || s.Parent.SegmentSize == 0 || s.members() > 0 {
		return
	}
	s.Parent.Children = slices.DeleteFunc(s.Parent.Children, func(c *SubGroup) bool { return c == s })
}

// SubGroup returns the subgroup that t counts in: the root if none selects it, nil if its job has none.
func (t *TaskInfo) SubGroup() *SubGroup { return t.Tracking.SubGroup }

// HasConstraint reports whether the subgroup, or one inside it, must be in one topology domain. It does not for nil, which
// stands for a job without subgroups.
func (s *SubGroup) HasConstraint() bool { return s != nil && s.Constrained }

// ConstrainedSubGroup returns the smallest subgroup of t whose members must be in one topology domain; nil for most.
func (t *TaskInfo) ConstrainedSubGroup() *SubGroup {
	for s := t.SubGroup(); s != nil; s = s.Parent {
		if s.TopologyLevel != nil {
			return s
		}
	}
	return nil
}

// surplusUnit returns the members that may be evicted together with t without the rest of the gang, if some others are
// gone: t alone if its subgroup is complete without it, else all members of the smallest part that the gang does not
// need, with those that are gone. Without such a part it returns nil, also if a member of the part must not be evicted.
func surplusUnit(t *TaskInfo, gone []*TaskInfo) []*TaskInfo {
	j := t.Job
	alone := []*TaskInfo{t}
	switch {
	case int(j.Surplus()) <= len(gone):
		return nil
	case j.SubGroups == nil || ReadyWithout(j, append(gone, t)):
		return alone
	}
	for s := t.SubGroup(); s != nil && s.Parent != nil; s = s.Parent {
		unit := holdingIn(j, s)
		if slices.ContainsFunc(unit, func(t *TaskInfo) bool { return !t.Evictable() }) {
			return nil
		}
		others := slices.DeleteFunc(slices.Clone(gone), func(t *TaskInfo) bool { return slices.Contains(unit, t) })
		if ReadyWithout(j, slices.Concat(others, unit)) {
			return unit
		}
	}
	return nil
}

// ReadyWithout reports whether the gang is still ready without some of its members, which hold resources, and has no part that
// keeps other members although it is incomplete. It never is if the group is evicted as a whole.
func ReadyWithout(j *JobInfo, tasks []*TaskInfo) bool {
	if j.Group.IsWhole() || j.ReadyCount()-int32(len(tasks)) < j.MinMember {
		return false
	}
	return j.SubGroups == nil || j.SubGroups.removable(tasks)
}

// removable is ReadyWithout for the root.
func (s *SubGroup) removable(tasks []*TaskInfo) bool {
	for _, t := range tasks {
		t.SubGroup().remove(+1)
	}
	rest := func(of *SubGroup) int32 { return of.ReadyCount() - of.removed }
	removable := s.CompleteWith(rest)
	for _, t := range tasks {
		for part := t.SubGroup(); part.Parent != nil && removable; part = part.Parent {
			removable = part.Holding() == part.removed || !part.Whole && part.CompleteWith(rest)
		}
	}
	for _, t := range tasks {
		t.SubGroup().remove(-1)
	}
	return removable
}

func (s *SubGroup) remove(n int32) {
	for ; s != nil; s = s.Parent {
		s.removed += n
	}
}

// holdingIn returns the members of a subgroup that hold resources, by name.
func holdingIn(j *JobInfo, s *SubGroup) []*TaskInfo {
	var tasks []*TaskInfo
	for _, t := range j.Tasks {
		if t.Holds() && t.SubGroup().Within(s) {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, func(a, b *TaskInfo) int { return CompareAge(a.Created, b.Created, a.Key, b.Key) })
	return tasks
}

// Within reports whether s is a subgroup or part of it.
func (s *SubGroup) Within(of *SubGroup) bool {
	for ; s != nil; s = s.Parent {
		if s == of {
			return true
		}
	}
	return false
}
