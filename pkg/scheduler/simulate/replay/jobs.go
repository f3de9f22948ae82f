// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// job is a job of the trace and what became of it.
type job struct {
	*trace.Job
	index int
	state State
	group *v1alpha1.PodGroup
	pods  []*pod

	running   int           // pods
	runs      int           // begun so far
	first     time.Duration // when the first run began
	began     time.Duration // when the last run began
	atWork    bool          // whether the last run goes on
	ended     time.Duration
	lost      time.Duration // of runs that did not complete
	evictions int           // of its pods
}

// pod is a pod of a job. When it ends before its job, another one replaces it.
type pod struct {
	*v1.Pod
	job      *job
	number   int
	request  v1.ResourceList
	replaced int  // how many pods it replaces
	running  bool // bound, and not evicted
}

// submit creates a job.
func (r *replay) submit(j *job) {
	name := fmt.Sprintf("job-%08d", j.index) // the order of jobs that arrive at the same time
	created := metav1.NewTime(r.clock.Now().Add(-j.Age))
	queue := j.Queue
	if queue == "" {
		queue = r.DefaultQueue
	}
	j.state, r.usage.counts = Pending, true
	j.group = &v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), CreationTimestamp: created},
		Spec:       v1alpha1.PodGroupSpec{MinMember: int32(j.Gang()), Queue: queue, MaximumExecutionTimeSeconds: limitOf(j.Job)},
	}
	r.cluster.Events().SetPodGroup(j.group)
	labels := map[string]string{v1alpha1.LabelPodGroup: name}
	add := func(pods int, request v1.ResourceList, spec v1.PodSpec) {
		for range pods {
			number := len(j.pods)
			p := &pod{job: j, number: number, request: request, Pod: &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: labels, Name: fmt.Sprintf("%s-%06d", name, number), CreationTimestamp: created},
				Spec:       spec, Status: v1.PodStatus{Phase: v1.PodPending},
			}}
			p.UID = types.UID(p.Name)
			j.pods = append(j.pods, p)
			r.set(p)
		}
	}
	j.pods = make([]*pod, 0, j.Pods())
	add(j.Replicas, j.Request, podSpec(j.Priority, j.Request, j.Selector, j.Tolerations))
	for _, role := range j.Roles {
		add(role.Pods, role.Request, podSpec(j.Priority, role.Request, role.Selector, role.Tolerations))
	}
	for i, node := range j.Nodes { // these ran before
		if r.usage.isUp(node) {
			r.run(bind{j.pods[i], node, queue, name})
		}
	}
}

// limitOf returns the declared run time of a job in seconds, rounded up; nil if it declares none.
func limitOf(j *trace.Job) *int32 {
	if j.Limit <= 0 {
		return nil
	}
	return ptr.To(int32(min((j.Limit+time.Second-1)/time.Second, math.MaxInt32)))
}

// podSpec returns the specification that equal pods share.
func podSpec(priority int32, request v1.ResourceList, selector map[string][]string, tolerations []v1.Toleration) v1.PodSpec {
	return v1.PodSpec{
		SchedulerName: schedulerName, Priority: ptr.To(priority), Affinity: trace.Affinity(selector), Tolerations: tolerations,
		Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: request}}},
	}
}

// set applies a version of a pod to the model.
func (r *replay) set(p *pod) {
	r.pods[p.UID] = p
	r.cluster.Events().SetPod(p.Pod)
}

// run starts a pod on its node, and the run of its job if it was the last one that was missing.
func (r *replay) run(b bind) {
	p, j := b.pod, b.pod.job
	bound := *p.Pod
	bound.Spec.NodeName, bound.Status.Phase, bound.Status.StartTime = b.node, v1.PodRunning, ptr.To(metav1.NewTime(r.clock.Now()))
	bound.Annotations = map[string]string{v1alpha1.AnnotationQueue: b.queue, v1alpha1.AnnotationPodGroupUID: b.group}
	p.Pod, p.running = &bound, true
	r.set(p)
	r.usage.add(p.request, 1)
	if j.running++; j.running < j.Gang() || j.atWork {
		return
	}
	if j.runs++; j.runs == 1 {
		j.first = r.clock.at
	}
	j.began, j.atWork, j.state = r.clock.at, true, Running
	run := j.Run
	if j.Unended {
		if run = j.Limit; run == 0 {
			return // when it would end is not known
		}
	}
	number := j.runs
	r.agenda.add(r.clock.at+run, jobEnd, func() {
		if j.runs == number && j.atWork {
			r.end(j, Completed)
		}
	})
}

// evict begins the deletion of a pod.
func (r *replay) evict(p *pod) {
	r.evicted++
	p.job.evictions++
	r.stop(p)
	gone := r.clock.at + r.EvictionGrace
	deleted := *p.Pod
	deleted.DeletionTimestamp = ptr.To(metav1.NewTime(epoch.Add(gone)))
	deleted.DeletionGracePeriodSeconds = ptr.To(int64(r.EvictionGrace / time.Second))
	p.Pod = &deleted
	r.set(p)
	uid := p.UID
	r.agenda.add(gone, podGone, func() {
		if r.pods[uid] == p {
			r.replace(p)
		}
	})
}

// stop records that a pod does not work any more, although it may still hold its resources.
func (r *replay) stop(p *pod) {
	j := p.job
	if !p.running {
		return
	}
	p.running = false
	if j.running--; j.atWork && j.running < j.Gang() {
		j.atWork, j.state = false, Pending
		j.lost += r.clock.at - j.began
	}
}

// replace deletes a pod, which works no more, and creates the one that its controller creates in its place.
func (r *replay) replace(p *pod) {
	r.stop(p)
	r.remove(p)
	fresh := *p.Pod
	p.replaced++
	fresh.UID = types.UID(fmt.Sprintf("%s-replacement-%d", p.Name, p.replaced))
	fresh.CreationTimestamp = metav1.NewTime(r.clock.Now())
	fresh.DeletionTimestamp, fresh.DeletionGracePeriodSeconds, fresh.Annotations = nil, nil, nil
	fresh.Spec.NodeName = ""
	fresh.Status = v1.PodStatus{Phase: v1.PodPending}
	p.Pod = &fresh
	r.set(p)
}

// remove deletes a pod.
func (r *replay) remove(p *pod) {
	if p.Spec.NodeName != "" {
		r.usage.add(p.request, -1)
	}
	r.cluster.Events().DeletePod(p.UID)
	delete(r.pods, p.UID)
}

// end ends a job, and deletes its objects.
func (r *replay) end(j *job, state State) {
	if j.group == nil { // it has ended, or was not submitted yet
		return
	}
	r.done++
	if state == Cancelled && j.atWork {
		j.lost += r.clock.at - j.began
	}
	j.state, j.ended, j.atWork = state, r.clock.at, false
	for _, p := range j.pods {
		r.remove(p)
	}
	r.cluster.Events().DeletePodGroup(namespace+"/"+j.group.Name, j.group.UID)
	j.pods, j.group, j.running = nil, nil, 0
	r.utilisation = r.usage.utilisation()
}

// changeNode applies a change of a node. The pods of a node that is down are replaced at once.
func (r *replay) changeNode(node *v1.Node, state trace.NodeState) {
	changed := *node
	changed.Spec.Unschedulable = state == trace.NodeCordon
	if state != trace.NodeDown {
		r.usage.setNode(node)
		r.cluster.Events().SetNode(&changed)
		return
	}
	r.usage.removeNode(node.Name)
	r.around.lose(node.Name)
	for _, p := range r.podsOn(node.Name) {
		r.replace(p)
	}
	r.cluster.Events().DeleteNode(node.Name)
}

// podsOn returns the pods of a node, by name.
func (r *replay) podsOn(node string) []*pod {
	var found []*pod
	for _, j := range r.jobs {
		for _, p := range j.pods {
			if p.Spec.NodeName == node {
				found = append(found, p)
			}
		}
	}
	return found
}
