// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Groups of other APIs often name no queue. Such a group is in the queue of its pods:
//
//  1. the queue for which pods were bound as members of the group;
//  2. the queue that its pods name with their label;
//  3. the queue that the namespace names with its label;
//  4. the default queue.
//
// If pods name different queues, no further pod of the group starts. The queue depends only on the pods that name the
// group or were bound for it, and not on where they count, so it does not depend on the order of events.

// memberQueues are the queues of groups of other APIs that name none, by the UID of the group. A group whose pods and
// namespace name none either is in the default queue and not in the map.
type memberQueues map[types.UID]memberQueue

type memberQueue struct {
	queue api.QueueID
	other api.QueueID // that some pods name instead; empty if there is none
}

// namesNoQueue reports whether the queue of the group is that of its pods.
func namesNoQueue(g *api.Group) bool {
	return g.HasJob() && g.Source != api.SourceOwn && g.Spec.Queue == ""
}

// resolveQueues updates the queues of groups whose pods have changed, and where their pods count.
func (e Events) resolveQueues() {
	jobs := &e.c.jobs
	if !jobs.sources.Any() {
		return
	}
	for i := 0; i < len(jobs.changed); i++ { // rejoin appends jobs
		j := jobs.changed[i]
		if !j.Tracking.QueueStale { // only counts have changed
			continue
		}
		j.Tracking.QueueStale, j.Tracking.OtherQueue = false, ""
		g := j.Group
		if g == nil {
			g = jobs.groups.byUID[j.OrphanedGroup()]
		}
		if !namesNoQueue(g) {
			continue
		}
		if j.Group != g {
			j = jobs.ofGroup(g.Key())
		}
		now := e.queueOfMembers(j, g)
		j.Tracking.OtherQueue = now.other
		before := memberQueue{queue: jobs.groups.QueueOf(g), other: jobs.groups.members[g.UID].other}
		if now == before {
			continue
		}
		jobs.groups.members[g.UID] = now
		jobs.markChanged(j)
		e.c.generations.Model++
		if now.queue != before.queue {
			jobs.readGroup(j, g)
			e.rejoinBound(j, g.UID)
		}
	}
}

// rejoinBound applies the membership rule again to the tasks that a change of the queue of a group may affect: those that
// were bound for the group, as members of its job or of orphaned ones.
func (e Events) rejoinBound(j *api.JobInfo, uid types.UID) {
	var bound []*api.TaskInfo
	collect := func(tasks []*api.TaskInfo) {
		for _, t := range tasks {
			if commitmentOf(t) != nil {
				bound = append(bound, t)
			}
		}
	}
	collect(j.Tasks)
	for _, orphaned := range e.c.jobs.orphaned[uid] {
		collect(orphaned.Tasks)
	}
	for _, t := range bound {
		e.c.detach(t)
		e.c.jobs.join(t)
		e.c.attach(t)
	}
}

// namespacesChanged marks the groups whose queue may be that of their namespace.
func (jt *jobTable) namespacesChanged() {
	if !jt.sources.Any() {
		return
	}
	for _, g := range jt.groups.byUID {
		if namesNoQueue(g) {
			j := jt.ofGroup(g.Key())
			j.Tracking.QueueStale = true
			jt.markChanged(j)
		}
	}
}

// queueOfMembers derives the queue of a group that names none, whose job is j.
func (e Events) queueOfMembers(j *api.JobInfo, g *api.Group) memberQueue {
	bound, named := queueNames{}, queueNames{}
	jobs := &e.c.jobs
	add := func(j *api.JobInfo) {
		var last *api.Commitment // of tasks whose binds were decided together
		for _, t := range j.Tasks {
			if binding := commitmentOf(t); binding != nil && binding != last && binding.GroupUID == g.UID {
				bound.add(binding.Queue)
				last = binding
			}
			named.add(t.Tracking.QueueLabel)
		}
	}
	add(j)
	for _, j := range jobs.orphaned[g.UID] {
		if j.Namespace == g.Namespace { // else the commitment is forged
			add(j)
		}
	}
	var result memberQueue
	switch {
	case bound.first != "":
		result.queue = bound.first
	case named.first != "":
		result.queue = named.first
	default:
		result.queue = api.QueueID(e.c.namespaces.byName[g.Namespace].Labels[v1alpha1.LabelDefaultQueue])
	}
	if result.queue == "" {
		result.queue = jobs.groups.defaultQueue
	}
	for _, name := range []api.QueueID{bound.last, named.first, named.last} {
		if name != "" && name != result.queue {
			result.other = name
		}
	}
	return result
}

// queueNames are the first and the last of some names.
type queueNames struct{ first, last api.QueueID }

func (n *queueNames) add(name api.QueueID) {
	switch {
	case name == "":
	case n.first == "":
		n.first, n.last = name, name
	default:
		n.first, n.last = min(n.first, name), max(n.last, name)
	}
}

// queueConflict returns why no pod of a group starts whose pods name different queues; nil if they do not.
func queueConflict(j *api.JobInfo) *api.Verdict {
	other := j.Tracking.OtherQueue
	if other == "" {
		return nil
	}
	return &api.Verdict{Reason: v1alpha1.ReasonQueueConflict, Detail: fmt.Sprintf(
		"the pods of the group name the queues %s and %s; name one queue with the label %s on the group", min(j.QueueName, other), max(j.QueueName, other), v1alpha1.LabelQueue)}
}

// membersElsewhere returns why a native group lacks pods of which some name another scheduler; nil if none do.
func (jt *jobTable) membersElsewhere(j *api.JobInfo) *api.Verdict {
	if j.Source != api.SourceNative && j.Source != api.SourceComposite || j.Valid() {
		return nil
	}
	elsewhere, all := 0, int(j.Active())
	for _, name := range podGroupsOf(j) {
		for _, t := range jt.native[name] {
			if t.Job == j || t.Status.Ended() {
				continue
			}
			all++
			if !slices.Contains(jt.schedulerNames, t.Pod.Spec.SchedulerName) {
				elsewhere++
			}
		}
	}
	if elsewhere == 0 {
		return nil
	}
	return &api.Verdict{Reason: v1alpha1.ReasonNotEnoughPods, Need: j.MinMember, Have: j.ValidCount(), Gated: j.Gated(),
		Detail: fmt.Sprintf("%d of %d members name another scheduler", elsewhere, all)}
}

// podGroupsOf returns the namespace/name of the native groups whose pods are the members of a job.
func podGroupsOf(j *api.JobInfo) []string {
	if j.Source == api.SourceNative {
		return []string{j.GroupName}
	}
	var names []string
	for _, part := range j.Group.Parts() {
		if part.Source == api.SourceNative {
			names = append(names, part.Key().Name)
		}
	}
	return names
}
