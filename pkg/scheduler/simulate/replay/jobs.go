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
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// job is a job of the trace and what became of it.
type job struct {
	*trace.Job
	index int
	queue string // of the trace, or the default queue
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

	attempt  int           // how often enough pods were bound
	starting bool          // whether the containers of the last attempt are starting
	kept     time.Duration // of the run time, by checkpoints of runs that did not complete
	nodes    string        // of the last run, if results are recorded
	why      reasons       // of the wait, if results are recorded
	domains  []int         // of each topology level, of the last run
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
	name := groupName(j)
	created := metav1.NewTime(r.clock.Now().Add(-j.Age))
	r.usage.counts = true
	j.group = &v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), CreationTimestamp: created},
		Spec: v1alpha1.PodGroupSpec{
			MinMember: int32(j.Gang()), Queue: j.queue,
			TopologyConstraint:          constraintOf(j.Topology),
			MaximumExecutionTimeSeconds: declaredSeconds(j.Limit), ExpectedExecutionTimeSeconds: declaredSeconds(j.Expected),
		},
	}
	r.setState(j, Pending)
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
	r.resume(j)
}

// resume puts the pods of a job on the nodes on which they ran when the trace began. If they are enough, the run goes on at
// once: their containers have started.
func (r *replay) resume(j *job) {
	enough := false
	for i, node := range j.Nodes {
		if r.usage.isUp(node) {
			enough = r.place(bind{j.pods[i], node, j.queue, j.group.Name}) || enough
		}
	}
	if enough {
		r.begin(j)
	}
}

// declaredSeconds returns a declared run time in seconds, rounded up; nil if none is declared.
func declaredSeconds(declared time.Duration) *int32 {
	if declared <= 0 {
		return nil
	}
	return ptr.To(int32(min((declared+time.Second-1)/time.Second, math.MaxInt32)))
}

// groupName returns the name of the PodGroup of a job, which is also its UID. Names are in the order of jobs that arrive at
// the same time.
func groupName(j *job) string { return fmt.Sprintf("job-%08d", j.index) }

// jobOf returns the job of a job of the model; nil if it is none of the trace.
func (r *replay) jobOf(info *api.JobInfo) *job {
	for _, t := range info.Tasks {
		if p := r.pods[t.Pod.UID]; p != nil {
			return p.job
		}
	}
	return nil
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

// place starts a pod on its node, and reports whether it was the last one that its job needs to run.
func (r *replay) place(b bind) (enough bool) {
	p, j := b.pod, b.pod.job
	bound := *p.Pod
	bound.Spec.NodeName, bound.Status.Phase, bound.Status.StartTime = b.node, v1.PodRunning, ptr.To(metav1.NewTime(r.clock.Now()))
	bound.Annotations = map[string]string{v1alpha1.AnnotationQueue: b.queue, v1alpha1.AnnotationPodGroupUID: b.group}
	p.Pod, p.running = &bound, true
	r.set(p)
	r.usage.add(p.request, 1)
	r.domains.use(b.node, 1)
	r.recorder.use(b.node, p.request, 1)
	j.running++
	return j.running >= j.Gang() && !j.atWork && !j.starting
}

// run starts a pod on its node, and the run of its job if it was the last one that was missing.
func (r *replay) run(b bind) {
	j := b.pod.job
	if !r.place(b) {
		return
	}
	if r.StartDelay == 0 {
		r.begin(j)
		return
	}
	j.attempt++
	j.starting = true
	attempt := j.attempt
	r.agenda.add(r.clock.at+r.StartDelay, podsReady, func() {
		if j.starting && j.attempt == attempt {
			j.starting = false
			r.begin(j)
		}
	})
}

// begin begins a run.
func (r *replay) begin(j *job) {
	if j.runs++; j.runs == 1 {
		j.first = r.clock.at
		r.recorder.started(j, r.clock.at)
	}
	j.began, j.atWork = r.clock.at, true
	r.setState(j, Running)
	j.domains = r.domains.ofJob(j)
	r.recorder.placed(j)
	length, known := runTime(j)
	if !known {
		return
	}
	number := j.runs
	r.agenda.add(r.clock.at+length-j.kept, jobEnd, func() {
		if j.runs == number && j.atWork {
			r.end(j, Completed)
		}
	})
}

// runTime returns how long a run of a job takes. That of a job that had not ended is its limit, and not known without one.
func runTime(j *job) (length time.Duration, known bool) {
	if j.Unended {
		return j.Limit, j.Limit > 0
	}
	return j.Run, true
}

// setState sets the state of a job.
func (r *replay) setState(j *job, state State) {
	r.recorder.moved(j, j.state, state)
	j.state = state
}

// evict begins the deletion of a pod.
func (r *replay) evict(v victim) {
	p := v.pod
	r.evicted++
	p.job.evictions++
	r.recorder.evicted(v, r.clock.at, r.stop(p))
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

// stop records that a pod does not work any more, although it may still hold its resources. If that ends the run of its job,
// it returns how much of its work is lost.
func (r *replay) stop(p *pod) (lost time.Duration) {
	j := p.job
	if !p.running {
		return 0
	}
	p.running = false
	if j.running--; j.running >= j.Gang() {
		return 0
	}
	j.starting = false
	if j.atWork {
		j.atWork = false
		r.setState(j, Pending)
		lost = r.lose(j)
	}
	return lost
}

// lose ends a run that has not completed: work since the last checkpoint is lost. Without checkpoints, all of it is.
func (r *replay) lose(j *job) (lost time.Duration) {
	done, kept := j.kept+r.clock.at-j.began, time.Duration(0)
	if r.Checkpoint > 0 {
		kept = max(j.kept, done-done%r.Checkpoint)
	}
	lost, j.kept = done-kept, kept
	j.lost += lost
	return lost
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
		r.domains.use(p.Spec.NodeName, -1)
		r.recorder.use(p.Spec.NodeName, p.request, -1)
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
	switch {
	case state == Completed:
		j.kept, _ = runTime(j)
	case j.atWork:
		r.lose(j)
	}
	r.setState(j, state)
	j.ended, j.atWork, j.starting = r.clock.at, false, false
	for _, p := range j.pods {
		r.remove(p)
	}
	r.cluster.Events().DeletePodGroup(namespace+"/"+j.group.Name, j.group.UID)
	j.pods, j.group, j.running = nil, nil, 0
	r.usedUntilEnd = r.usage.snapshot()
	r.domains.mark()
}

// changeNode applies a change of a node. The pods of a node that is down are replaced at once.
func (r *replay) changeNode(node *v1.Node, state trace.NodeState) {
	changed := *node
	changed.Spec.Unschedulable = state == trace.NodeCordon
	if state != trace.NodeDown {
		r.usage.setNode(node)
		r.domains.setNode(node)
		r.recorder.setNode(node)
		r.cluster.Events().SetNode(&changed)
		return
	}
	r.usage.removeNode(node.Name)
	r.around.lose(node.Name)
	for _, p := range r.podsOn(node.Name) {
		r.replace(p)
	}
	r.domains.removeNode(node.Name)
	r.recorder.removeNode(node.Name)
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
