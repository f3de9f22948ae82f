// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// job is a gang, or a single pod. Its run begins when enough of its pods are bound, and begins again when that is so after too
// few were. It ends when no pod is left.
type job struct {
	membership
	pods      map[types.UID]*pod // those that have not ended
	sets      []*set             // by their first pod
	before    []placed           // pods that ran when the record began
	succeeded int

	least    int           // how many pods start together; 0 while the group is not known
	priority int32         // of its pods
	ofGroup  *int32        // priority of the group
	queue    [3]string     // for which its pods were bound, of the group, of its pods
	limit    time.Duration // of its pods
	declared time.Duration // of the group
	expected time.Duration // of the group
	created  time.Time     // the group, or the first pod
	lost     []string

	submit   time.Duration
	complete bool // enough pods have existed since submit
	runs     int
	atWork   bool
	began    time.Duration   // of the last run: the mean time of the binds, which are not at the same moment
	ends     []time.Duration // of pods in the last run
	ended    time.Duration   // when the last pod ended; if there are none
	heirOf   types.UID       // the controller whose next pod replaces an evicted one; empty if none
}

// placed is a pod that ran when the record began.
type placed struct {
	pod     string
	set     *set
	node    string
	started int64 // see api.StartOf
}

// set are the equal pods of a job.
type set struct {
	kind
	key  string
	most int // pods at the same time
}

// pod is a pod that has not ended.
type pod struct {
	uid        types.UID
	job        *job
	set        *set
	controller types.UID
	gated      bool
	bound      bool
	boundAt    time.Duration
	leaving    bool // it is being deleted
	evicted    bool
}

// SetPod adds or changes a pod. A pod that has ended when it is first seen is ignored.
func (b *Builder) SetPod(p *v1.Pod, at time.Duration) {
	if !slices.Contains(b.SchedulerNames, p.Spec.SchedulerName) {
		b.setOther(p, at)
		return
	}
	known := b.pods[p.UID]
	if known == nil {
		if hasEnded(p) {
			return
		}
		known = &pod{uid: p.UID}
		if c := metav1.GetControllerOfNoCopy(p); c != nil {
			known.controller = c.UID
		}
		b.pods[p.UID] = known
	}
	if known.job == nil || known.job.runs == 0 && !known.bound {
		b.join(known, p)
	}
	j := known.job
	j.see(p)
	known.gated = len(p.Spec.SchedulingGates) > 0
	known.leaving = p.DeletionTimestamp != nil
	known.evicted = known.evicted || disrupted(p)
	if p.Spec.NodeName != "" && !known.bound {
		known.bound, known.boundAt = true, at
		if at == 0 && !known.leaving {
			j.before = append(j.before, placed{p.Name, known.set, p.Spec.NodeName, api.StartOf(p)})
		}
	}
	if hasEnded(p) {
		b.endPod(known, at, p.Status.Phase == v1.PodSucceeded)
		return
	}
	b.look(j, at)
}

// DeletePod deletes a pod, which ends it.
func (b *Builder) DeletePod(p *v1.Pod, at time.Duration) {
	b.endOther(p.UID, at, false)
	if known := b.pods[p.UID]; known != nil {
		known.evicted = known.evicted || disrupted(p)
		b.endPod(known, at, false)
	}
}

// join puts a pod into its job.
func (b *Builder) join(known *pod, p *v1.Pod) {
	m := b.groups.membershipOf(p, b.Sources)
	if before := known.job; before != nil {
		if before.key == m.key {
			return
		}
		delete(before.pods, known.uid)
		if len(before.pods) == 0 {
			delete(b.jobs, before.key)
			if before.complete {
				b.counts.Jobs--
			}
		}
	}
	j := b.heir(known, m)
	if j == nil {
		j = b.jobs[m.key]
	}
	if j == nil {
		j = &job{membership: m, pods: map[types.UID]*pod{}}
		b.jobs[m.key] = j
	}
	known.job = j
	j.pods[known.uid] = known
	k, key, lost := kindOf(p)
	for _, what := range lost {
		if !slices.Contains(j.lost, what) {
			j.lost = append(j.lost, what)
		}
	}
	i := slices.IndexFunc(j.sets, func(s *set) bool { return s.key == key })
	if i < 0 {
		i = len(j.sets)
		j.sets = append(j.sets, &set{kind: k, key: key})
	}
	known.set = j.sets[i]
}

// heir returns the job that a single pod continues, because an evicted pod of its controller waits for another one; nil if
// there is none.
func (b *Builder) heir(known *pod, m membership) *job {
	waiting := b.evicted[known.controller]
	if !m.single || known.job != nil || len(waiting) == 0 {
		return nil
	}
	j := waiting[0]
	b.disinherit(j)
	delete(b.jobs, j.key)
	j.key = m.key
	b.jobs[m.key] = j
	return j
}

// disinherit ends the wait of a job for another pod of its controller.
func (b *Builder) disinherit(j *job) {
	if j.heirOf == "" {
		return
	}
	left := slices.DeleteFunc(b.evicted[j.heirOf], func(w *job) bool { return w == j })
	if b.evicted[j.heirOf] = left; len(left) == 0 {
		delete(b.evicted, j.heirOf)
	}
	j.heirOf = ""
}

// see takes from a pod what is about the whole job.
func (j *job) see(p *v1.Pod) {
	if p.Spec.Priority != nil {
		j.priority = max(j.priority, *p.Spec.Priority)
	}
	j.limit = max(j.limit, limitOf(p))
	if j.created.IsZero() || p.CreationTimestamp.Time.Before(j.created) {
		j.created = p.CreationTimestamp.Time
	}
	if label := p.Labels[v1alpha1.LabelQueue]; label != "" {
		j.queue[2] = label
	}
	if binding := api.CommitmentOf(p); binding != nil {
		j.queue[0] = string(binding.Queue)
	}
}

// seeGroup takes from the group of a job what it says about the job, if it is there.
func (b *Builder) seeGroup(j *job) {
	if j.group == nil {
		j.least = j.min
		return
	}
	g := b.groups.byKey[*j.group]
	if g == nil {
		return
	}
	j.least, j.created, j.queue[1], j.ofGroup = leastOf(g), g.CreationTimestamp.Time, g.Spec.Queue, g.Priority
	if limit := g.Spec.MaximumExecutionTimeSeconds; limit != nil {
		j.declared = time.Duration(*limit) * time.Second
	}
	if expected := g.Spec.ExpectedExecutionTimeSeconds; expected != nil {
		j.expected = time.Duration(*expected) * time.Second
	}
	if class := b.classes[g.Spec.PriorityClassName]; class != nil && j.ofGroup == nil {
		j.ofGroup = &class.Value
	}
}

// look updates the state of a job after a change of its pods or its group.
func (b *Builder) look(j *job, at time.Duration) {
	b.seeGroup(j)
	present, running := 0, 0
	var binds []time.Duration
	now := map[*set]int{}
	for _, p := range j.pods {
		if p.gated || p.leaving {
			continue
		}
		present++
		now[p.set]++
		if p.bound {
			running++
			binds = append(binds, p.boundAt)
		}
	}
	for s, n := range now {
		s.most = max(s.most, n)
	}
	if !j.complete && (running > 0 || j.least > 0 && present+j.succeeded >= j.least) {
		j.complete, j.submit = true, at
		b.counts.Jobs++
	}
	switch enough := running+j.succeeded >= max(j.least, 1); {
	case enough && running > 0 && !j.atWork:
		j.atWork, j.began, j.ends = true, at, nil
		if j.runs++; j.runs == 1 {
			j.began = mean(binds)
		}
	case !enough:
		j.atWork = false
	}
}

// endPod ends a pod, and its job if it was the last one.
func (b *Builder) endPod(p *pod, at time.Duration, succeeded bool) {
	j := p.job
	delete(b.pods, p.uid)
	delete(j.pods, p.uid)
	if succeeded {
		j.succeeded++
	}
	if p.bound {
		j.ends = append(j.ends, at)
	}
	if len(j.pods) > 0 {
		b.look(j, at)
		return
	}
	j.ended, j.atWork = at, j.succeeded >= max(j.least, 1)
	switch {
	case j.single && p.evicted && p.controller != "":
		j.heirOf = p.controller
		b.evicted[p.controller] = append(b.evicted[p.controller], j)
	case j.single, j.group != nil && b.groups.byKey[*j.group] == nil:
		b.writeJob(j, at)
	}
}
