// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// The second half of the audit: sums of jobs, queues, nodes, signatures and groups.

func (a *audit) auditJobs() {
	indexes := map[int]api.JobID{}
	for _, id := range sortedKeys(a.c.Jobs()) {
		j := a.c.Jobs()[id]
		what := "job " + string(id)
		expect(a, what+" shares its index with", indexes[j.Index], "")
		indexes[j.Index] = id
		expect(a, what+" is found by its index", a.c.JobTable().ByIndex()[j.Index], j)
		s := sum(a.jobs, j)
		expect(a, what+" id", j.ID, id)
		expect(a, what+" members", len(j.Tasks), s.tasks)
		expect(a, what+" counts by status", j.Tracking.Counts, s.counts)
		expect(a, what+" gated", j.Tracking.Gated, s.gated)
		expect(a, what+" lost", j.Tracking.Lost, s.lost)
		expect(a, what+" disrupted", j.Tracking.Disrupted, s.disrupted)
		a.expectResource(what+" allocated", j.Allocated, s.allocated)
		a.expectResource(what+" releasing", j.Releasing, s.releasing)
		a.expectResource(what+" requested", j.Requested, s.requested)
		a.auditJobObject(what, j)
		a.auditSubGroups(what, j)
		a.auditDerived(what, j)
		if j.Queue != nil {
			q := sum(a.queues, j.Queue)
			q.jobs++
			q.allocated.Add(s.allocated)
			q.releasing.Add(s.releasing)
			q.requested.Add(s.requested)
			q.count(j.Tracking.CountedPhase)
			expect(a, what+" is listed by its queue", j.Queue.Jobs[id], j)
		}
	}
}

// count counts a group in the phase as of the last Recompute.
func (s *queueSums) count(phase v1alpha1.PodGroupPhase) {
	switch phase {
	case v1alpha1.PodGroupPending:
		s.groups.Pending++
	case v1alpha1.PodGroupRunning:
		s.groups.Running++
	case v1alpha1.PodGroupUnknown:
		s.groups.Unknown++
	case v1alpha1.PodGroupFinished:
		s.groups.Finished++
	case v1alpha1.PodGroupFailed:
		s.groups.Failed++
	}
}

// auditJobObject checks what a job has from its group and where it counts.
func (a *audit) auditJobObject(what string, j *api.JobInfo) {
	if !j.Shadow() {
		g := groups{a}.Group(api.GroupKey{Source: j.Source, Name: j.GroupName})
		if !g.HasJob() {
			g = nil
		}
		expect(a, what+" group", j.Group, g)
		queue, minMember := a.i.DefaultQueue, int32(1)
		if g != nil {
			queue, minMember = groups{a}.QueueOf(g), max(g.Spec.MinMember, 1)
		}
		if j.SubGroups != nil {
			minMember = max(minMember, j.SubGroups.Need())
		}
		expect(a, what+" queue name", j.QueueName, queue)
		expect(a, what+" minMember", j.MinMember, minMember)
	}
	q := a.c.Queues()[j.QueueName]
	if q == nil {
		q = a.c.Queues()[a.i.DefaultQueue]
	}
	expect(a, what+" counts in queue", j.Queue, q)
	if shared := j.Tracking.Commitment; shared != nil {
		now := api.Commitment{GroupUID: j.GroupUID()}
		if q != nil {
			now.Queue = q.ID
		}
		expect(a, what+" records with its binds", *shared, now)
	}
	uid := j.OrphanedGroup()
	expect(a, what+" is known as orphaned", uid != "" && a.i.OrphanedJobs[uid][j.ID] == j, uid != "")
}

// auditDerived checks what Recompute derives, of jobs that have not changed since.
func (a *audit) auditDerived(what string, j *api.JobInfo) {
	if j.Tracking.Changed {
		expect(a, what+" is on the list of changed jobs", slices.Contains(a.i.ChangedJobs, j), true)
		return
	}
	expect(a, what+" is needed", len(j.Tasks) > 0 || j.Group != nil, true)
	auditRunTime(a, what, j)
	priority, active := int32(0), false
	minMember, sizes := int32(1), map[int32]bool{}
	for _, t := range j.Tasks {
		if t.Status != api.Succeeded && t.Status != api.Failed && (!active || t.Priority > priority) {
			priority, active = t.Priority, true
		}
		switch {
		case j.OrphanedGroup() != "" || j.Owner != nil:
		case j.GroupKey() == "":
			minMember = max(minMember, api.ShadowMinMember(t.Pod))
		case t.Status != api.Succeeded && t.Status != api.Failed:
			n, ok := api.KeyedMinMember(t.Pod)
			if minMember = max(minMember, n); !ok {
				n = 0
			}
			sizes[n] = true
		}
	}
	if j.Group != nil {
		if j.Group.Priority != nil {
			priority = *j.Group.Priority
		} else if class, ok := a.i.PriorityClasses[j.Group.Spec.PriorityClassName]; ok {
			priority = class
		}
	}
	expect(a, what+" priority", j.Priority, priority)
	expect(a, what+" has pods that disagree about its size", j.Tracking.Conflict != "", sizes[0] || len(sizes) > 1)
	if j.Shadow() && j.Owner == nil {
		expect(a, what+" minMember", j.MinMember, minMember)
	}
	var phase v1alpha1.PodGroupPhase
	if j.Group != nil {
		phase = j.Phase()
	}
	expect(a, what+" counted in phase", j.Tracking.CountedPhase, phase)
	created, waits := a.i.WaitingJobs[j]
	expect(a, what+" is known to wait", waits, j.Waits())
	if waits {
		expect(a, what+" creation in the list of waiting jobs", created, j.Created)
	}
}

func (a *audit) auditQueues() {
	for _, id := range sortedKeys(a.c.Queues()) {
		q := a.c.Queues()[id]
		what := "queue " + string(id)
		s := sum(a.queues, q)
		expect(a, what+" id", q.ID, id)
		expect(a, what+" jobs", len(q.Jobs), s.jobs)
		a.expectResource(what+" allocated", q.Allocated, s.allocated)
		a.expectResource(what+" releasing", q.Releasing, s.releasing)
		a.expectResource(what+" requested", q.Requested, s.requested)
		expect(a, what+" groups", q.Groups, s.groups)
	}
	for j := range a.i.WaitingJobs {
		expect(a, "waiting job "+string(j.ID)+" is registered", a.c.Jobs()[j.ID], j)
	}
	expect(a, "number of sorted waiting jobs", len(a.c.WaitingJobs()), len(a.i.WaitingJobs))
}

func (a *audit) auditNodes() {
	existing := 0
	for _, name := range sortedKeys(a.i.Nodes) {
		n := a.i.Nodes[name]
		what := "node " + name
		s := sum(a.nodes, n)
		var allocatable api.Resource
		if n.Exists() {
			existing++
			allocatable = api.Allocatable(a.c.Dims(), n.Node, a.i.Devices[name])
			expect(a, what+" extended resources", n.ExtendedResources(), a.countExtended(allocatable))
			from, _ := api.UnavailableFromOf(n.Node)
			expect(a, what+" unavailable from", n.UnavailableFrom, from)
			expect(a, what+" is among those that are unavailable soon", slices.Contains(a.c.NodesUnavailableSoon(), n), from != 0)
			expect(a, what+" by its index", n.Index >= 0 && a.c.Nodes()[n.Index] == n, true)
		} else {
			expect(a, what+" index", n.Index, -1)
			expect(a, what+" is needed", s.tasks+s.nominated > 0, true)
		}
		a.expectResource(what+" allocatable", n.Allocatable, allocatable)
		a.expectResource(what+" idle", n.Idle, allocatable.Minus(s.used))
		a.expectResource(what+" releasing", n.Releasing, s.releasing)
		a.expectResource(what+" pipelined", n.Pipelined, s.pipelined)
		a.expectResource(what+" foreign", n.Foreign, s.foreign)
		a.expectResource(what+" members", n.Members, s.members)
		expect(a, what+" tasks", len(n.Tasks), s.tasks)
		expect(a, what+" tasks with ports", len(n.PortTasks), s.ports)
		expect(a, what+" nominated tasks", len(n.Nominated), s.nominated)
		for _, id := range sortedKeys(n.Tasks) {
			expect(a, what+" task "+string(id), n.Tasks[id], a.c.Tasks()[id])
		}
	}
	expect(a, "count of nodes", a.c.CountNodes(), existing)
	for _, i := range a.i.FreeIndexes {
		expect(a, "node at a free index", nameOf(a.c.Nodes()[i]), "")
	}
}

func (a *audit) countExtended(r api.Resource) int {
	count := 0
	for i, amount := range r {
		if amount > 0 && a.c.Dims().Extended(i) {
			count++
		}
	}
	return count
}

func (a *audit) auditSignatures() {
	wanted, kinds := map[string]int{}, map[*api.SignatureKind]api.SignatureKind{}
	for _, key := range sortedKeys(a.i.Signatures) {
		signature := a.i.Signatures[key]
		s := sum(a.signatures, signature)
		expect(a, "tasks of signature "+key, signature.Tracking.References, s.refs)
		expect(a, "signature is used "+key, s.refs > 0, true)
		expect(a, "members of signature "+key, signature.Tracking.Members, s.members)
		kind := kinds[signature.Tracking.Kind]
		kind.Signatures++
		if s.members > 0 {
			kind.Members++
		}
		kinds[signature.Tracking.Kind] = kind
		for i := range signature.Terms {
			wanted[signature.Terms[i].Key()]++
		}
	}
	for _, key := range sortedKeys(a.i.Signatures) {
		kind := a.i.Signatures[key].Tracking.Kind
		expect(a, "signatures like "+key, *kind, kinds[kind])
	}
	for _, key := range sortedKeys(a.i.TermReferences) {
		expect(a, "signatures with term "+key, a.i.TermReferences[key], wanted[key])
	}
	expect(a, "terms", len(a.i.TermReferences), len(wanted))
	expect(a, "terms that can be looked up", a.i.IndexedTerms, len(wanted))
}

func (a *audit) auditGroups() {
	expect(a, "groups by UID", len(a.i.GroupsByUID), len(a.i.GroupsByKey))
	for _, uid := range sortedKeys(a.i.GroupsByUID) {
		g := a.i.GroupsByUID[uid]
		expect(a, "UID of group "+string(g.Key().JobID()), g.UID, uid)
		expect(a, "group "+string(g.Key().JobID())+" by key", a.i.GroupsByKey[g.Key()], g)
		if g.HasJob() {
			expect(a, "group "+string(g.Key().JobID())+" has a job", a.c.Jobs()[g.Key().JobID()] != nil, true)
		}
	}
	orphaned := map[types.UID]int{}
	for _, j := range a.c.Jobs() {
		if uid := j.OrphanedGroup(); uid != "" {
			orphaned[uid]++
		}
	}
	for _, uid := range sortedKeys(a.i.OrphanedJobs) {
		expect(a, "orphaned jobs of group "+string(uid), len(a.i.OrphanedJobs[uid]), orphaned[uid])
	}
	expect(a, "groups of orphaned jobs", len(a.i.OrphanedJobs), len(orphaned))
}

func selects(b *model.Budget, t *api.TaskInfo) bool {
	return b.Selector.Matches(labels.Set(t.Pod.Labels))
}

func (a *audit) auditBudgets() {
	evicting := func(t *api.TaskInfo) bool { return t.Status == api.Releasing && t.Pod.DeletionTimestamp == nil }
	unconfirmed := 0
	for _, t := range a.c.Tasks() {
		if evicting(t) {
			unconfirmed++
		}
	}
	expect(a, "evictions that are not shown yet", len(a.i.UnconfirmedEvictions), unconfirmed)
	for _, namespace := range sortedKeys(a.i.Budgets) {
		for _, name := range sortedKeys(a.i.Budgets[namespace]) {
			b, want := a.i.Budgets[namespace][name], int32(0)
			for _, t := range a.c.Tasks() {
				if evicting(t) && t.Pod.Namespace == namespace && selects(b, t) {
					want++
				}
			}
			expect(a, "evictions of budget "+namespace+"/"+name+" that are not shown yet", b.Unconfirmed, want)
		}
	}
}
