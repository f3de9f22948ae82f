// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/internal/jobfailure"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/bind"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/events"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/evict"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Commit queues the binds of one statement as a unit, and its evictions as a plan, and returns at
// once. It implements framework.Effects.
func (c *Cache) Commit(decisions []api.Decision) {
	u, p := &bind.Unit{}, &evict.Plan{}
	for _, d := range decisions {
		switch d.Kind {
		case api.Allocate:
			c.bind(u, d)
		case api.Evict:
			c.evict(p, d)
		}
	}
	if len(p.Victims) > 0 {
		p.Jobs = c.victimJobs(decisions)
		slices.SortStableFunc(p.Victims, func(a, b *evict.Victim) int { return strings.Compare(a.Job, b.Job) })
		c.evictor.Enqueue(p)
	}
	if len(u.Requests) > 0 {
		c.binder.Enqueue(u)
	}
}

// bind adds the bind of one task to a unit.
func (c *Cache) bind(u *bind.Unit, d api.Decision) {
	job, pod := d.Task.Job, d.Task.Pod
	r := &bind.Request{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Created: pod.CreationTimestamp.Time,
		Node: d.Node.Name, Commitment: api.Commitment{GroupUID: job.GroupUID()},
		External: d.External,
	}
	if job.Queue != nil {
		r.Commitment.Queue = job.Queue.ID
	}
	if job.Group != nil {
		u.PodGroup = events.Reference(job.Group)
		u.CreatedAt(job.Group.CreationTimestamp.Time)
	}
	u.Add(r)
	u.Job = job.ID
	u.StartsGang = job.ReadyCount()-int32(len(u.Requests)) < job.MinMember
	c.statuses.ForgetPod(r.UID)
}

// evict adds the eviction of one task to a plan.
func (c *Cache) evict(p *evict.Plan, d api.Decision) {
	pod := d.Task.Pod
	if len(p.Victims) == 0 {
		p.Queue, p.Priority = queueOf(d.For), d.For.Priority
	}
	p.Victims = append(p.Victims, &evict.Victim{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Job: string(d.Task.Job.ID), BatchJob: jobfailure.ControllerOf(pod), Cause: d.Cause,
		Budget: model.BudgetOf(c.model, d.Task),
	})
	if d.Cause == api.Overran && d.For == d.Task.Job { // nothing but its own limit evicts it
		return
	}
	if p.Preemptor = d.For.Key; d.For.Group != nil {
		p.PodGroup = events.Reference(d.For.Group)
	}
	if p.PreemptorPod == nil {
		p.PreemptorPod = preemptorPod(d.For)
	}
}

// victimJobs describes the jobs that lose tasks by a statement, which the model contains.
func (c *Cache) victimJobs(decisions []api.Decision) map[string]*evict.Job {
	freed := map[*api.JobInfo]*api.Resource{}
	for _, d := range decisions {
		if d.Kind != api.Evict {
			continue
		}
		if freed[d.Task.Job] == nil {
			freed[d.Task.Job] = &api.Resource{}
		}
		freed[d.Task.Job].Add(d.Task.ShareRequest)
	}
	jobs := make(map[string]*evict.Job, len(freed))
	for j, sum := range freed {
		job := &evict.Job{
			Namespace: j.GetNamespace(), Name: j.GetName(), Queue: queueOf(j), Priority: j.Priority,
			Missing: j.MinMember - j.ReadyCount(), Frees: c.model.Dims().Format(*sum),
		}
		if j.Group != nil {
			job.PodGroup = events.Reference(j.Group)
			job.Announced = j.Source == api.SourceNative || j.Source == api.SourceComposite
		}
		jobs[string(j.ID)] = job
	}
	return jobs
}

// queueOf returns the name of the queue where a job counts.
func queueOf(j *api.JobInfo) string {
	if j.Queue == nil {
		return string(j.QueueName)
	}
	return string(j.Queue.ID)
}

// preemptorPod returns the first task of a job, by name, that waits for the resources of victims.
func preemptorPod(j *api.JobInfo) *v1.ObjectReference {
	var first *v1.Pod
	for _, t := range j.Tasks {
		if t.Status == api.Pipelined && (first == nil || t.Pod.Name < first.Name) {
			first = t.Pod
		}
	}
	if first == nil {
		return nil
	}
	return &v1.ObjectReference{Namespace: first.Namespace, Name: first.Name, UID: first.UID}
}

// Publish takes over the report of a cycle and returns at once. What differs from what the API
// server shows is written later.
func (c *Cache) Publish(report *api.Report) { c.statuses.Publish(report) }

// results turns the results of binds and evictions into events. It implements bind.Handler and
// evict.Handler.
type results struct{ c *Cache }

// BindFailed implements bind.Handler.
func (r results) BindFailed(b *bind.Request, err error) {
	r.add(bindFailed{uid: b.UID, reason: fmt.Sprintf("binding pod %s to node %s failed: %v", b.Name, b.Node, err)})
}

// PodVanished implements bind.Handler.
func (r results) PodVanished(b *bind.Request) {
	r.add(podVanished{pod: objectKey{rankPod, b.Namespace, b.Name, b.UID}})
}

// JobBackoff implements bind.Handler.
func (r results) JobBackoff(job api.JobID, requests []*bind.Request, reason string) {
	e := jobBackoff{job: job, reason: reason}
	for _, request := range requests {
		e.binds = append(e.binds, bindFailed{uid: request.UID})
	}
	r.add(e)
}

// JobRequeued implements bind.Handler.
func (r results) JobRequeued(job api.JobID) { r.add(jobRequeued{job: job}) }

// EvictionFailed implements evict.Handler.
func (r results) EvictionFailed(v *evict.Victim, refused bool) {
	r.add(evictionFailed{uid: v.UID, refused: refused})
}

// EvictionAllowed implements evict.Handler.
func (r results) EvictionAllowed(uid types.UID) { r.add(evictionAllowed{uid: uid}) }

func (r results) add(e event) {
	r.c.queue.add(e)
	r.c.wakeUp()
}
