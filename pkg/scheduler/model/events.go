// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Events applies what the API server shows to a Cluster. The functions may be called in any order
// and repeatedly: pods before their node, members before their group, groups before their
// queue. Deleting an unknown object does nothing. Recompute ends a batch of events.
type Events struct{ c *Cluster }

// Recompute updates what is derived from the members of jobs, and returns the jobs that changed
// since the last call, by id. It deletes jobs without members and group. Call it once after the events of a cycle.
func (e Events) Recompute() []*api.JobInfo {
	e.c.nodes.rank()
	e.resolveQueues()
	return e.c.jobs.recompute()
}

// Gathering reports whether all jobs that have changed since the last Recompute are gangs that lack pods or their
// PodGroup.
func (e Events) Gathering() bool {
	return !slices.ContainsFunc(e.c.jobs.changed, func(j *api.JobInfo) bool {
		return !(j.GroupName != "" && j.Group == nil) && j.Valid()
	})
}

// NotifyExternalChange counts a change of an object that plugins read themselves, such as a
// volume or claim, so that the scheduler does not skip the next cycle.
func (e Events) NotifyExternalChange() { e.changed() }

// changed counts a change that is not one of a single task.
func (e Events) changed() {
	e.c.generations.Model++
	e.c.generations.Placement++
}

// SetPod adds or updates a pod. Versions that differ only in fields that do not influence scheduling, such as
// conditions, change nothing and cost next to nothing.
func (e Events) SetPod(pod *v1.Pod) {
	c := e.c
	t, known := c.tasks[api.TaskID(pod.UID)]
	if known && api.EqualPods(t.Pod, pod) {
		t.Pod = pod
		readStart(c, t)
		return
	}
	if known {
		c.detach(t)
		c.nodes.removeNominated(t)
	} else {
		t = &api.TaskInfo{ID: api.TaskID(pod.UID), Key: pod.Namespace + "/" + pod.Name}
		c.tasks[t.ID] = t
		c.inFlight.restore(t)
	}
	e.readPod(t, pod)
}

// readPod updates t, which must be detached, from a version of its pod.
func (e Events) readPod(t *api.TaskInfo, pod *v1.Pod) {
	c := e.c
	before, old := t.Node, t.Signature
	t.Pod = pod
	moved := c.claims.use(t, false)
	readPod(t, pod, c.signatures.acquire(pod, c.claims.borneBy(t)))
	c.signatures.release(old)
	e.observe(t)
	observeStart(t)
	c.jobs.join(t)
	c.attach(t)
	c.nodes.addNominated(t)
	c.nodes.release(before)
	e.readAgain(moved)
}

// observe derives status and node of t from its pod and the operations in flight, and ends those that the pod shows.
func (e Events) observe(t *api.TaskInfo) {
	record := e.c.inFlight
	if t.Pod.Spec.NodeName != "" {
		record.endBind(t)
		t.Tracking.LastBindError = ""
	}
	if t.InFlight() {
		t.Status, t.Node = api.Binding, e.c.nodes.named(record.nodeOf(t))
		return
	}
	if shown := api.StatusOf(t.Pod); shown == api.Releasing || shown.Ended() {
		record.endEviction(t)
	}
	t.Status, t.Node = observedStatus(t), e.c.nodes.of(t.Pod)
}

// DeletePod deletes a pod.
func (e Events) DeletePod(uid types.UID) {
	c := e.c
	c.inFlight.forget(uid)
	t, ok := c.tasks[api.TaskID(uid)]
	if !ok {
		return
	}
	delete(c.tasks, t.ID)
	c.detach(t)
	c.nodes.removeNominated(t)
	c.jobs.leave(t)
	c.jobs.setNativeGroup(t, "")
	if c.jobs.owners != nil {
		c.jobs.owners.forget(t)
	}
	node := t.Node
	c.signatures.release(t.Signature)
	delete(c.evictions.blocked, t)
	c.nodes.release(node)
	e.readAgain(c.claims.use(t, true))
}

// SetNode adds or updates a node. Heartbeats change nothing and cost next to nothing.
func (e Events) SetNode(node *v1.Node) {
	c := e.c
	n := c.nodes.named(node.Name)
	if n.Exists() && api.EqualNodes(n.Node, node) {
		n.Node = node
		return
	}
	e.replaceNode(n, node)
}

// DeleteNode deletes a node. Pods that name it stay and hold nothing.
func (e Events) DeleteNode(name string) {
	c := e.c
	n := c.nodes.existing(name)
	if n == nil {
		return
	}
	e.changed()
	c.generations.NodeSpecs++
	tasks := slices.Collect(maps.Values(n.Tasks))
	c.detachAll(tasks)
	c.nodes.unset(n)
	c.attachAll(tasks)
	c.nodes.release(n)
}

// SetPodGroup adds or updates a PodGroup of this scheduler.
func (e Events) SetPodGroup(g *v1alpha1.PodGroup) { e.SetGroup(api.OwnGroup(g)) }

// DeletePodGroup deletes the PodGroup of this scheduler with this namespace/name if it still has this UID.
func (e Events) DeletePodGroup(key string, uid types.UID) {
	e.DeleteGroup(api.GroupKey{Name: key}, uid)
}

// SetGroup adds or updates a group of any source. A group that is no gang has no job.
func (e Events) SetGroup(g *api.Group) {
	trees := &e.c.jobs.groups.trees
	if !g.IsPart() && !trees.Has(g.Key()) {
		e.setGroup(g)
		return
	}
	for _, changed := range trees.Set(g) {
		e.setGroup(changed)
	}
}

func (e Events) setGroup(g *api.Group) {
	key := g.Key()
	jobs := &e.c.jobs
	old := jobs.groups.set(key, g)
	if old != nil && old.UID == g.UID && api.EqualGroups(old, g) {
		j := jobs.byID[key.JobID()]
		if j == nil || !g.HasJob() {
			return
		}
		j.Group = g // only metadata or status, which the scheduler writes
		if len(j.Tasks) == 0 && old.Status.Phase != g.Status.Phase || j.Waits() {
			jobs.markChanged(j) // its phase depends on that of the status; the status of a pending group is compared again
		}
		return
	}
	switch {
	case g.HasJob():
		jobs.readGroup(jobs.ofGroup(key), g)
	case jobs.byID[key.JobID()] != nil:
		jobs.readGroup(jobs.byID[key.JobID()], nil)
	}
	e.rejoin(key, g.UID)
	if old != nil && old.UID != g.UID {
		e.rejoin(key, old.UID)
	}
}

// DeleteGroup deletes the group with this key if it still has this UID.
func (e Events) DeleteGroup(key api.GroupKey, uid types.UID) {
	jobs := &e.c.jobs
	for _, changed := range jobs.groups.trees.Delete(key, uid) {
		e.setGroup(changed)
	}
	old := jobs.groups.remove(key, uid)
	if old == nil {
		return
	}
	if old.HasJob() {
		jobs.readGroup(jobs.ofGroup(key), nil)
	}
	e.rejoin(key, uid)
}

// rejoin applies the membership rule again to all tasks that a change of a group may affect.
func (e Events) rejoin(key api.GroupKey, uid types.UID) {
	for _, t := range e.c.jobs.affectedByGroup(key, uid) {
		e.c.detach(t)
		e.c.jobs.join(t)
		e.c.attach(t)
	}
}

// SetQueue adds or updates a queue.
func (e Events) SetQueue(queue *v1alpha1.Queue) {
	jobs := &e.c.jobs
	id := api.QueueID(queue.Name)
	q := jobs.queues[id]
	if q != nil && q.Queue.UID == queue.UID && equality.Semantic.DeepEqual(q.Queue.Spec, queue.Spec) {
		q.Queue = queue
		return
	}
	e.changed()
	if q != nil {
		standard, longest := q.DefaultRun, q.MaximumRun
		readQueue(q, e.c.dims, queue)
		if q.DefaultRun != standard || q.MaximumRun != longest {
			markAllChanged(jobs, q)
		}
		return
	}
	q = &api.QueueInfo{ID: id, Jobs: map[api.JobID]*api.JobInfo{}}
	jobs.queues[id] = q
	readQueue(q, e.c.dims, queue)
	jobs.enqueueAll()
}

// DeleteQueue deletes a queue. From then on its jobs count in the default queue, and none of their pending tasks
// is placed.
func (e Events) DeleteQueue(name string) {
	jobs := &e.c.jobs
	if _, ok := jobs.queues[api.QueueID(name)]; !ok {
		return
	}
	e.changed()
	delete(jobs.queues, api.QueueID(name))
	jobs.enqueueAll()
}

// SetPriorityClass adds or updates a priority class.
func (e Events) SetPriorityClass(class *schedulingv1.PriorityClass) {
	priorities := e.c.jobs.groups.priorities
	if value, ok := priorities[class.Name]; ok && value == class.Value {
		return
	}
	priorities[class.Name] = class.Value
	e.changed()
	e.c.jobs.readPriorityClass(class.Name)
}

// DeletePriorityClass deletes a priority class.
func (e Events) DeletePriorityClass(name string) {
	priorities := e.c.jobs.groups.priorities
	if _, ok := priorities[name]; ok {
		delete(priorities, name)
		e.changed()
		e.c.jobs.readPriorityClass(name)
	}
}

// SetNamespace adds or updates a namespace.
func (e Events) SetNamespace(ns *v1.Namespace) {
	if e.c.namespaces.set(ns) {
		e.namespacesChanged()
	}
}

// DeleteNamespace deletes a namespace.
func (e Events) DeleteNamespace(name string) {
	if e.c.namespaces.remove(name) {
		e.namespacesChanged()
	}
}

func (e Events) namespacesChanged() {
	e.changed()
	e.c.generations.Namespaces++
	e.c.signatures.terms.generation++
	e.c.jobs.namespacesChanged()
}

// SetBudget adds or updates a PodDisruptionBudget. Its pods whose eviction was refused may be evicted again.
func (e Events) SetBudget(b *policyv1.PodDisruptionBudget) {
	e.allowEvictions(b.Namespace, e.c.budgets.get(b.Namespace, b.Name))
	e.allowEvictions(b.Namespace, e.c.budgets.set(b))
	e.changed()
}

// DeleteBudget deletes a PodDisruptionBudget.
func (e Events) DeleteBudget(namespace, name string) {
	b := e.c.budgets.get(namespace, name)
	if b == nil {
		return
	}
	e.allowEvictions(namespace, b)
	e.c.budgets.remove(namespace, name)
	e.changed()
}

func (e Events) allowEvictions(namespace string, b *Budget) {
	if b != nil {
		e.c.evictions.allow(namespace, b)
	}
}
