package api

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// The second half of the audit: what the model says of jobs, queues, nodes, shapes and groups,
// compared with what the tasks add up to.

func (a *audit) auditJobs() {
	for _, id := range sortedKeys(a.c.Jobs) {
		j := a.c.Jobs[id]
		what := "job " + string(id)
		s := sum(a.jobs, j)
		expect(a, what+" id", j.ID, id)
		expect(a, what+" members", len(j.Tasks), s.tasks)
		expect(a, what+" counts by status", j.counts, s.counts)
		expect(a, what+" gated", j.gated, s.gated)
		expect(a, what+" lost", j.lost, s.lost)
		a.expectResource(what+" allocated", j.Allocated, s.allocated)
		a.expectResource(what+" releasing", j.Releasing, s.releasing)
		a.expectResource(what+" requested", j.Requested, s.requested)
		a.auditJobObject(what, j)
		a.auditDerived(what, j)
		if j.Queue != nil {
			q := sum(a.queues, j.Queue)
			q.jobs++
			q.allocated.Add(s.allocated)
			q.releasing.Add(s.releasing)
			q.requested.Add(s.requested)
			q.count(j.counted)
			expect(a, what+" is listed by its queue", j.Queue.Jobs[id], j)
		}
	}
}

// count counts a group in the phase as of the last Settle.
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
	}
}

// auditJobObject checks what a job has from its group and where it counts.
func (a *audit) auditJobObject(what string, j *JobInfo) {
	if !j.Shadow() {
		g := a.c.groupByName[j.GroupName]
		expect(a, what+" group", j.Group, g)
		queue, minMember := a.c.DefaultQueue, int32(1)
		if g != nil {
			queue, minMember = a.c.queueOf(g), max(g.Spec.MinMember, 1)
		}
		expect(a, what+" queue name", j.QueueName, queue)
		expect(a, what+" minMember", j.MinMember, minMember)
	}
	q := a.c.Queues[j.QueueName]
	if q == nil {
		q = a.c.Queues[a.c.DefaultQueue]
	}
	expect(a, what+" counts in queue", j.Queue, q)
	uid := j.orphanedGroup()
	expect(a, what+" is known as former", uid != "" && a.c.orphaned[uid][j.ID] == j, uid != "")
}

// auditDerived checks what Settle derives, of jobs that have not changed since.
func (a *audit) auditDerived(what string, j *JobInfo) {
	if j.dirty {
		expect(a, what+" is on the list of changed jobs", slices.Contains(a.c.dirty, j), true)
		return
	}
	expect(a, what+" is needed", len(j.Tasks) > 0 || j.Group != nil, true)
	priority, active := int32(0), false
	minMember := int32(1)
	for _, t := range j.Tasks {
		if t.Status != Succeeded && t.Status != Failed && (!active || t.Priority > priority) {
			priority, active = t.Priority, true
		}
		if j.orphanedGroup() == "" {
			minMember = max(minMember, shadowMinMember(t.Pod))
		}
	}
	if j.Group != nil {
		if class, ok := a.c.priorities[j.Group.Spec.PriorityClassName]; ok {
			priority = class
		}
	}
	expect(a, what+" priority", j.Priority, priority)
	if j.Shadow() {
		expect(a, what+" minMember", j.MinMember, minMember)
	}
	var phase v1alpha1.PodGroupPhase
	if j.Group != nil {
		phase = j.Phase()
	}
	expect(a, what+" counted in phase", j.counted, phase)
	_, waits := a.c.waiting[j]
	expect(a, what+" is known to wait", waits, j.Waits())
}

func (a *audit) auditQueues() {
	for _, id := range sortedKeys(a.c.Queues) {
		q := a.c.Queues[id]
		what := "queue " + string(id)
		s := sum(a.queues, q)
		expect(a, what+" id", q.ID, id)
		expect(a, what+" jobs", len(q.Jobs), s.jobs)
		a.expectResource(what+" allocated", q.Allocated, s.allocated)
		a.expectResource(what+" releasing", q.Releasing, s.releasing)
		a.expectResource(what+" requested", q.Requested, s.requested)
		expect(a, what+" groups", q.Groups, s.groups)
	}
	for j := range a.c.waiting {
		expect(a, "waiting job "+string(j.ID)+" is registered", a.c.Jobs[j.ID], j)
	}
}

func (a *audit) auditNodes() {
	existing := 0
	for _, name := range sortedKeys(a.c.nodes) {
		n := a.c.nodes[name]
		what := "node " + name
		s := sum(a.nodes, n)
		var allocatable Resource
		if n.Exists() {
			existing++
			allocatable = a.c.Dims.Vector(n.Node.Status.Allocatable)
			expect(a, what+" by its index", n.Index >= 0 && a.c.byIndex[n.Index] == n, true)
		} else {
			expect(a, what+" index", n.Index, -1)
			expect(a, what+" is needed", s.tasks+s.nominated > 0, true)
		}
		a.expectResource(what+" allocatable", n.Allocatable, allocatable)
		a.expectResource(what+" idle", n.Idle, allocatable.Minus(s.used))
		a.expectResource(what+" releasing", n.Releasing, s.releasing)
		a.expectResource(what+" pipelined", n.Pipelined, s.pipelined)
		a.expectResource(what+" outside", n.Foreign, s.foreign)
		a.expectResource(what+" members", n.Members, s.members)
		expect(a, what+" tasks", len(n.Tasks), s.tasks)
		expect(a, what+" tasks with ports", len(n.ports), s.ports)
		expect(a, what+" nominated tasks", len(n.nominated), s.nominated)
		for _, id := range sortedKeys(n.Tasks) {
			expect(a, what+" task "+string(id), n.Tasks[id], a.c.Tasks[id])
		}
	}
	expect(a, "count of nodes", a.c.CountNodes(), existing)
	for _, i := range a.c.freeIndex {
		expect(a, "node at a free index", nameOf(a.c.byIndex[i]), "")
	}
}

func (a *audit) auditSignatures() {
	wanted := map[string]int{}
	for _, key := range sortedKeys(a.c.signatures) {
		signature := a.c.signatures[key]
		s := sum(a.signatures, signature)
		expect(a, "tasks of shape "+key, signature.refs, s.refs)
		expect(a, "shape is used "+key, s.refs > 0, true)
		expect(a, "members of shape "+key, signature.members, s.members)
		for i := range signature.Terms {
			wanted[signature.Terms[i].key]++
		}
	}
	for _, key := range sortedKeys(a.c.terms.byKey) {
		expect(a, "shapes with term "+key, a.c.terms.byKey[key].refs, wanted[key])
	}
	expect(a, "terms", len(a.c.terms.byKey), len(wanted))
	indexed := len(a.c.terms.others)
	for _, list := range a.c.terms.byLabel {
		indexed += len(list)
	}
	expect(a, "terms that can be looked up", indexed, len(wanted))
}

func (a *audit) auditGroups() {
	expect(a, "groups by UID", len(a.c.groups), len(a.c.groupByName))
	for _, key := range sortedKeys(a.c.groupByName) {
		g := a.c.groupByName[key]
		expect(a, "group "+key+" by UID", a.c.groups[g.UID], g)
		expect(a, "group "+key+" has a job", a.c.Jobs[groupJob(key)] != nil, true)
	}
	former := map[types.UID]int{}
	for _, j := range a.c.Jobs {
		if uid := j.orphanedGroup(); uid != "" {
			former[uid]++
		}
	}
	for _, uid := range sortedKeys(a.c.orphaned) {
		expect(a, "jobs of the former group "+string(uid), len(a.c.orphaned[uid]), former[uid])
	}
	expect(a, "former groups", len(a.c.orphaned), len(former))
}

func (a *audit) auditBudgets() {
	leaving := func(t *TaskInfo) bool { return t.Status == Releasing && t.Pod.DeletionTimestamp == nil }
	unseen := 0
	for _, t := range a.c.Tasks {
		if leaving(t) {
			unseen++
		}
	}
	expect(a, "evictions that are not shown yet", len(a.c.unconfirmed), unseen)
	for _, namespace := range sortedKeys(a.c.budgets) {
		for _, name := range sortedKeys(a.c.budgets[namespace]) {
			b, want := a.c.budgets[namespace][name], int32(0)
			for _, t := range a.c.Tasks {
				if leaving(t) && t.Pod.Namespace == namespace && b.selects(t) {
					want++
				}
			}
			expect(a, "evictions of budget "+namespace+"/"+name+" that are not shown yet", b.unconfirmed, want)
		}
	}
}
