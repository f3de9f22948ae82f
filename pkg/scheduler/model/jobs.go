// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// jobTable holds jobs and queues, and which pod is a member of which job.
type jobTable struct {
	schedulerNames []string
	sources        api.GroupSources
	owners         *ownerTable // nil if no kind of owners makes gangs
	kueueGroups    bool
	dims           *api.Dimensions
	generations    *api.Generations
	inFlight       *InFlight

	byID     map[api.JobID]*api.JobInfo
	queues   map[api.QueueID]*api.QueueInfo
	groups   groupTable
	orphaned map[types.UID]map[api.JobID]*api.JobInfo // jobs of members whose group was deleted, by its UID
	native   map[string]map[api.TaskID]*api.TaskInfo  // of all schedulers, by the namespace/name of the native group that they name and do not count in
	changed  []*api.JobInfo                           // since the last Recompute
	waiting  waitingJobs

	topologies topologyTable

	byIndex     []*api.JobInfo // nil where the index is free
	freeIndexes []int
	changes     api.Journal // of jobs that Recompute has returned
	starts      []int64     // of updateRunTime; a buffer

	similar map[api.QueueID]string // by the name of a queue that does not exist, what similarQueue returns
}

func newJobTable(o Options, dims *api.Dimensions, generations *api.Generations) jobTable {
	return jobTable{
		schedulerNames: o.SchedulerNames,
		sources:        o.GroupSources,
		owners:         newOwnerTable(o.OwnerRules),
		kueueGroups:    o.KueueGroups,
		dims:           dims,
		generations:    generations,
		inFlight:       o.InFlight,
		byID:           map[api.JobID]*api.JobInfo{},
		queues:         map[api.QueueID]*api.QueueInfo{},
		groups:         newGroupTable(o.DefaultQueue),
		orphaned:       map[types.UID]map[api.JobID]*api.JobInfo{},
		native:         map[string]map[api.TaskID]*api.TaskInfo{},
		waiting:        newWaitingJobs(),
		topologies:     newTopologyTable(o.TopologiesUnread),
	}
}

// join moves t, which must be detached, into the job that api.MembershipOf names.
func (jt *jobTable) join(t *api.TaskInfo) {
	if jt.sources.Any() {
		t.Tracking.QueueLabel = api.QueueID(t.Pod.Labels[v1alpha1.LabelQueue])
	}
	jt.assign(t)
	if t.Job != nil {
		t.Job.Tracking.QueueStale = true
	}
	if !jt.sources.Native {
		return
	}
	name := api.NativeGroupOf(t.Pod)
	if t.Job != nil && t.Job.Source == api.SourceNative && t.Job.GroupName == name {
		name = ""
	}
	jt.setNativeGroup(t, name)
}

func (jt *jobTable) assign(t *api.TaskInfo) {
	if !slices.Contains(jt.schedulerNames, t.Pod.Spec.SchedulerName) {
		jt.leave(t)
		return
	}
	m := api.MembershipOf(t.Pod, commitmentOf(t), jt.rule(t))
	if t.Job != nil && t.Job.ID == m.Job {
		joinSubGroup(t) // its labels may have changed
		jt.readOwner(t.Job, &m)
		return
	}
	jt.leave(t)
	j := jt.byID[m.Job]
	if j == nil {
		j = jt.create(m, t)
	}
	jt.readOwner(j, &m)
	t.Job, t.Tracking.IndexInJob, t.Tracking.Class = j, len(j.Tasks), nil
	j.Tasks = append(j.Tasks, t)
	joinSubGroup(t)
}

// rule returns the rule that assigns t to its job.
func (jt *jobTable) rule(t *api.TaskInfo) api.MembershipRule {
	rule := api.MembershipRule{DefaultQueue: jt.groups.defaultQueue, Sources: jt.sources, Groups: &jt.groups, KueueGroups: jt.kueueGroups}
	if jt.owners != nil {
		jt.owners.name(t)
		rule.Owners = jt.owners
	}
	return rule
}

// readOwner updates j from what its owner says now.
func (jt *jobTable) readOwner(j *api.JobInfo, m *api.Membership) {
	if m.Owner == nil || j.MinMember == m.MinMember && *j.Owner == *m.Owner {
		return
	}
	j.MinMember, j.Owner = m.MinMember, m.Owner
	jt.generations.Model++
	if j.Holding() > 0 {
		jt.generations.Placement++
	}
	jt.markChanged(j)
}

// setNativeGroup records the native group that t names and does not count in, so that t joins it if it becomes a gang; empty
// if there is none.
func (jt *jobTable) setNativeGroup(t *api.TaskInfo, name string) {
	before := t.Tracking.NativeGroup
	if before == name {
		return
	}
	if before != "" {
		if delete(jt.native[before], t.ID); len(jt.native[before]) == 0 {
			delete(jt.native, before)
		}
	}
	if t.Tracking.NativeGroup = name; name != "" {
		if jt.native[name] == nil {
			jt.native[name] = map[api.TaskID]*api.TaskInfo{}
		}
		jt.native[name][t.ID] = t
	}
}

// commitmentOf returns where t counts since its bind was decided; nil before.
func commitmentOf(t *api.TaskInfo) *api.Commitment {
	if t.Tracking.Bind != nil {
		return t.Tracking.Bind
	}
	return api.CommitmentOf(t.Pod)
}

// leave removes t, which must be detached, from its job, if it has one.
func (jt *jobTable) leave(t *api.TaskInfo) {
	j := t.Job
	if j == nil {
		return
	}
	last := len(j.Tasks) - 1
	moved := j.Tasks[last]
	j.Tasks[t.Tracking.IndexInJob], moved.Tracking.IndexInJob = moved, t.Tracking.IndexInJob
	j.Tasks[last] = nil
	j.Tasks = j.Tasks[:last]
	t.Job = nil
	joinSubGroup(t)
	j.Tracking.QueueStale = true
	jt.markChanged(j)
}

// create adds the job that t is the first member of.
func (jt *jobTable) create(m api.Membership, t *api.TaskInfo) *api.JobInfo {
	if m.Group != "" {
		key := api.GroupKey{Source: m.Source, Name: m.Group}
		j := jt.add(m.Job, key)
		jt.readGroup(j, jt.groups.byKey[key])
		return j
	}
	j := jt.add(m.Job, api.GroupKey{})
	j.Namespace = t.Pod.Namespace
	j.Key = shadowKey(t)
	j.MinMember = m.MinMember
	j.QueueName = m.Queue
	j.Unsupported, j.Owner = m.Unsupported, m.Owner
	if uid := j.OrphanedGroup(); uid != "" {
		if jt.orphaned[uid] == nil {
			jt.orphaned[uid] = map[api.JobID]*api.JobInfo{}
		}
		jt.orphaned[uid][j.ID] = j
	}
	jt.enqueue(j)
	return j
}

func (jt *jobTable) add(id api.JobID, group api.GroupKey) *api.JobInfo {
	j := &api.JobInfo{ID: id, GroupName: group.Name, Source: group.Source, Key: group.Name, MinMember: 1}
	if group.Name != "" {
		j.Namespace, _, _ = strings.Cut(group.Name, "/")
	}
	jt.takeIndex(j)
	j.Tracking.Backoff = jt.inFlight.backoffs[id]
	jt.byID[id] = j
	jt.markChanged(j)
	return j
}

func (jt *jobTable) takeIndex(j *api.JobInfo) {
	if last := len(jt.freeIndexes) - 1; last >= 0 {
		j.Index = jt.freeIndexes[last]
		jt.freeIndexes = jt.freeIndexes[:last]
		jt.byIndex[j.Index] = j
		return
	}
	j.Index = len(jt.byIndex)
	jt.byIndex = append(jt.byIndex, j)
}

func (jt *jobTable) remove(j *api.JobInfo) {
	if j.Queue != nil {
		countGroup(j.Queue, j.Tracking.CountedPhase, -1)
		delete(j.Queue.Jobs, j.ID)
	}
	delete(jt.byID, j.ID)
	jt.topologies.forget(j)
	jt.waiting.set(j, false)
	jt.byIndex[j.Index] = nil
	jt.freeIndexes = append(jt.freeIndexes, j.Index)
	jt.inFlight.setBackoff(j, "")
	if uid := j.OrphanedGroup(); uid != "" {
		delete(jt.orphaned[uid], j.ID)
		if len(jt.orphaned[uid]) == 0 {
			delete(jt.orphaned, uid)
		}
	}
}

// ofGroup returns the job of a group; it adds the job if there is none.
func (jt *jobTable) ofGroup(key api.GroupKey) *api.JobInfo {
	id := key.JobID()
	if j := jt.byID[id]; j != nil {
		return j
	}
	return jt.add(id, key)
}

// affectedByGroup returns the tasks whose membership a change of a group may affect: its members, members of orphaned
// jobs of a group with this UID, and tasks that name the group and count elsewhere because of another one.
func (jt *jobTable) affectedByGroup(key api.GroupKey, uid types.UID) []*api.TaskInfo {
	var tasks []*api.TaskInfo
	if j := jt.byID[key.JobID()]; j != nil {
		tasks = append(tasks, j.Tasks...)
	}
	for _, j := range jt.orphaned[uid] {
		tasks = append(tasks, j.Tasks...)
	}
	switch {
	case key.Source == api.SourceOwn && jt.sources.Volcano: // the annotation names either
		if j := jt.byID[api.GroupKey{Source: api.SourceVolcano, Name: key.Name}.JobID()]; j != nil {
			tasks = append(tasks, j.Tasks...)
		}
	case key.Source == api.SourceNative:
		tasks = slices.AppendSeq(tasks, maps.Values(jt.native[key.Name]))
	}
	return tasks
}

// readGroup updates j from the spec of its group; nil if that was deleted.
func (jt *jobTable) readGroup(j *api.JobInfo, g *api.Group) {
	jt.generations.Model++
	if j.Holding() > 0 {
		jt.generations.Placement++
	}
	j.Group, j.Tracking.Commitment = g, nil
	j.MinMember, j.QueueName, j.MinResources, j.Created = 1, jt.groups.defaultQueue, nil, 0
	if g != nil {
		j.MinMember = max(g.Spec.MinMember, 1)
		j.QueueName = jt.groups.QueueOf(g)
		j.Created = g.CreationTimestamp.UnixNano()
		if len(g.Spec.MinResources) > 0 {
			j.MinResources = jt.dims.Vector(g.Spec.MinResources)
		}
	}
	j.Tracking.GroupPriority = jt.groups.priorityOf(g)
	j.Tracking.QueueStale = true
	readSubGroups(j)
	jt.topologies.read(j)
	jt.enqueue(j)
	jt.markChanged(j)
}

// readDeclaredTopology updates a shadow from what its members declare about their domains. With slices its size can be more than
// what its owner or its pods say.
func (jt *jobTable) readDeclaredTopology(j *api.JobInfo) {
	declared := api.DeclaredTopologyOf(j.Tasks)
	before := j.Tracking.Topology
	if declared == (api.DeclaredTopology{}) && before == declared {
		return // as for most jobs
	}
	if declared.SliceSize > 0 {
		if _, notSupported := declared.SubGroups(j.MinMember); notSupported != "" {
			declared = api.DeclaredTopology{NotSupported: notSupported}
		}
	}
	if declared != before || declared.SliceSize > 0 && j.Tracking.SlicedFor != j.MinMember {
		jt.generations.Model++
		if j.Holding() > 0 {
			jt.generations.Placement++
		}
		j.Tracking.Topology, j.Tracking.SlicedFor = declared, j.MinMember
		readSubGroups(j)
		jt.topologies.read(j)
	}
	if j.SubGroups != nil {
		j.MinMember = j.SubGroups.Need()
	}
}

// readPriorityClass updates the jobs of groups that name the class.
func (jt *jobTable) readPriorityClass(name string) {
	for _, j := range jt.byID {
		if j.Group != nil && j.Group.Spec.PriorityClassName == name {
			j.Tracking.GroupPriority = jt.groups.priorityOf(j.Group)
			jt.markChanged(j)
		}
	}
}

func (jt *jobTable) markChanged(j *api.JobInfo) {
	if !j.Tracking.Changed {
		j.Tracking.Changed = true
		jt.changed = append(jt.changed, j)
	}
}

// recompute updates what is derived from members of changed jobs, and returns these jobs by id.
func (jt *jobTable) recompute() []*api.JobInfo {
	changed := jt.changed
	jt.changed = nil
	for _, j := range changed {
		j.Tracking.Changed = false
		jt.changes.Add(j.Index)
		if len(j.Tasks) == 0 && j.Group == nil {
			jt.remove(j)
			continue
		}
		updatePriority(j)
		if j.Shadow() {
			updateShadow(j)
			jt.readDeclaredTopology(j)
		}
		jt.starts = updateRunTime(j, jt.starts)
		countPhase(j)
		jt.waiting.set(j, j.Waits())
	}
	slices.SortFunc(changed, func(a, b *api.JobInfo) int { return cmp.Compare(a.ID, b.ID) })
	return changed
}

// ByIndex implements api.JobTable.
func (jt *jobTable) ByIndex() []*api.JobInfo { return jt.byIndex }

// Changes implements api.JobTable.
func (jt *jobTable) Changes() *api.Journal { return &jt.changes }

// CountWaiting implements api.JobTable.
func (jt *jobTable) CountWaiting() int { return len(jt.waiting.created) }

// CountConstrained implements api.JobTable.
func (jt *jobTable) CountConstrained() int { return len(jt.topologies.constrained) }

// Topologies implements api.JobTable.
func (jt *jobTable) Topologies() []api.Topology { return jt.topologies.list() }

func (jt *jobTable) sorted() []*api.JobInfo {
	jobs := make([]*api.JobInfo, 0, len(jt.byID))
	for _, j := range jt.byID {
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b *api.JobInfo) int { return cmp.Compare(a.ID, b.ID) })
	return jobs
}
