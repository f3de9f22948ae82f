// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"cmp"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/timeline"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// claimOf returns the claim of a gang that is not complete; nil if there is none.
func claimOf(ssn *framework.Session, j *api.JobInfo) *api.Claim {
	tasks := ssn.WaitingTasks(j)
	if len(tasks) == 0 || ssn.JobPipelined(j) {
		return nil
	}
	return worklist.Claim(ssn, j, tasks)
}

// unitOf returns all that a job holds, the oldest first. It reports false if that is nothing, or if some of it must not be evicted.
func unitOf(ssn *framework.Session, j *api.JobInfo) (api.Unit, bool) {
	var tasks []*api.TaskInfo
	for _, t := range j.Tasks {
		if t.Evictable() && !ssn.NonEvictable(t) {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, func(a, b *api.TaskInfo) int { return api.CompareAge(a.Created, b.Created, a.Key, b.Key) })
	return api.NewUnit(j, tasks), len(tasks) > 0 && len(tasks) == int(j.Holding())
}

// gangOf describes the gang of a job to a plan. It reports false if the gang is complete, or if the search for nodes depends on
// other pods or on volumes. Its resources are taken for a margin longer than it runs.
func gangOf(ssn *framework.Session, j *api.JobInfo, margin time.Duration) (timeline.Gang, bool) {
	claim := claimOf(ssn, j)
	if claim == nil {
		return timeline.Gang{}, false
	}
	for _, t := range claim.Tasks {
		class := ssn.Cluster().ClassOf(t)
		if !class.NodeLocalInDomain() || class.Signature.SelfAffinityKey() != "" {
			return timeline.Gang{}, false
		}
	}
	run := int64(timeline.NoEnd)
	if limit := j.RunTime.Limit(); limit > 0 {
		run = int64(limit + margin)
	}
	g := timeline.Gang{Job: j, Run: run}
	if j.TopologyLevel != nil {
		if g.Domains = domainsOf(ssn, claim); len(g.Domains) == 0 {
			return g, false
		}
	}
	parts, ok := partsOf(ssn, j, claim.Tasks)
	if g.Parts, g.Tasks = parts, concat(parts); parts == nil {
		g.Tasks = largestFirst(ssn, claim.Tasks)
	}
	return g, ok
}

// domainsOf returns the domains of the level that a gang requires where it could ever start: where members run, that one.
// Those come first where the fewest nodes are lost in whole domains.
func domainsOf(ssn *framework.Session, claim *api.Claim) (list []*timeline.Domain) {
	level := claim.Job.TopologyLevel
	domains := ssn.Nodes().Domains(level)
	for _, d := range place.Domains(ssn, claim, level) {
		if d.MayHoldAll {
			list = append(list, &timeline.Domain{Path: d.Path, Nodes: d.Nodes(), Lost: domains.Lost(d.Domain)})
		}
	}
	sortDomains(list)
	return list
}

func sortDomains(list []*timeline.Domain) {
	slices.SortFunc(list, func(a, b *timeline.Domain) int {
		return cmp.Or(cmp.Compare(a.Lost, b.Lost), cmp.Compare(a.Path, b.Path))
	})
}

// division says how the nodes are divided into domains for a gang. After a change of it, the gang could start earlier although
// nothing more is free. It is zero for a gang that may be anywhere.
type division struct {
	levels string
	specs  uint64 // generation of the node objects
}

func divisionOf(ssn *framework.Session, j *api.JobInfo) division {
	var levels []byte
	if j.TopologyLevel != nil {
		levels = append(levels, j.TopologyLevel.Key()...)
	}
	if j.SubGroups.HasConstraint() {
		levels = appendLevels(levels, j.SubGroups)
	}
	if len(levels) == 0 {
		return division{}
	}
	return division{string(levels), ssn.Cluster().Generations().NodeSpecs}
}

// appendLevels appends the levels of the subgroups of a gang, but not of single segments, which come and go.
func appendLevels(levels []byte, s *api.SubGroup) []byte {
	for _, level := range []*api.TopologyLevel{s.TopologyLevel, s.SegmentLevel} {
		if levels = append(levels, '|'); level != nil {
			levels = append(levels, level.Key()...)
		}
	}
	if s.SegmentSize > 0 {
		return levels
	}
	for _, c := range s.Children {
		levels = appendLevels(levels, c)
	}
	return levels
}

// largestFirst returns tasks by the greatest share of the usable total that they request in any one dimension, the largest
// first, and those of one signature together.
func largestFirst(ssn *framework.Session, tasks []*api.TaskInfo) []*api.TaskInfo {
	first := map[*api.Signature]int{}
	for i, t := range tasks {
		if _, known := first[t.Signature]; !known {
			first[t.Signature] = i
		}
	}
	if len(first) == 1 {
		return tasks
	}
	dims, total := ssn.Cluster().Dims(), ssn.Nodes().Total()
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(a, b *api.TaskInfo) int {
		if n := dims.Dominant(b.Request, total).Compare(dims.Dominant(a.Request, total)); n != 0 {
			return n
		}
		return first[a.Signature] - first[b.Signature]
	})
	return tasks
}

// expectedEnd returns when a task that holds resources, or will in this session, is expected to release them, in
// nanoseconds since 1970: after now, or api.NoEnd if that is not known.
func expectedEnd(t *api.TaskInfo, now int64) int64 {
	if end, ok := endOfOther(t, now, api.RunTime.Estimate); ok {
		return end
	}
	return t.ExpectedEnd(now)
}

// plannedEnd is expectedEnd by the limit of the task, if it has one.
func plannedEnd(t *api.TaskInfo, now int64) int64 {
	if end, ok := endOfOther(t, now, limitOrEstimate); ok {
		return end
	}
	return t.PlannedEnd(now)
}

func limitOrEstimate(r api.RunTime) time.Duration {
	if limit := r.Limit(); limit > 0 {
		return limit
	}
	return r.Estimate()
}

// soon is when a pod ends that should have ended already. Each planned start asks for a session, so it is not at once.
const soon = int64(time.Second)

// endOfOther returns the end of a task that is being deleted, or starts in this session.
func endOfOther(t *api.TaskInfo, now int64, run func(api.RunTime) time.Duration) (end int64, ok bool) {
	switch {
	case t.Status == api.Releasing && t.Tracking.Overdue:
		return api.NoEnd, true
	case t.Status == api.Releasing && t.Pod.DeletionTimestamp != nil:
		return max(t.Pod.DeletionTimestamp.UnixNano(), now+soon), true
	case t.Status == api.Releasing:
		return now + soon, true
	case t.Job != nil && t.Started() == 0 && run(t.Job.RunTime) > 0:
		return now + int64(run(t.Job.RunTime)), true
	}
	return 0, false
}

// certaintyOf says what the planned end of a task depends on.
func certaintyOf(t *api.TaskInfo, now int64) (c timeline.Certainty) {
	if t.Status == api.Releasing || t.Started() == 0 || t.EndsBy() <= now {
		c |= timeline.Moving
	}
	if t.Job == nil || t.Job.RunTime.Estimate() == 0 {
		return c
	}
	if t.Limit() == 0 {
		c |= timeline.Estimated | timeline.Unlimited | timeline.Moving
	} else if t.Job.RunTime.Expected > 0 {
		c |= timeline.Estimated
	}
	return c
}
