// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Commit records decisions. It implements framework.Effects.
func (r *run) Commit(decisions []api.Decision) {
	for _, d := range decisions {
		switch d.Kind {
		case api.Allocate:
			r.bind(d)
		case api.Evict:
			r.evict(d)
		}
	}
}

func (r *run) bind(d api.Decision) {
	pod, job := d.Task.Pod, d.Task.Job
	p := placement{pod: pod, node: d.Node.Name, groupUID: string(job.GroupUID())}
	if job.Queue != nil {
		p.queue = string(job.Queue.ID)
	}
	r.binds = append(r.binds, p)
	r.held[pod.UID] = d.External // never committed: they stay reserved
	r.result.Bound = append(r.result.Bound, Binding{
		Pod: d.Task.Key, Group: job.Key, Queue: p.queue, Node: p.node, Cycle: r.result.Cycles, Again: r.again[pod.UID],
	})
}

func (r *run) evict(d api.Decision) {
	pod, job := d.Task.Pod, d.Task.Job
	r.victims = append(r.victims, pod)
	r.result.Evicted = append(r.result.Evicted, Eviction{
		Pod: d.Task.Key, Group: job.Key, Queue: string(job.QueueName), Node: d.Node.Name,
		For: d.For.Key, Cause: d.Cause.String(), Cycle: r.result.Cycles, ComesBack: metav1.GetControllerOfNoCopy(pod) != nil,
	})
}

// applyDecisions applies the results of the decisions of a cycle to the model, and reports whether there were any.
func (r *run) applyDecisions() (changed bool) {
	for _, p := range r.binds {
		delete(r.lost, nameOf(p.pod))
		r.cluster.Events().SetPod(p.running())
	}
	r.failJobs()
	for _, pod := range r.victims {
		r.remove(pod)
		if metav1.GetControllerOfNoCopy(pod) != nil && r.failures.failed[jobOf(pod)] == "" {
			r.cluster.Events().SetPod(r.recreated(pod))
		}
	}
	if changed = len(r.binds)+len(r.victims) > 0; changed {
		r.recountBudgets()
	}
	r.binds, r.victims = nil, nil
	if r.result.Cycles == 1 && r.endDeletions() {
		changed = true
	}
	r.result.Warnings = append(r.result.Warnings, r.owners.dropMissing()...) // of pods that were created again
	r.cluster.Events().Recompute()
	return changed
}

// remove deletes a pod, and releases its volumes and devices.
func (r *run) remove(pod *v1.Pod) {
	r.cluster.Events().DeletePod(pod.UID)
	for _, reservation := range r.held[pod.UID] {
		reservation.Release()
	}
	delete(r.held, pod.UID)
	r.claims.podGone(pod)
	r.lost[nameOf(pod)] = pod
}

// running returns the pod as the API server shows it some time after its binding.
func (p placement) running() *v1.Pod {
	pod := *p.pod
	pod.Spec.NodeName, pod.Status.Phase = p.node, v1.PodRunning
	pod.Annotations = with(pod.Annotations, map[string]string{v1alpha1.AnnotationQueue: p.queue, v1alpha1.AnnotationPodGroupUID: p.groupUID})
	return &pod
}

// recreated returns the pod that the controller of an evicted pod creates in its place, with the same name.
func (r *run) recreated(evicted *v1.Pod) *v1.Pod {
	pod := *evicted
	pod.UID = types.UID(fmt.Sprintf("%s/again-%d", evicted.UID, r.result.Cycles))
	pod.CreationTimestamp = metav1.NewTime(r.snapshot.now.Add(time.Duration(r.result.Cycles))) // younger than all others
	pod.DeletionTimestamp = nil
	pod.Annotations = maps.Clone(evicted.Annotations)
	delete(pod.Annotations, v1alpha1.AnnotationQueue)
	delete(pod.Annotations, v1alpha1.AnnotationPodGroupUID)
	pod.Spec.NodeName = ""
	pod.Status = v1.PodStatus{Phase: v1.PodPending}
	r.again[pod.UID] = true
	return &pod
}

// endDeletions deletes the pods that were terminating from the beginning.
func (r *run) endDeletions() (any bool) {
	for _, obj := range r.snapshot.objects {
		if pod, ok := obj.(*v1.Pod); ok && pod.DeletionTimestamp != nil {
			r.cluster.Events().DeletePod(pod.UID)
			r.claims.podGone(pod)
			any = true
		}
	}
	return any
}

// recountBudgets updates disruption budgets for pods that were evicted and do not run again.
func (r *run) recountBudgets() {
	for _, obj := range r.snapshot.objects {
		budget, ok := obj.(*policyv1.PodDisruptionBudget)
		if !ok {
			continue
		}
		if missing := r.missing(budget); missing != r.budgets[budget] {
			r.budgets[budget] = missing
			now := *budget
			now.Status.DisruptionsAllowed = max(budget.Status.DisruptionsAllowed-missing, 0)
			r.cluster.Events().SetBudget(&now)
		}
	}
}

func (r *run) missing(budget *policyv1.PodDisruptionBudget) (n int32) {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return 0
	}
	for _, pod := range r.lost {
		if pod.Namespace == budget.Namespace && selector.Matches(labels.Set(pod.Labels)) {
			n++
		}
	}
	return n
}

// failJobs records which Jobs fail because of the evictions of this cycle, and deletes their other pods as the Job
// controller does.
func (r *run) failJobs() {
	for _, job := range r.failures.evict(r.victims) {
		others := r.othersOf(job)
		for _, pod := range others {
			r.remove(pod)
		}
		r.result.Warnings = append(r.result.Warnings, fmt.Sprintf("Job %s fails: %s; %d other pods of it end too", job, r.failures.failed[job], len(others)))
	}
	reasons := map[string]string{}
	for _, pod := range r.victims {
		reasons[nameOf(pod)] = r.failures.failed[jobOf(pod)]
	}
	for i := range r.result.Evicted {
		e := &r.result.Evicted[i]
		if reason := reasons[e.Pod]; e.Cycle == r.result.Cycles && reason != "" {
			e.ComesBack, e.JobFails = false, reason
		}
	}
}

// othersOf returns the pods of a Job that have not ended and are not evicted in this cycle, by name.
func (r *run) othersOf(job string) []*v1.Pod {
	var pods []*v1.Pod
	for _, t := range r.cluster.Tasks() {
		if jobOf(t.Pod) == job && !t.Status.Ended() && !slices.Contains(r.victims, t.Pod) {
			pods = append(pods, t.Pod)
		}
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// warnUnknown adds a warning about evicted pods whose Job is not known.
func (r *run) warnUnknown() {
	if n := r.failures.unknown; n > 0 {
		r.result.Warnings = append(r.result.Warnings, fmt.Sprintf("the Jobs of %d evicted pods are not among the objects, or may not be listed: whether the evictions make them fail is not known", n))
	}
}
